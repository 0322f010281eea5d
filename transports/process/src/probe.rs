//! What a CLI says about itself when it is asked, and what is told about it without a model request.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use capsule_api::{Clock, Error, HumanDuration, Probe, timeout};
use semver::Version;

use crate::{
    Child, Exit, Line, Program,
    login::{Credential, Format, Grant, Original},
};

/// How long a question may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Lines of an answer that are kept.
const MOST_LINES: usize = 2000;

/// The answer to a question: what a program wrote, and how it ended.
#[derive(Debug)]
pub struct Said {
    /// Lines of standard output, at most 2000.
    pub lines: Vec<String>,
    /// The end of stderr.
    pub stderr: String,
    /// Its end; `None` where it had to be left to the kernel.
    pub exit: Option<Exit>,
}

impl Said {
    /// Its first line, or else its stderr.
    pub fn first(&self) -> &str {
        self.lines.first().map_or(self.stderr.as_str(), String::as_str)
    }
}

/// Runs a program to its end, with its input closed, for 20 s at most. One that has answered by then and goes on is ended. Dropping the
/// future ends it.
///
/// # Errors
/// It could not be started; or why there is no answer, in words.
pub async fn ask(program: Program, clock: &dyn Clock) -> Result<Result<Said, String>, Error> {
    let mut child = Child::spawn(program).await?;
    child.close_input();
    let mut lines = Vec::new();
    let answer = timeout(clock, PATIENCE, async {
        while let Some(line) = child.next_line(clock).await? {
            if let Line::Text { text, .. } = line
                && lines.len() < MOST_LINES
            {
                lines.push(text);
            }
        }
        std::io::Result::Ok(child.exited().await)
    });
    let answer = answer.await;
    let exit = child.stop(clock, &[]).await;
    Ok(match answer {
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) if lines.is_empty() => Err("it did not answer within 20 s".to_owned()),
        Ok(Ok(_)) | Err(_) => Ok(Said {
            lines,
            stderr: child.stderr_tail(clock).await,
            exit,
        }),
    })
}

/// The oldest version that is run, and the newest that was tested.
#[derive(Debug)]
pub struct Versions {
    /// Older ones are refused: their containment is not known to hold.
    pub oldest: Version,
    /// Newer ones run with a warning.
    pub newest_tested: Version,
}

impl Versions {
    /// A remark for people, where the version is newer than those tested.
    pub fn untested(&self, version: &Version) -> Option<String> {
        let newest = &self.newest_tested;
        (version > newest).then(|| format!("the CLI is version {version}; the newest that was tested is {newest}"))
    }
}

/// What a probe tells: the facts `program`, `version`, `tested` and `login`, each as far as it is known.
///
/// `program` is a path and a version, or why there is none. A login that is missing is told also where the program is missing; the
/// program's error goes first.
pub async fn report(
    program: Result<(PathBuf, Version), Error>,
    versions: &Versions,
    credential: &Credential,
    format: &'static Format,
    clock: &dyn Clock,
) -> Probe {
    let mut facts = Vec::new();
    let mut tell = |name: &str, fact: String| facts.push((name.to_owned(), fact));
    let program = program.map(|(path, version)| {
        tell("program", path.display().to_string());
        tell("version", version.to_string());
        tell(
            "tested",
            versions
                .untested(&version)
                .map_or("yes".to_owned(), |remark| format!("no: {remark}")),
        );
    });
    let (credential, now) = (credential.clone(), clock.wall());
    let login = tokio::task::spawn_blocking(move || login_of(&credential, format, now));
    let login = login.await.expect("reading a file does not panic");
    match &login {
        Ok((login, remark)) => {
            tell("login", login.clone());
            if let Some(remark) = remark {
                tell("warning", remark.clone());
            }
        }
        Err(error) => tell("login", format!("missing: {}", error.message)),
    }
    Probe {
        usable: program.and(login.map(|_| ())),
        facts,
    }
}

/// What pays, in words, and a remark on it. Blocks on the file system.
fn login_of(
    credential: &Credential,
    format: &'static Format,
    now: std::time::SystemTime,
) -> Result<(String, Option<String>), Error> {
    let home = match credential {
        Credential::Subscription(home) => home.as_deref(),
        Credential::Token(_) => return Ok(("token, from the settings".to_owned(), None)),
        Credential::ApiKey(_) => return Ok(("api_key, from the settings".to_owned(), None)),
    };
    let original = Original::find(format, home)?;
    let grant = original.grant()?;
    let login = describe(original.path(), &grant, now);
    let lapsed = grant.expires.is_some_and(|at| at <= now) && !grant.renewable;
    if lapsed {
        let message = format!(
            "the login in {} has expired and cannot be renewed",
            original.path().display()
        );
        return Err(Error::new(&crate::codes::LOGIN_MISSING, message).hint(format.log_in));
    }
    Ok((login, original.exposed()))
}

fn describe(path: &Path, grant: &Grant, now: std::time::SystemTime) -> String {
    let plan = grant
        .plan
        .as_deref()
        .map(|plan| format!(" ({plan})"))
        .unwrap_or_default();
    let token = grant.expires.map(|at| match at.duration_since(now) {
        Ok(left) if !left.is_zero() => {
            let minutes = left.as_secs().div_ceil(60);
            format!(
                "; its access token is good for {}",
                HumanDuration(Duration::from_secs(minutes * 60))
            )
        }
        _ => "; its access token has expired and the CLI renews it".to_owned(),
    });
    format!(
        "subscription{plan}, from {}{}",
        path.display(),
        token.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::login::Stamp;

    #[test]
    fn a_login_is_told_with_its_plan_and_the_time_it_has_left() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let grant = |plan: Option<&str>, expires: Option<u64>| Grant {
            plan: plan.map(str::to_owned),
            account: None,
            stamp: Stamp::default(),
            expires: expires.map(|at| SystemTime::UNIX_EPOCH + Duration::from_secs(at)),
            renewable: true,
            secrets: Vec::new(),
        };
        for (grant, told) in [
            (grant(None, None), "subscription, from /h/login.json"),
            (
                grant(Some("max"), Some(8201)),
                "subscription (max), from /h/login.json; its access token is good for 121m",
            ),
            (
                grant(None, Some(1000)),
                "subscription, from /h/login.json; its access token has expired and the CLI renews it",
            ),
        ] {
            assert_eq!(describe(Path::new("/h/login.json"), &grant, now), told);
        }
    }

    #[test]
    fn only_a_version_newer_than_those_tested_is_remarked_on() {
        let versions = Versions {
            oldest: Version::new(1, 0, 0),
            newest_tested: Version::new(1, 2, 0),
        };
        assert_eq!(versions.untested(&Version::new(1, 2, 0)), None);
        assert_eq!(
            versions.untested(&Version::new(1, 2, 1)).unwrap(),
            "the CLI is version 1.2.1; the newest that was tested is 1.2.0"
        );
    }
}
