use std::fs;
use std::path::Path;

use capsule_guest::{Error, Json, Output, StateEffect, Tool, json};
use tempfile::TempDir;

use crate::ReadFile;
use crate::read::MOST_ENTRIES;

fn directory_with(files: &[(&str, &[u8])]) -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (name, content) in files {
        fs::write(dir.path().join(name), content).expect("a file");
    }
    dir
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is UTF-8")
}

fn read(path: &Path, rest: &Json) -> Result<Output, Error> {
    let mut input = rest.clone();
    input["path"] = json!(text(path));
    ReadFile::call(input)
}

fn expected(path: &Path, output: Output) -> Result<Output, Error> {
    Ok(output.state_effect(StateEffect::Read).resource_id(text(path)))
}

fn failed(path: &Path, message: &str) -> Result<Output, Error> {
    Err(Error::new(message)
        .metadata("state_effect", "read")
        .metadata("resource_id", text(path)))
}

#[test]
fn a_short_file_is_read_whole() {
    let dir = directory_with(&[("a.txt", "żółw\n".as_bytes())]);
    let path = dir.path().join("a.txt");

    let summary = format!("{}: bytes 0 to 8 of 8", text(&path));
    assert_eq!(
        read(&path, &json!({})),
        expected(&path, Output::text("żółw\n").summary(summary))
    );
}

#[test]
fn a_long_file_comes_in_parts_that_end_between_characters() {
    let dir = directory_with(&[("a.txt", "abcdéfgh".as_bytes())]);
    let path = dir.path().join("a.txt");

    // When five bytes are asked for, the fifth is the first half of a character.
    let first = Output::text("abcd\n[bytes 0 to 4 of 9; go on with offset 4]")
        .summary(format!("{}: bytes 0 to 4 of 9", text(&path)))
        .truncated(true)
        .metadata("next_offset", "4");
    assert_eq!(read(&path, &json!({"max_bytes": 5})), expected(&path, first));

    let rest = Output::text("éfgh").summary(format!("{}: bytes 4 to 9 of 9", text(&path)));
    assert_eq!(read(&path, &json!({"offset": 4})), expected(&path, rest));

    // An offset in the middle of a character begins at the next one.
    let middle = Output::text("fgh").summary(format!("{}: bytes 6 to 9 of 9", text(&path)));
    assert_eq!(read(&path, &json!({"offset": 5})), expected(&path, middle));
}

#[test]
fn the_end_of_a_file_is_an_empty_part_and_beyond_it_a_failure() {
    let dir = directory_with(&[("a.txt", b"abc")]);
    let path = dir.path().join("a.txt");

    let end = Output::text("").summary(format!("{}: bytes 3 to 3 of 3", text(&path)));
    assert_eq!(read(&path, &json!({"offset": 3})), expected(&path, end));
    let message = format!("offset 4 is after the end: '{}' has 3 bytes", text(&path));
    assert_eq!(read(&path, &json!({"offset": 4})), failed(&path, &message));
}

#[test]
fn a_directory_is_listed_in_order() {
    let dir = directory_with(&[("b.txt", b""), ("a.txt", b"")]);
    fs::create_dir(dir.path().join("c")).expect("a directory");

    let listing = Output::text("a.txt\nb.txt\nc/").summary(format!("{}: 3 entries", text(dir.path())));
    assert_eq!(read(dir.path(), &json!({})), expected(dir.path(), listing));

    let empty = Output::text("[an empty directory]").summary(format!("{}/c: 0 entries", text(dir.path())));
    assert_eq!(
        read(&dir.path().join("c"), &json!({})),
        expected(&dir.path().join("c"), empty)
    );
}

#[test]
fn a_huge_directory_is_cut_and_says_so() {
    let dir = directory_with(&[]);
    for i in 0..=MOST_ENTRIES {
        fs::write(dir.path().join(format!("{i:05}")), b"").expect("a file");
    }

    let names: Vec<String> = (0..MOST_ENTRIES).map(|i| format!("{i:05}")).collect();
    let listing = Output::text(names.join("\n") + "\n[the first 1000 of 1001 entries]")
        .summary(format!("{}: 1001 entries", text(dir.path())))
        .truncated(true);
    assert_eq!(read(dir.path(), &json!({})), expected(dir.path(), listing));
}

#[test]
fn what_is_not_there_or_not_text_fails_in_words() {
    let dir = directory_with(&[("image", b"ab\xff\xd8"), ("cut", b"ab\xc3")]);
    let path = |name: &str| dir.path().join(name);

    let missing = path("missing");
    assert_eq!(
        read(&missing, &json!({})),
        failed(&missing, &format!("not found: '{}'", text(&missing)))
    );
    let below = path("image/x");
    let message = format!("not found: a part of '{}' is not a directory", text(&below));
    assert_eq!(read(&below, &json!({})), failed(&below, &message));
    // A character that the file itself cuts is not text either, however the part was limited.
    for name in ["image", "cut"] {
        let path = path(name);
        let message = format!(
            "'{}' is not UTF-8 text (byte 2): this tool reads text only",
            text(&path)
        );
        assert_eq!(read(&path, &json!({})), failed(&path, &message));
    }
}

#[test]
fn a_device_is_refused_without_being_opened() {
    let path = Path::new("/dev/null");
    let message = "'/dev/null' is neither a file nor a directory";
    assert_eq!(read(path, &json!({})), failed(path, message));
}
