//! Loans of a login to runs that go on at once.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use capsule_api::{Clock, Error, Secret, Secrets};
use capsule_transport_kit::ManualClock;
use capsule_transport_process::{Format, Grant, Loan, Original, Stamp};
use serde_json::{Map, Value, json};

const FORMAT: Format = Format {
    program: "agent",
    file: "login.json",
    variable: "AGENT_HOME",
    directory: ".agent",
    parts: &["login"],
    grant,
    log_in: "Run `agent login`.",
};

/// `expires` is in seconds of the test's clock.
fn grant(parts: &Map<String, Value>) -> Option<Grant> {
    let login = parts.get("login")?;
    let expires = login["expires"].as_u64()?;
    Some(Grant {
        plan: None,
        account: None,
        stamp: Stamp::millis(expires),
        expires: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(expires)),
        renewable: login["renewable"] != false,
        secrets: vec![Secret::new(login["token"].as_str()?)],
    })
}

fn login(expires: u64) -> Value {
    json!({"login": {"expires": expires, "token": format!("token-{expires}")}})
}

#[derive(Default)]
struct Kept(Mutex<Vec<String>>);

impl Secrets for Kept {
    fn expand(&self, text: &str) -> Result<String, Error> {
        Ok(text.to_owned())
    }

    fn protect(&self, secret: &Secret) {
        self.0.lock().unwrap().push(secret.expose().to_owned());
    }

    fn redact<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        text.into()
    }
}

struct Scene {
    dir: tempfile::TempDir,
    clock: ManualClock,
    secrets: Arc<Kept>,
}

impl Scene {
    fn new(content: &Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "a", "b"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("home/login.json"), content.to_string()).unwrap();
        let (clock, secrets) = (ManualClock::new(), Arc::default());
        Self { dir, clock, secrets }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name).join("login.json")
    }

    async fn lend(&self, run: &str) -> Result<Loan, Error> {
        let original = Original::find(&FORMAT, Some(&self.dir.path().join("home")))?;
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        Loan::make(original, &self.dir.path().join(run), clock, self.secrets.clone()).await
    }

    /// Moves time on until the file holds this.
    async fn until(&self, path: &Path, content: &Value) {
        while read(path).as_ref() != Some(content) {
            self.clock.sleepers(1).await;
            self.clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    }
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[tokio::test]
async fn a_renewed_login_is_back_in_the_home_while_the_run_goes_on_and_its_tokens_are_hidden() {
    let scene = Scene::new(&login(100_000));
    let loan = scene.lend("a").await.unwrap();
    fs::write(scene.path("a"), login(200_000).to_string()).unwrap();
    scene.until(&scene.path("home"), &login(200_000)).await;
    let settled = loan.end().await;
    assert!(settled.renewed && settled.warnings.is_empty(), "{settled:?}");
    assert!(!scene.path("a").exists());
    let hidden = scene.secrets.0.lock().unwrap();
    assert_eq!(*hidden, ["token-100000", "token-200000"]);
}

#[tokio::test]
async fn a_login_that_is_about_to_expire_is_renewed_by_one_run_while_the_other_waits_for_the_new_one() {
    let scene = Scene::new(&login(60));
    let first = scene.lend("a").await.unwrap();
    let second = scene.lend("b");
    tokio::pin!(second);
    let blocked = tokio::select! {
        biased;
        _ = &mut second => false,
        // The watch of the first, and the second that waits.
        () = scene.clock.sleepers(2) => true,
    };
    assert!(blocked && !scene.path("b").exists());
    fs::write(scene.path("a"), login(30_000).to_string()).unwrap();
    let renewed = async {
        scene.until(&scene.path("home"), &login(30_000)).await;
        scene.until(&scene.path("b"), &login(30_000)).await;
    };
    let (second, ()) = tokio::join!(second, renewed);
    assert!(second.unwrap().end().await.warnings.is_empty());
    assert!(first.end().await.renewed);
}

#[tokio::test]
async fn a_run_that_ends_without_renewing_hands_the_login_on() {
    let scene = Scene::new(&login(60));
    let first = scene.lend("a").await.unwrap();
    // Dropped, as when its turn is.
    drop(first);
    assert!(!scene.path("a").exists());
    let second = scene.lend("b").await.unwrap();
    assert!(!second.end().await.renewed);
    assert_eq!(read(&scene.path("home")), Some(login(60)));
}

#[tokio::test]
async fn what_was_renewed_is_given_back_also_where_the_turn_is_dropped() {
    let scene = Scene::new(&login(100_000));
    let loan = scene.lend("a").await.unwrap();
    fs::write(scene.path("a"), login(200_000).to_string()).unwrap();
    drop(loan);
    assert_eq!(read(&scene.path("home")), Some(login(200_000)));
}

#[tokio::test]
async fn a_login_that_has_expired_for_good_is_refused_before_the_run() {
    let mut content = login(0);
    content["login"]["renewable"] = json!(false);
    let scene = Scene::new(&content);
    let error = scene.lend("a").await.err().unwrap();
    assert_eq!(
        (error.code, error.hint.as_str()),
        ("process-login-missing", "Run `agent login`.")
    );
    assert!(!scene.path("a").exists());
}
