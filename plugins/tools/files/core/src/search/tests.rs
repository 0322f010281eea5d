use super::*;
use crate::testing::{directory_with, text};
use proptest::prelude::*;
use std::os::unix::fs::symlink;
use std::time::Duration;

const PLAIN: Asked<'static> = Asked {
    pattern: "",
    regex: false,
    ignore_case: false,
    path: None,
    files: None,
    hidden: false,
    context: 0,
    most: DEFAULT_RESULTS,
};

/// What a search in these files says, with the directory's own path taken out.
fn found(files: &[(&str, &[u8])], asked: Asked<'_>) -> Result<String, String> {
    let dir = directory_with(files);
    let path = text(dir.path());
    let said = search_in(&[&path], asked, Until::after(LONGEST_WALK));
    let said = said
        .map(|output| output.data().to_owned())
        .map_err(|error| error.message().to_owned());
    let short = |said: String| said.replace(&format!("{path}/"), "");
    said.map(short).map_err(short)
}

fn plain(pattern: &str) -> Asked<'_> {
    Asked { pattern, ..PLAIN }
}

#[test]
fn lines_are_found_in_the_order_of_paths_and_lines() {
    let files: [(&str, &[u8]); 3] = [
        ("b/x.rs", b"fn a() {}\r\nfn b() {}\r\n"),
        ("a.txt", b"a fn\n"),
        ("c", b"none"),
    ];
    let all = "a.txt:1: a fn\nb/x.rs:1: fn a() {}\nb/x.rs:2: fn b() {}";
    assert_eq!(found(&files, plain("fn")).as_deref(), Ok(all));
    let only = Asked {
        files: Some("*.rs"),
        ..plain("b()")
    };
    assert_eq!(found(&files, only).as_deref(), Ok("b/x.rs:2: fn b() {}"));
    assert_eq!(found(&files, plain("FN")).as_deref(), Ok("[nothing found]"));
    let any_case = Asked {
        ignore_case: true,
        ..plain("A FN")
    };
    assert_eq!(found(&files, any_case).as_deref(), Ok("a.txt:1: a fn"));
}

#[test]
fn a_literal_is_no_expression_and_an_expression_is_one_when_asked() {
    let files: [(&str, &[u8]); 1] = [("a", b"a.c\nabc\n")];
    assert_eq!(found(&files, plain("a.c")).as_deref(), Ok("a:1: a.c"));
    let regex = Asked {
        regex: true,
        ..plain("^a.c$")
    };
    assert_eq!(found(&files, regex).as_deref(), Ok("a:1: a.c\na:2: abc"));
    let broken = found(
        &files,
        Asked {
            regex: true,
            ..plain("a(")
        },
    )
    .unwrap_err();
    assert!(broken.starts_with("the pattern is no regular expression: "), "{broken}");
    let huge = found(
        &files,
        Asked {
            regex: true,
            ..plain("(a{1000}){1000}")
        },
    )
    .unwrap_err();
    assert!(huge.starts_with("the pattern is no regular expression: "), "{huge}");
}

#[test]
fn an_expression_that_other_engines_take_years_for_ends() {
    let line = "a".repeat(50_000);
    let regex = Asked {
        regex: true,
        ..plain("(a*)*b")
    };
    assert_eq!(
        found(&[("a", line.as_bytes())], regex).as_deref(),
        Ok("[nothing found]")
    );
}

#[test]
fn lines_around_are_shown_once() {
    let files: [(&str, &[u8]); 1] = [("a", b"1\n2\nx\n4\nx\n6\n7\n8\nx\n")];
    let around = Asked {
        context: 1,
        ..plain("x")
    };
    let expected = "a-2- 2\na:3: x\na-4- 4\na:5: x\na-6- 6\n--\na-8- 8\na:9: x";
    assert_eq!(found(&files, around).as_deref(), Ok(expected));
}

#[test]
fn what_is_left_out_is_told() {
    let large = vec![b'x'; LARGEST_FILE as usize + 1];
    let files: [(&str, &[u8]); 4] = [
        ("bin", b"x\0"),
        ("large", &large),
        (".hidden", b"x"),
        ("latin", b"x\xff"),
    ];
    let expected = "latin:1: x\u{fffd}\n[files left out: 1 binary, 1 over 8388608 bytes]";
    assert_eq!(found(&files, plain("x")).as_deref(), Ok(expected));
    let hidden = Asked {
        hidden: true,
        files: Some(".*"),
        ..plain("x")
    };
    assert_eq!(found(&files, hidden).as_deref(), Ok(".hidden:1: x"));
}

#[test]
fn links_are_not_followed() {
    let dir = directory_with(&[("a/f", b"x")]);
    symlink("..", dir.path().join("a/round")).unwrap();
    let path = text(dir.path());
    let output = search_in(&[&path], plain("x"), Until::after(LONGEST_WALK)).unwrap();
    assert_eq!(output.data(), format!("{path}/a/f:1: x"));
}

#[test]
fn results_and_time_are_bounded() {
    let files: [(&str, &[u8]); 1] = [("a", b"x\nx\nx\n")];
    let two = Asked { most: 2, ..plain("x") };
    let expected = "a:1: x\na:2: x\n[there is more than these 2 lines: search for less, or in a smaller part]";
    assert_eq!(found(&files, two).as_deref(), Ok(expected));

    let dir = directory_with(&files);
    let over = Until::after(Duration::ZERO);
    let output = search_in(&[&text(dir.path())], plain("x"), over).unwrap();
    let expected = "[nothing found]\n[not all was searched: there is too much; search in a smaller part]";
    assert_eq!(
        output,
        Output::text(expected).summary("0 lines in 0 files").truncated(true)
    );
}

#[test]
fn a_long_line_is_shown_around_what_was_found() {
    let line = format!("{}needle{}", "é".repeat(1000), "z".repeat(1000));
    let shown = clipped(&line, line.find("needle").unwrap());
    assert_eq!(shown, format!("…{}needle{}…", "é".repeat(75), "z".repeat(219)));
}

#[test]
fn without_a_grant_the_search_is_denied() {
    let expected = Error::denied("not readable here: no directory is granted to this tool");
    assert_eq!(search_in(&[], plain("x"), Until::after(LONGEST_WALK)), Err(expected));
}

proptest! {
    #[test]
    fn the_lines_found_are_those_that_have_the_text(content in "[ab\r\n.é]{0,80}", pattern in "[ab.é]{1,3}") {
        let lines = content.lines().enumerate().filter(|(_, line)| line.contains(&pattern));
        let expected: Vec<String> = lines.map(|(at, line)| format!("f:{}: {line}", at + 1)).collect();
        let said = found(&[("f", content.as_bytes())], plain(&pattern)).unwrap();
        let expected = if expected.is_empty() { "[nothing found]".to_owned() } else { expected.join("\n") };
        prop_assert_eq!(said, expected);
    }

    #[test]
    fn any_bytes_and_any_expression_end_in_words(bytes in proptest::collection::vec(any::<u8>(), 0..200), pattern in ".{0,12}", context in 0u64..4) {
        let _ = found(&[("f", &bytes)], Asked { regex: true, context, ..plain(&pattern) });
    }
}
