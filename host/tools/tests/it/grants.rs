//! Grants: what is not granted is not there.

use std::{fs, os::unix::fs::symlink, path::Path, sync::Arc};

use capsule_api::ToolStatus;
use capsule_tools::{Mode, Narrowing, Preopen};

use crate::{
    guests::{self, Guest},
    support::{Capsule, said},
};

const NOT_PERMITTED: &str = "31";
const CREATE: i32 = 1;
const TRUNCATE: i32 = 8;
const READ: i32 = 1;
const WRITE: i32 = 2;

async fn open(mode: Mode, guest: Guest, path: &str, prepare: impl Fn(&Path)) -> (ToolStatus, String) {
    let mut capsule = Capsule::with("open", guest.build_with_data(path));
    let host = capsule.directory("granted");
    fs::write(host.join("notes.txt"), "keep me").unwrap();
    fs::write(capsule.path("outside.txt"), "secret").unwrap();
    prepare(&host);
    capsule.grants.filesystem.push(Preopen {
        host,
        guest: "/data".into(),
        mode,
    });
    let reply = capsule.turn().ask("open").await;
    assert_eq!(
        fs::read_to_string(capsule.path("granted/notes.txt")).unwrap(),
        "keep me"
    );
    assert_eq!(fs::read_to_string(capsule.path("outside.txt")).unwrap(), "secret");
    reply
}

fn refused(code: &str) -> (ToolStatus, String) {
    said(ToolStatus::Failed, &format!("tool 'open' failed: {code}"))
}

#[tokio::test]
async fn a_granted_directory_can_be_read_and_written_as_its_mode_says() {
    let nothing = |_: &Path| ();
    let passed = said(ToolStatus::Passed, "notes.txt");
    assert_eq!(
        open(Mode::Ro, guests::opens(0, READ), "notes.txt", nothing).await,
        passed
    );
    assert_eq!(
        open(Mode::Rw, guests::opens(0, READ | WRITE), "notes.txt", nothing).await,
        passed
    );
    let created = said(ToolStatus::Passed, "new.txt");
    assert_eq!(
        open(Mode::Rw, guests::opens(CREATE, WRITE), "new.txt", nothing).await,
        created
    );
}

#[tokio::test]
async fn w_03_read_only_holds_against_every_way_to_open() {
    for guest in [
        guests::opens(0, WRITE),
        guests::opens(0, READ | WRITE),
        guests::opens(TRUNCATE, READ),
        guests::opens(TRUNCATE, WRITE),
        guests::opens(CREATE, READ),
    ] {
        assert_eq!(open(Mode::Ro, guest, "notes.txt", |_| ()).await, refused(NOT_PERMITTED));
    }
}

#[tokio::test]
async fn w_03_no_path_leaves_the_granted_directory() {
    let links = |host: &Path| {
        symlink("../outside.txt", host.join("link")).unwrap();
        symlink("..", host.join("up")).unwrap();
        symlink("/", host.join("root")).unwrap();
    };
    for path in [
        "../outside.txt",
        "/etc/passwd",
        "link",
        "up/outside.txt",
        "up/",
        "root/etc/passwd",
        "/proc/self/environ",
        "root/proc/self/environ",
        "./../granted/../outside.txt",
    ] {
        let (status, text) = open(Mode::Rw, guests::opens(0, READ), path, links).await;
        assert_eq!(
            (status, text.as_str()),
            (ToolStatus::Failed, "tool 'open' failed: 31"),
            "{path}"
        );
    }
}

/// Takes `notes.txt` from one granted directory into another; what the guest was told, and where the file is then.
async fn take(function: &str, from: Mode, to: Mode) -> ((ToolStatus, String), bool, bool) {
    let mut capsule = Capsule::with("open", guests::takes_across(function).build_with_data("notes.txt"));
    for (name, mode) in [("from", from), ("to", to)] {
        let host = capsule.directory(name);
        let guest = format!("/{name}");
        capsule.grants.filesystem.push(Preopen { host, guest, mode });
    }
    fs::write(capsule.path("from/notes.txt"), "keep me").unwrap();
    let reply = capsule.turn().ask("open").await;
    (
        reply,
        capsule.path("from/notes.txt").exists(),
        capsule.path("to/notes.txt").exists(),
    )
}

#[tokio::test]
async fn w_03_no_file_crosses_the_border_of_a_read_only_directory() {
    for function in ["rename-at", "link-at"] {
        let unmoved = (refused(NOT_PERMITTED), true, false);
        assert_eq!(take(function, Mode::Ro, Mode::Rw).await, unmoved, "{function} out");
        assert_eq!(take(function, Mode::Rw, Mode::Ro).await, unmoved, "{function} in");
    }
    let moved = (said(ToolStatus::Passed, "notes.txt"), false, true);
    assert_eq!(take("rename-at", Mode::Rw, Mode::Rw).await, moved);
}

#[tokio::test]
async fn w_03_a_link_made_by_a_guest_leads_nowhere_it_may_not_go() {
    let absolute = open(Mode::Rw, guests::links_to(), "/etc/passwd", |_| ()).await;
    assert_eq!(absolute, refused(NOT_PERMITTED));
    let nothing_made = open(Mode::Ro, guests::links_to(), "notes.txt", |_| ()).await;
    assert_eq!(nothing_made, refused(NOT_PERMITTED));
    // One that leads out may be made, as far as the file system is concerned; going through it is what is refused.
    let made = open(Mode::Rw, guests::links_to(), "../outside.txt", |_| ()).await;
    assert_eq!(made, said(ToolStatus::Passed, "../outside.txt"));
    let followed = |path| {
        let link = |host: &Path| symlink("../outside.txt", host.join("s")).unwrap();
        open(Mode::Rw, guests::opens(0, READ), path, link)
    };
    assert_eq!(followed("s").await, refused(NOT_PERMITTED));
    assert_ne!(followed("s/").await.0, ToolStatus::Passed);
}

/// A tool that may write `work`, and one that may read `work/s` alone. Outside of both is `outside/notes.txt`.
fn one_inside_the_other() -> Capsule {
    let link = guests::links_to().build_with_data("../outside");
    let mut capsule = Capsule::with("link", link).tool("open", guests::opens(0, READ).build_with_data("notes.txt"));
    for name in ["work/s", "outside"] {
        fs::write(capsule.directory(name).join("notes.txt"), name).unwrap();
    }
    let grant = |name: &str, mode| Preopen {
        host: capsule.path(name),
        guest: format!("/{name}"),
        mode,
    };
    capsule.grants.filesystem = vec![grant("work", Mode::Rw), grant("work/s", Mode::Ro)];
    for (source, own) in capsule.sources.iter_mut().zip(&capsule.grants.filesystem) {
        source.capabilities = Some(Narrowing {
            filesystem: vec![own.clone()],
            ..Narrowing::default()
        });
    }
    capsule
}

#[tokio::test]
async fn w_03_a_link_in_the_place_of_a_granted_directory_is_not_followed() {
    let capsule = one_inside_the_other();
    let turn = capsule.turn();
    assert_eq!(turn.ask("open").await, said(ToolStatus::Passed, "notes.txt"));

    fs::remove_dir_all(capsule.path("work/s")).unwrap();
    assert_eq!(turn.ask("link").await, said(ToolStatus::Passed, "../outside"));

    let (status, text) = turn.ask("open").await;
    let start = format!(
        "tool 'open' failed: the granted directory {} cannot be opened: Not a directory",
        capsule.dir.path().canonicalize().unwrap().join("work/s").display()
    );
    assert_eq!(status, ToolStatus::Failed);
    assert!(text.starts_with(&start), "{text}");
}

#[test]
fn w_03_a_grant_that_leads_out_of_what_tools_may_write_is_refused() {
    let mut capsule = one_inside_the_other();
    capsule.sources.clear();
    fs::remove_dir_all(capsule.path("work/s")).unwrap();
    symlink("../outside", capsule.path("work/s")).unwrap();
    let (code, message) = capsule.refusals().remove(0);
    let told = "the grant of work/s at `/work/s`: it leads to outside by a link inside work, which tools may write";
    assert_eq!((code, message.as_str()), ("tool-grant-directory", told));

    // What tools cannot change is the person's own.
    capsule.grants.filesystem[0].mode = Mode::Ro;
    capsule.load().unwrap();
}

#[tokio::test]
async fn without_a_grant_there_is_no_directory() {
    let turn = Capsule::with("open", guests::opens(0, READ).build_with_data("etc/passwd")).turn();
    assert_eq!(turn.ask("open").await, said(ToolStatus::Failed, "tool 'open' failed: "));
}

#[tokio::test]
async fn a_granted_directory_that_went_away_fails_the_call() {
    let mut capsule = Capsule::with("echo", guests::echo().build());
    let host = capsule.directory("granted");
    capsule.grants.filesystem.push(Preopen {
        host: host.clone(),
        guest: "/data".into(),
        mode: Mode::Ro,
    });
    let turn = capsule.turn();
    fs::remove_dir(&host).unwrap();
    let (status, text) = turn.ask("echo").await;
    let start = format!(
        "tool 'echo' failed: the granted directory {} cannot be opened: No such file",
        host.display()
    );
    assert_eq!(status, ToolStatus::Failed);
    assert!(text.starts_with(&start), "{text}");
}

#[tokio::test]
async fn only_granted_variables_reach_a_tool() {
    let mut capsule = Capsule::with("env", guests::environment().build_with_data("nothing there"));
    capsule.options.env = Arc::new(|name| Some(format!("value of {name}")));
    assert_eq!(
        capsule.turn().ask("env").await,
        said(ToolStatus::Failed, "tool 'env' failed: nothing there")
    );
    capsule.grants.env.push("CITY".into());
    assert_eq!(
        capsule.turn().ask("env").await,
        said(ToolStatus::Passed, "value of CITY")
    );
}

#[tokio::test]
async fn the_host_s_command_line_does_not_reach_a_tool() {
    let count = guests::guest(
        "(call $arguments (i32.const 32))
         (call $ret (i32.load (i32.const 36)) (i32.const 64) (global.get $data))",
    )
    .imports(
        "wasi:cli/environment@0.2.3",
        r#"(import "wasi:cli/environment@0.2.3" "get-arguments" (func $arguments (param i32)))"#,
    );
    let turn = Capsule::with("argv", count.build_with_data("none")).turn();
    assert_eq!(turn.ask("argv").await, said(ToolStatus::Passed, "none"));
}

#[tokio::test]
async fn a_granted_variable_that_is_not_set_is_a_warning_and_not_there() {
    let mut capsule = Capsule::with("env", guests::environment().build_with_data("nothing there"));
    capsule.options.env = Arc::new(|_| None);
    capsule.grants.env.push("CITY".into());
    let turn = capsule.turn();
    let warnings: Vec<_> = turn
        .toolbox
        .warnings()
        .iter()
        .map(|warning| warning.message.as_str())
        .collect();
    assert_eq!(
        warnings,
        ["the environment variable CITY is granted to the tools but not set"]
    );
    assert_eq!(turn.ask("env").await.0, ToolStatus::Failed);
}

#[tokio::test]
async fn every_http_request_is_denied_without_a_connection() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let turn = Capsule::with("http", guests::requests().build_with_data(&address)).turn();
    assert_eq!(
        turn.ask("http").await,
        said(
            ToolStatus::Denied,
            &format!(
                "tool 'http' failed: {address}\n(an HTTP request to https://{address} was denied: no grant covers it; `capabilities.network.allow: [https://{address}]` would)"
            )
        )
    );
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
