use super::*;
use crate::testing::{directory_with, failed, output, text};
use proptest::prelude::*;
use std::fs;

fn changed(text: &str, lines: &[usize]) -> Result<Changed, Unchanged> {
    Ok(Changed {
        text: text.to_owned(),
        lines: lines.to_vec(),
    })
}

#[test]
fn a_piece_of_a_file_is_replaced_and_shown_in_its_place() {
    let dir = directory_with(&[("f", b"1\n2\n3\nold\n5\n6\n7\n")]);
    let path = text(&dir.path().join("f"));
    let asked = Asked {
        path: &path,
        old: "old\n",
        new: "new\nnewer\n",
        all: false,
    };

    let said = format!("'{path}': replaced 1 place, in line 4");
    let shown = "     2\t2\n     3\t3\n     4\tnew\n     5\tnewer\n     6\t5\n     7\t6";
    let expected = Output::text(format!("{said}\n{shown}")).summary(said);
    assert_eq!(edit(asked), Ok(output(expected, StateEffect::Mutate, &path)));
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n3\nnew\nnewer\n5\n6\n7\n");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_piece_at_several_places_is_refused_or_replaced_at_all() {
    let two = "a\nb\na\n";
    assert_eq!(change(two, "a", "x", false), Err(Unchanged::Ambiguous(vec![1, 3])));
    assert_eq!(change(two, "a", "x\ny", true), changed("x\ny\nb\nx\ny\n", &[1, 4]));
    // Which two of the three would be a guess.
    assert_eq!(change("aaa", "aa", "x", false), Err(Unchanged::Ambiguous(vec![1, 1])));
    assert_eq!(change("ééé", "éé", "x", true), changed("xé", &[1]));

    let message = Unchanged::Ambiguous((1..=12).collect()).error("/f");
    let expected = "old_text is at 12 places in '/f' (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …): add lines around the one that is \
        meant, or set replace_all";
    assert_eq!(message.message(), expected);
}

#[test]
fn line_ends_of_the_file_are_kept() {
    assert_eq!(
        change("a\r\nb\r\nc\r\n", "a\nb", "x\ny", false),
        changed("x\r\ny\r\nc\r\n", &[1])
    );
    assert_eq!(change("a\r\nb\r\n", "a\r\n", "", false), changed("b\r\n", &[1]));
    // Where they are mixed, nobody can know: what is given is what is meant.
    assert_eq!(
        change("a\r\nb\n", "a\nb", "x", false),
        Err(Unchanged::NotFound(Some(1)))
    );
    assert_eq!(change("a\r\nb\n", "b\n", "x\n", false), changed("a\r\nx\n", &[2]));
}

#[test]
fn a_piece_that_is_not_there_is_refused_with_a_hint_where_white_space_differs() {
    assert_eq!(
        change("a\n    b\nc\n", "  b\n  c", "x", false),
        Err(Unchanged::NotFound(Some(2)))
    );
    assert_eq!(change("a\n", "x", "y", false), Err(Unchanged::NotFound(None)));
    assert_eq!(change("a\n", " \n ", "y", false), Err(Unchanged::NotFound(None)));
    assert_eq!(change("a\n", "", "y", false), Err(Unchanged::Empty));
    assert_eq!(change("a\n", "a", "a", false), Err(Unchanged::Same));
}

#[test]
fn a_refused_edit_leaves_the_file_as_it_is() {
    let dir = directory_with(&[("f", b"a"), ("bin", b"a\0")]);
    let asked = |path, old| Asked {
        path,
        old,
        new: "x",
        all: false,
    };
    let path = text(&dir.path().join("f"));
    let message = format!("old_text is not in '{path}': read the file, and copy it exactly");
    assert_eq!(edit(asked(&path, "b")), Err(failed(message, "mutate", &path)));
    let bin = text(&dir.path().join("bin"));
    let message = format!("'{bin}' is a binary file: this tool takes UTF-8 text only");
    assert_eq!(edit(asked(&bin, "a")), Err(failed(message, "mutate", &bin)));
    let missing = text(&dir.path().join("missing"));
    assert_eq!(
        edit(asked(&missing, "a")),
        Err(failed(format!("not found: '{missing}'"), "mutate", &missing))
    );
    assert_eq!(fs::read(dir.path().join("bin")).unwrap(), b"a\0");
}

proptest! {
    #[test]
    fn one_place_is_replaced_exactly_there(before in "[ab\n]{0,20}", old in "[xyz\né]{1,6}x", new in "[a-z\n]{0,8}", after in "[ab\n]{0,20}") {
        prop_assume!(places(&format!("{before}{old}{after}"), &old, true).len() == 1 && old != new);
        let text = format!("{before}{old}{after}");
        let expected = Changed { text: format!("{before}{new}{after}"), lines: vec![line_of(&text, before.len())] };
        prop_assert_eq!(change(&text, &old, &new, false), Ok(expected));
    }

    #[test]
    fn all_places_are_replaced_as_the_standard_library_does(text in "[ab\n]{0,40}", old in "[ab]{1,3}", new in "[a-c\n]{0,4}") {
        prop_assume!(old != new && text.contains(&old));
        let changed = change(&text, &old, &new, true).unwrap();
        prop_assert_eq!(&changed.text, &text.replace(&old, &new));
        prop_assert_eq!(changed.lines.len(), text.matches(&old).count());
    }

    #[test]
    fn a_file_of_cr_lf_stays_one(lines in proptest::collection::vec("[ab]{0,3}", 2..10), old in "[ab\n]{1,4}", new in "[ab\n]{0,4}") {
        let text = lines.join("\r\n");
        if let Ok(changed) = change(&text, &old, &new, true) {
            prop_assert_ne!(LineEnds::of(&changed.text), LineEnds::Mixed);
        }
    }

    #[test]
    fn any_texts_end_in_a_change_or_in_words(text in any::<String>(), old in any::<String>(), new in any::<String>(), all in any::<bool>()) {
        match change(&text, &old, &new, all) {
            Ok(changed) => drop(around(&changed.text, changed.lines[0], new.lines().count())),
            Err(why) => drop(why.error("/f")),
        }
    }
}
