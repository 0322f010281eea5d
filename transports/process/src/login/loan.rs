//! A login that is lent to a running CLI: watched while it runs, given back at its end.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use capsule_api::{Clock, Error, Retry, Secrets};
use tokio::task::JoinHandle;

use super::{
    format::Grant,
    original::{Original, Renewal},
    pledge::{Compared, Pledge},
};
use crate::codes;

/// A login whose access token expires sooner is lent to one run at a time, because that run will have it renewed, and a renewal makes the
/// tokens of every other copy void.
const RENEWAL_SOON: Duration = Duration::from_secs(600);
/// How long a run waits for another one to renew the login. By then the access token has expired, so the other has renewed it or is gone.
const MOST_WAITING: Duration = Duration::from_secs(660);
/// How often a run that waits looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// How often a copy is compared with its original.
const COMPARE: Duration = Duration::from_secs(1);

/// A copy of a person's login in a run's directory.
///
/// Dropping it gives back what was renewed, and removes the copy; [`Loan::end`] does so off the runtime and tells what came of it.
pub struct Loan {
    shared: Arc<Shared>,
    watcher: JoinHandle<()>,
    ended: bool,
}

struct Shared {
    secrets: Arc<dyn Secrets>,
    state: Mutex<State>,
}

struct State {
    pledge: Pledge,
    /// Let go of as soon as the login is renewed.
    renewal: Option<Renewal>,
    settled: Settled,
}

/// What came of a loan.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    /// The CLI has renewed the login, and the original has the new one.
    pub renewed: bool,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// A login that is lent and that nobody has taken yet: whoever asked for it may be gone by the time that the files are written. Dropping
/// it takes the copy back.
struct Unclaimed(Option<State>);

impl Unclaimed {
    fn claim(mut self) -> State {
        self.0.take().expect("it is taken once, by value")
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(state) = &self.0
            && let Err(error) = state.pledge.remove()
        {
            tracing::warn!(%error, "the copy of a login could not be removed");
        }
    }
}

/// One try to lend.
enum Try {
    Lent(Box<Unclaimed>, Grant),
    /// Another run is having it renewed.
    Wait,
}

impl Loan {
    /// Lends a login to one CLI: copies it into `directory`, which is private to the run, and keeps copy and original equal until the end.
    /// Waits while another run has a login renewed that is about to expire. Cancel-safe.
    ///
    /// # Errors
    /// [`codes::LOGIN_UNREADABLE`], [`codes::LOGIN_MISSING`] for one that has expired for good, [`codes::LOGIN_BUSY`],
    /// [`codes::LOGIN_NOT_WRITTEN`].
    pub async fn make(
        original: Original,
        directory: &Path,
        clock: Arc<dyn Clock>,
        secrets: Arc<dyn Secrets>,
    ) -> Result<Self, Error> {
        let mut waited = Duration::ZERO;
        let (state, grant) = loop {
            let (from, directory, now) = (original.clone(), directory.to_owned(), clock.wall());
            match off_the_runtime(move || lend(from, &directory, now)).await? {
                Try::Lent(state, grant) => break (state.claim(), grant),
                Try::Wait if waited >= MOST_WAITING => {
                    let path = original.path().display();
                    let message = format!("another run keeps the login in {path}, which is about to expire");
                    return Err(Error::new(&codes::LOGIN_BUSY, message).retry(Retry::Later));
                }
                Try::Wait => clock.sleep(LOOK_AGAIN).await,
            }
            waited += LOOK_AGAIN;
        };
        protect(&*secrets, &grant);
        let shared = Arc::new(Shared {
            secrets,
            state: Mutex::new(state),
        });
        let watched = shared.clone();
        let watcher = tokio::spawn(async move {
            loop {
                clock.sleep(COMPARE).await;
                let shared = watched.clone();
                // It fails only with the runtime, and then the loan's end compares once more.
                let _ = tokio::task::spawn_blocking(move || shared.compare()).await;
            }
        });
        Ok(Self {
            shared,
            watcher,
            ended: false,
        })
    }

    /// Gives back what was renewed, and removes the copy.
    pub async fn end(mut self) -> Settled {
        self.ended = true;
        self.watcher.abort();
        let shared = self.shared.clone();
        off_the_runtime(move || shared.end()).await
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if !self.ended {
            self.watcher.abort();
            for warning in self.shared.end().warnings {
                tracing::warn!("{warning}");
            }
        }
    }
}

impl Shared {
    fn compare(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.pledge.compare() {
            Ok(Compared::Returned(grant)) => {
                protect(&*self.secrets, &grant);
                state.settled.renewed = true;
                state.renewal = None;
            }
            Ok(Compared::Followed(grant)) => {
                protect(&*self.secrets, &grant);
                state.renewal = None;
            }
            Ok(_) => {}
            // It is tried again, and told at the end.
            Err(error) => tracing::debug!(%error, "a lent login could not be compared"),
        }
    }

    fn end(&self) -> Settled {
        self.compare();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let warning = match state.pledge.compare() {
            Ok(Compared::Apart) => Some(
                "both the CLI and somebody else have renewed the login; the one in your home stays as it is".to_owned(),
            ),
            Ok(Compared::Gone) => Some("the login in your home is gone; the one of the run was dropped".to_owned()),
            Ok(Compared::Spoilt) => {
                Some("the CLI has thrown its login away; the one in your home stays as it is".to_owned())
            }
            Ok(_) => None,
            Err(error) => Some(format!("a renewed login may be lost: {error}")),
        };
        state.settled.warnings.extend(warning);
        if let Err(error) = state.pledge.remove() {
            state
                .settled
                .warnings
                .push(format!("the copy of the login could not be removed: {error}"));
        }
        state.renewal = None;
        std::mem::take(&mut state.settled)
    }
}

fn lend(original: Original, directory: &Path, now: std::time::SystemTime) -> Result<Try, Error> {
    let _lock = original.lock()?;
    original.sweep();
    let content = original.read()?;
    let grant = original.grant_in(&content)?;
    let over = |within: Duration| grant.expires.is_some_and(|expires| expires <= now + within);
    if over(Duration::ZERO) && !grant.renewable {
        let message = format!(
            "the login in {} has expired and cannot be renewed",
            original.path().display()
        );
        return Err(Error::new(&codes::LOGIN_MISSING, message).hint(original.format().log_in));
    }
    let renewal = if grant.renewable && over(RENEWAL_SOON) {
        let taken = original.try_renewal();
        let taken = taken.map_err(|error| Error::new(&codes::LOGIN_BUSY, error.to_string()).caused_by(error))?;
        match taken {
            Some(renewal) => Some(renewal),
            None => return Ok(Try::Wait),
        }
    } else {
        None
    };
    let pledge = Pledge::make(original, &content, directory)?;
    let state = State {
        pledge,
        renewal,
        settled: Settled::default(),
    };
    Ok(Try::Lent(Box::new(Unclaimed(Some(state))), grant))
}

fn protect(secrets: &dyn Secrets, grant: &Grant) {
    for secret in &grant.secrets {
        secrets.protect(secret);
    }
}

async fn off_the_runtime<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work)
        .await
        .expect("files are handled without panics")
}

#[cfg(test)]
mod tests {
    use std::{fs, time::SystemTime};

    use super::*;
    use crate::login::tests::FORMAT;

    #[test]
    fn a_login_that_nobody_takes_any_more_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        for place in ["home", "run"] {
            fs::create_dir(dir.path().join(place)).unwrap();
        }
        fs::write(
            dir.path().join("home/login.json"),
            r#"{"login": {"at": 1, "token": "t"}}"#,
        )
        .unwrap();
        let original = Original::find(&FORMAT, Some(&dir.path().join("home"))).unwrap();
        let copy = dir.path().join("run/login.json");
        let lend = || lend(original.clone(), &dir.path().join("run"), SystemTime::UNIX_EPOCH).unwrap();
        let Try::Lent(lent, _) = lend() else {
            panic!("nobody else has it");
        };
        let taken = lent.claim();
        assert!(copy.exists());
        drop(taken);
        assert!(copy.exists(), "whoever has taken it gives it back");
        drop(lend());
        assert!(!copy.exists());
    }
}
