//! `files-list`, `files-read`, `files-search`, `files-write`, `files-edit`.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use super::{call, refused, said, with};
use crate::support::Sandbox;

/// The example, with a file beyond its grants.
fn story() -> Sandbox {
    let sandbox = with("files-demo");
    sandbox.write("c/secret.txt", "secret");
    sandbox
}

fn denied(tool: &str, what: &str) -> (String, String) {
    ("denied".to_owned(), format!("tool '{tool}' failed: {what}"))
}

fn failed(tool: &str, what: &str) -> (String, String) {
    ("failed".to_owned(), format!("tool '{tool}' failed: {what}"))
}

#[test]
fn granted_directories_are_listed_and_searched_where_no_path_is_given() {
    let sandbox = story();
    assert_eq!(said(&sandbox, "files-list", &json!({})), "/notes/\n/out/");
    let notes = "monday.md (112 bytes)\ntuesday.md (86 bytes)";
    assert_eq!(said(&sandbox, "files-list", &json!({"path": "/notes"})), notes);
    let found = "/notes/monday.md:4: - Open: who signs the report of the inspection?\n\
                 /notes/tuesday.md:3: - Open: is the second valve in stock?";
    assert_eq!(said(&sandbox, "files-search", &json!({"pattern": "Open:"})), found);
}

#[test]
fn what_no_grant_covers_is_denied_to_each_tool() {
    let sandbox = story();
    let granted = "no grant covers '/etc/passwd'; the granted directories are /notes, /out";
    let read = format!("not readable here: {granted}");
    let write = format!("not writable here: {granted}");
    let path = "/etc/passwd";
    let tries: [(&str, Value, &str); 5] = [
        ("files-list", json!({"path": path}), &read),
        ("files-read", json!({"path": path}), &read),
        ("files-search", json!({"path": path, "pattern": "root"}), &read),
        (
            "files-write",
            json!({"path": path, "content": "x", "overwrite": true}),
            &write,
        ),
        (
            "files-edit",
            json!({"path": path, "old_text": "root", "new_text": "x"}),
            &write,
        ),
    ];
    for (tool, arguments, what) in tries {
        assert_eq!(refused(&sandbox, tool, &arguments), denied(tool, what));
    }
}

#[test]
fn links_and_dots_do_not_lead_out() {
    let sandbox = story();
    symlink("../secret.txt", sandbox.work("c/notes/link.md")).unwrap();
    symlink(sandbox.work("c"), sandbox.work("c/out/up")).unwrap();
    let out = "is denied, or leads out of the granted directory";
    for path in ["/notes/link.md", "/notes/../secret.txt", "/out/up/secret.txt"] {
        let what = format!("not readable here: '{path}' {out}");
        let arguments = json!({"path": path});
        assert_eq!(refused(&sandbox, "files-read", &arguments), denied("files-read", &what));
    }
    assert_eq!(
        said(&sandbox, "files-search", &json!({"pattern": "secret"})),
        "[nothing found]"
    );
    let arguments = json!({"path": "/out/up/secret.txt", "content": "x", "overwrite": true});
    assert_eq!(refused(&sandbox, "files-write", &arguments).0, "denied");
    assert_eq!(fs::read(sandbox.work("c/secret.txt")).unwrap(), b"secret");
}

#[test]
fn what_is_granted_for_reading_is_not_changed() {
    let sandbox = story();
    let before = fs::read(sandbox.work("c/notes/monday.md")).unwrap();
    let why = |path: &str| {
        format!("not writable here: '{path}' is granted for reading only, or leads out of the granted directory")
    };

    let edit = json!({"path": "/notes/monday.md", "old_text": "Open", "new_text": "Closed"});
    assert_eq!(
        refused(&sandbox, "files-edit", &edit),
        denied("files-edit", &why("/notes/monday.md"))
    );
    for path in ["/notes/monday.md", "/notes/new.md", "/notes/new/new.md"] {
        let write = json!({"path": path, "content": "x", "overwrite": true});
        assert_eq!(
            refused(&sandbox, "files-write", &write),
            denied("files-write", &why(path))
        );
    }
    assert_eq!(fs::read(sandbox.work("c/notes/monday.md")).unwrap(), before);
    assert_eq!(fs::read_dir(sandbox.work("c/notes")).unwrap().count(), 2);
}

#[test]
fn files_are_written_edited_and_read_again() {
    let sandbox = story();
    let path = "/out/a/b.txt";
    let write = json!({"path": path, "content": "one\r\ntwo\r\nthree\r\n"});
    assert_eq!(said(&sandbox, "files-write", &write), "wrote '/out/a/b.txt': 17 bytes");
    let again = "'/out/a/b.txt' is already there: edit it, or set overwrite to replace all of it";
    assert_eq!(refused(&sandbox, "files-write", &write), failed("files-write", again));

    let edit = json!({"path": path, "old_text": "one\ntwo", "new_text": "1\n2\n2½"});
    let edited = "'/out/a/b.txt': replaced 1 place, in line 1\n     1\t1\n     2\t2\n     3\t2½\n     4\tthree";
    assert_eq!(said(&sandbox, "files-edit", &edit), edited);
    assert_eq!(
        fs::read_to_string(sandbox.work("c/out/a/b.txt")).unwrap(),
        "1\r\n2\r\n2½\r\nthree\r\n"
    );
    // Nothing is left beside it.
    assert_eq!(fs::read_dir(sandbox.work("c/out/a")).unwrap().count(), 1);

    let read = json!({"path": path, "from_line": 3, "max_lines": 1});
    assert_eq!(
        said(&sandbox, "files-read", &read),
        "2½\n[lines 3 to 3; go on with from_line 4; lines end with CR LF]"
    );
    let twice = json!({"path": path, "old_text": "2", "new_text": "x"});
    let why = "old_text is at 2 places in '/out/a/b.txt' (lines 2, 3): add lines around the one that is meant, or set replace_all";
    assert_eq!(refused(&sandbox, "files-edit", &twice), failed("files-edit", why));
}

#[test]
fn what_is_no_text_is_refused_in_words() {
    let sandbox = story();
    sandbox.write("c/out/image", b"\x89PNG\0\0");
    let why = "'/out/image' is a binary file: this tool takes UTF-8 text only";
    assert_eq!(
        refused(&sandbox, "files-read", &json!({"path": "/out/image"})),
        failed("files-read", why)
    );
    let edit = json!({"path": "/out/image", "old_text": "PNG", "new_text": "x"});
    assert_eq!(refused(&sandbox, "files-edit", &edit), failed("files-edit", why));
    let found = "[nothing found]\n[files left out: 1 binary]";
    assert_eq!(
        said(&sandbox, "files-search", &json!({"pattern": "PNG", "path": "/out"})),
        found
    );
}

#[test]
fn a_directory_of_thousands_is_listed_in_part() {
    let sandbox = story();
    for i in 0..3000 {
        sandbox.write(&format!("c/out/{i:04}"), "");
    }
    let listed = said(
        &sandbox,
        "files-list",
        &json!({"path": "/out", "pattern": "????", "max_entries": 2000}),
    );
    let end = "1999 (0 bytes)\n[there is more than these 2000 entries: list a directory below, or give a pattern]";
    assert!(listed.ends_with(end), "{}", &listed[listed.len() - 200..]);
    assert_eq!(listed.lines().count(), 2001);
}

#[test]
fn arguments_that_do_not_fit_never_reach_the_tool() {
    let sandbox = story();
    let ran = call(
        &sandbox,
        "files-read",
        &json!({"path": "/notes/monday.md", "from_line": 0}),
    );
    assert_eq!(ran.code, 1, "{ran:#?}");
    let (status, _) = refused(&sandbox, "files-read", &json!({"path": ""}));
    assert_eq!(status, "invalid");
}
