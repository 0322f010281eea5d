//! The copy and its original under every order of renewals, new logins, log-outs and deaths.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use capsule_api::Secret;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{
    Format, Grant, Original, Stamp,
    pledge::{Compared, Pledge},
};

pub(crate) const FORMAT: Format = Format {
    program: "agent",
    file: "login.json",
    variable: "AGENT_HOME",
    directory: ".agent",
    parts: &["login"],
    grant,
    log_in: "Run `agent login`.",
};

fn grant(parts: &Map<String, Value>) -> Option<Grant> {
    let login = parts.get("login")?;
    Some(Grant {
        plan: None,
        account: login["account"].as_str().map(str::to_owned),
        stamp: Stamp::millis(login["at"].as_u64()?),
        expires: None,
        renewable: true,
        secrets: vec![Secret::new(login["token"].as_str()?)],
    })
}

fn login(account: Option<&str>, at: u64) -> Value {
    json!({"account": account, "at": at, "token": format!("token-{at}")})
}

/// A home with a login, and the directories of two runs.
struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new(login: &Value) -> Self {
        let home = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        for name in ["home", "a", "b"] {
            fs::create_dir(home.dir.path().join(name)).unwrap();
        }
        fs::write(
            home.file(),
            json!({"login": login, "other": "of the CLI's own"}).to_string(),
        )
        .unwrap();
        fs::set_permissions(home.file(), fs::Permissions::from_mode(0o600)).unwrap();
        home
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("home/login.json")
    }

    fn copy(&self, run: &str) -> PathBuf {
        self.dir.path().join(run).join("login.json")
    }

    fn lend(&self, run: &str) -> Option<Pledge> {
        let original = Original::find(&FORMAT, Some(&self.dir.path().join("home"))).ok()?;
        let _lock = original.lock().unwrap();
        original.sweep();
        let content = original.read().ok()?;
        original.grant_in(&content).ok()?;
        Some(Pledge::make(original, &content, &self.dir.path().join(run)).unwrap())
    }

    fn original(&self) -> Option<Value> {
        Some(read(&self.file())?["login"].clone())
    }
}

fn read(path: &Path) -> Option<Value> {
    let text = fs::read(path).ok()?;
    Some(serde_json::from_slice(&text).expect("a file is whole or not there"))
}

/// What a CLI does that renews its login.
fn renew(copy: &Path, login: &Value) {
    fs::write(copy, json!({ "login": login }).to_string()).unwrap();
}

#[test]
fn a_copy_has_the_login_alone_and_a_renewed_one_goes_back_into_its_place_once() {
    let home = Home::new(&login(None, 1));
    let mut pledge = home.lend("a").unwrap();
    assert_eq!(read(&home.copy("a")), Some(json!({"login": login(None, 1)})));
    assert_eq!(fs::metadata(home.copy("a")).unwrap().mode() & 0o777, 0o600);
    let before = fs::metadata(home.file()).unwrap();
    assert_eq!(pledge.compare().unwrap(), Compared::Same);
    assert_eq!(
        fs::metadata(home.file()).unwrap().ino(),
        before.ino(),
        "it is not touched"
    );

    fs::set_permissions(home.file(), fs::Permissions::from_mode(0o640)).unwrap();
    renew(&home.copy("a"), &login(None, 2));
    assert!(matches!(pledge.compare().unwrap(), Compared::Returned(_)));
    assert_eq!(
        read(&home.file()),
        Some(json!({"login": login(None, 2), "other": "of the CLI's own"}))
    );
    let after = fs::metadata(home.file()).unwrap();
    assert!(
        after.ino() != before.ino() && after.mode() & 0o777 == 0o640,
        "replaced as a whole, its mode kept"
    );
    assert_eq!(pledge.compare().unwrap(), Compared::Same);
    assert_eq!(fs::metadata(home.file()).unwrap().ino(), after.ino(), "once");
    pledge.remove().unwrap();
    assert!(!home.copy("a").exists());
}

#[test]
fn what_one_run_renews_the_other_gets_and_nobody_uses_a_stale_copy() {
    let home = Home::new(&login(None, 1));
    let (mut a, mut b) = (home.lend("a").unwrap(), home.lend("b").unwrap());
    renew(&home.copy("a"), &login(None, 2));
    assert!(matches!(a.compare().unwrap(), Compared::Returned(_)));
    assert!(matches!(b.compare().unwrap(), Compared::Followed(_)));
    assert_eq!(read(&home.copy("b")), Some(json!({"login": login(None, 2)})));
    renew(&home.copy("b"), &login(None, 3));
    assert!(matches!(b.compare().unwrap(), Compared::Returned(_)));
    assert!(matches!(a.compare().unwrap(), Compared::Followed(_)));
    assert_eq!(home.original(), Some(login(None, 3)));
}

#[test]
fn of_two_renewals_the_later_one_stays_and_an_account_is_never_put_in_anothers_place() {
    // (the account of the copy, when it was renewed, the account that has logged in meanwhile, when, whose stays)
    for (copied, at, logged_in, then, stays) in [
        (Some("me"), 5, Some("me"), 4, login(Some("me"), 5)),
        (Some("me"), 4, Some("me"), 5, login(Some("me"), 5)),
        (Some("me"), 5, Some("other"), 4, login(Some("other"), 4)),
        (None, 5, None, 4, login(None, 4)),
        (None, 4, None, 5, login(None, 5)),
    ] {
        let home = Home::new(&login(copied, 1));
        let mut pledge = home.lend("a").unwrap();
        renew(&home.copy("a"), &login(copied, at));
        fs::write(home.file(), json!({"login": login(logged_in, then)}).to_string()).unwrap();
        pledge.compare().unwrap();
        assert_eq!(home.original(), Some(stays), "{copied:?} {at} {logged_in:?} {then}");
    }
}

#[test]
fn a_login_that_is_gone_is_not_made_anew_and_one_that_the_cli_threw_away_stays_in_the_home() {
    let home = Home::new(&login(None, 1));
    let mut pledge = home.lend("a").unwrap();
    fs::write(home.copy("a"), "{}").unwrap();
    assert_eq!(pledge.compare().unwrap(), Compared::Spoilt);
    assert_eq!(home.original(), Some(login(None, 1)));
    renew(&home.copy("a"), &login(None, 2));
    fs::remove_file(home.file()).unwrap();
    assert_eq!(pledge.compare().unwrap(), Compared::Gone);
    assert!(!home.file().exists());
}

#[test]
fn a_link_stays_a_link() {
    let home = Home::new(&login(None, 1));
    let real = home.dir.path().join("b/real.json");
    fs::rename(home.file(), &real).unwrap();
    symlink(&real, home.file()).unwrap();
    let mut pledge = home.lend("a").unwrap();
    renew(&home.copy("a"), &login(None, 2));
    pledge.compare().unwrap();
    assert!(fs::symlink_metadata(home.file()).unwrap().is_symlink());
    assert_eq!(read(&real).unwrap()["login"], login(None, 2));
}

#[test]
fn what_a_host_left_that_died_while_it_wrote_is_removed_by_the_next() {
    let home = Home::new(&login(None, 1));
    let half = home.dir.path().join("home/login.json.capsule-half-written-abc123");
    fs::write(&half, "{\"login\": {\"tok").unwrap();
    let other = home.dir.path().join("home/login.json.capsule-backup");
    fs::write(&other, "not ours").unwrap();
    home.lend("a").unwrap();
    assert!(!half.exists() && other.exists());
    assert_eq!(home.original(), Some(login(None, 1)));
}

#[test]
fn a_file_that_is_no_login_is_refused_in_words_and_none_of_it_is_shown() {
    for (content, why) in [
        ("{\"login\": {\"token\": \"sk-half", "it is not a JSON object"),
        ("[\"sk-list\"]", "it is not a JSON object"),
        ("{\"login\": \"sk-text\"}", "it holds no login of a subscription"),
        ("{}", "it holds no login of a subscription"),
    ] {
        let home = Home::new(&login(None, 1));
        fs::write(home.file(), content).unwrap();
        let original = Original::find(&FORMAT, Some(&home.dir.path().join("home"))).unwrap();
        let error = original.grant().unwrap_err();
        assert_eq!(
            (error.code, error.hint.as_str()),
            ("process-login-unreadable", "Run `agent login`.")
        );
        assert!(
            error.message.ends_with(why) && !error.message.contains("sk-"),
            "{}",
            error.message
        );
    }
    let empty = tempfile::tempdir().unwrap();
    let error = Original::find(&FORMAT, Some(empty.path())).unwrap_err();
    assert_eq!(
        (error.code, error.hint.as_str()),
        ("process-login-missing", "Run `agent login`.")
    );
}

#[test]
fn a_file_that_others_may_read_is_remarked_on() {
    let home = Home::new(&login(None, 1));
    let original = Original::find(&FORMAT, Some(&home.dir.path().join("home"))).unwrap();
    assert_eq!(original.exposed(), None);
    fs::set_permissions(home.file(), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(original.exposed().unwrap().contains("mode 644"));
}

/// What may happen, in any order; `usize` is the run.
#[derive(Clone, Debug)]
enum Step {
    Lend(usize),
    Renew(usize),
    Compare(usize),
    End(usize),
    /// The host is killed: nothing is compared, nothing removed.
    Die(usize),
    /// The person's own CLI renews the login.
    OwnRenewal,
    LogOut,
}

fn step() -> impl Strategy<Value = Step> {
    let run = || 0..2_usize;
    prop_oneof![
        run().prop_map(Step::Lend),
        run().prop_map(Step::Renew),
        run().prop_map(Step::Compare),
        run().prop_map(Step::End),
        run().prop_map(Step::Die),
        Just(Step::OwnRenewal),
        Just(Step::LogOut),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_the_original_is_whole_never_older_and_never_raised_from_the_dead(
        steps in prop::collection::vec(step(), 1..30),
        named in any::<bool>(),
    ) {
        let account = named.then_some("me");
        let home = Home::new(&login(account, 1));
        let runs = ["a", "b"];
        let mut pledges: [Option<Pledge>; 2] = [None, None];
        let (mut clock, mut newest, mut out) = (1, 1, false);
        for step in steps {
            match step {
                Step::Lend(run) => {
                    pledges[run] = home.lend(runs[run]);
                    prop_assert_eq!(pledges[run].is_some(), !out);
                }
                Step::Renew(run) if pledges[run].is_some() => {
                    clock += 1;
                    renew(&home.copy(runs[run]), &login(account, clock));
                }
                Step::Compare(run) => {
                    if let Some(pledge) = &mut pledges[run] {
                        let compared = pledge.compare().unwrap();
                        prop_assert_eq!(compared == Compared::Gone, out);
                        let copy = read(&home.copy(runs[run])).unwrap();
                        // Afterwards both sides have the same, but where two have renewed without an account to tell them by.
                        prop_assert!(out || compared == Compared::Apart || Some(&copy["login"]) == home.original().as_ref());
                        prop_assert!(compared != Compared::Apart || !named);
                    }
                }
                Step::End(run) => {
                    if let Some(mut pledge) = pledges[run].take() {
                        pledge.compare().unwrap();
                        pledge.remove().unwrap();
                        prop_assert!(!home.copy(runs[run]).exists());
                    }
                }
                Step::Die(run) => pledges[run] = None,
                Step::OwnRenewal if !out => {
                    clock += 1;
                    fs::write(home.file(), json!({"login": login(account, clock)}).to_string()).unwrap();
                }
                Step::LogOut => {
                    out = true;
                    let _ = fs::remove_file(home.file());
                }
                Step::Renew(_) | Step::OwnRenewal => {}
            }
            match home.original() {
                Some(login) => {
                    prop_assert!(!out);
                    let at = login["at"].as_u64().unwrap();
                    prop_assert!(at >= newest, "the original has gone back from {} to {}", newest, at);
                    newest = at;
                }
                None => prop_assert!(out),
            }
            let left: Vec<_> = fs::read_dir(home.dir.path().join("home")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            prop_assert!(left.iter().all(|name| name == "login.json"), "{:?}", left);
        }
    }
}
