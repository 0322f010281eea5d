//! What a CLI, or anybody else, may put into the place of a credential file.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

use capsule_api::Secret;
use rustix::fs::Mode;
use serde_json::json;

use super::*;
use crate::Stamp;

const FORMAT: crate::Format = crate::Format {
    program: "agent",
    file: "login.json",
    variable: "AGENT_HOME",
    directory: ".agent",
    parts: &["login"],
    grant: |parts| {
        Some(Grant {
            plan: None,
            account: None,
            stamp: Stamp::millis(parts.get("login")?["at"].as_u64()?),
            expires: None,
            renewable: true,
            secrets: vec![Secret::new("token")],
        })
    },
    log_in: "Run `agent login`.",
};

fn login(at: u64) -> Value {
    json!({"login": {"at": at}})
}

/// The login of a person, and what was lent of it.
struct Home {
    dir: tempfile::TempDir,
    pledge: Pledge,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for place in ["home", "run"] {
            fs::create_dir(dir.path().join(place)).unwrap();
        }
        let file = dir.path().join("home/login.json");
        fs::write(&file, login(1).to_string()).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let original = Original::find(&FORMAT, Some(&dir.path().join("home"))).unwrap();
        let content = original.read().unwrap();
        let pledge = Pledge::make(original, &content, &dir.path().join("run")).unwrap();
        Self { dir, pledge }
    }

    fn original(&self) -> Value {
        serde_json::from_slice(&fs::read(self.dir.path().join("home/login.json")).unwrap()).unwrap()
    }
}

fn pipe(path: &Path) {
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
}

#[test]
fn what_a_cli_puts_into_the_place_of_its_copy_is_neither_followed_nor_waited_for_nor_put_back() {
    type Put = fn(&Path);
    let puts: [(&str, Put); 6] = [
        ("a link to a later login", |copy| {
            let elsewhere = copy.with_file_name("elsewhere.json");
            fs::write(&elsewhere, login(2).to_string()).unwrap();
            symlink(elsewhere, copy).unwrap();
        }),
        ("a link to nothing", |copy| symlink("/nonexistent", copy).unwrap()),
        ("a device without an end", |copy| symlink("/dev/zero", copy).unwrap()),
        ("a pipe that nobody writes", pipe),
        ("a directory", |copy| fs::create_dir(copy).unwrap()),
        ("a later login of more than 1 MiB", |copy| {
            let mut large = login(2);
            large["padding"] = "x".repeat(1 << 20).into();
            fs::write(copy, large.to_string()).unwrap();
        }),
    ];
    for (what, put) in puts {
        let mut home = Home::new();
        fs::remove_file(&home.pledge.copy).unwrap();
        put(&home.pledge.copy);
        assert_eq!(home.pledge.compare().unwrap(), Compared::Spoilt, "{what}");
        assert_eq!(home.original(), login(1), "{what}");
        let removed = home.pledge.remove();
        assert_eq!(removed.is_err(), what == "a directory", "{what}");
        assert_eq!(fs::read_dir(home.dir.path().join("home")).unwrap().count(), 1, "{what}");
    }
}

#[test]
fn an_original_that_is_no_file_is_refused_at_once() {
    type Put = fn(&Path);
    let puts: [(&str, Put); 3] = [
        ("a pipe that nobody writes", pipe),
        ("a directory", |path| fs::create_dir(path).unwrap()),
        ("a device without an end", |path| symlink("/dev/zero", path).unwrap()),
    ];
    for (what, put) in puts {
        let home = tempfile::tempdir().unwrap();
        put(&home.path().join("login.json"));
        let original = Original::find(&FORMAT, Some(home.path())).unwrap();
        let error = original.grant().unwrap_err();
        assert_eq!(error.code, codes::LOGIN_UNREADABLE.id, "{what}");
        assert!(error.message.ends_with("it is not a file"), "{what}: {}", error.message);
    }
}

#[test]
fn a_renewed_login_keeps_its_owner_and_its_mode() {
    let mut home = Home::new();
    let file = home.dir.path().join("home/login.json");
    // Only the superuser may give a file away.
    if rustix::process::geteuid().is_root() {
        chown(&file, Some(12_345), Some(12_346)).unwrap();
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let whose = |about: fs::Metadata| (about.uid(), about.gid(), about.mode() & 0o7777);
    let before = whose(fs::metadata(&file).unwrap());
    fs::write(&home.pledge.copy, login(2).to_string()).unwrap();
    assert!(matches!(home.pledge.compare().unwrap(), Compared::Returned(_)));
    assert_eq!(
        (home.original(), whose(fs::metadata(&file).unwrap())),
        (login(2), before)
    );
}
