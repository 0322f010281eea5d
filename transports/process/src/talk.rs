//! A conversation with a CLI, around its turns: what it holds, how it is opened and closed.

use std::{path::Path, sync::Arc, time::Duration};

use capsule_api::{
    Catalogue, Clock, Code, Error, Event, Health, Input, Outcome, Residue, ResumeState, Scratch, Secrets, TurnIo,
};

use crate::{Bridge, BridgeOptions, Credential, Format, Loan, Original, RunDir, TurnCodes};

/// How long a run waits for its login before it says so.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a transport has from its host.
#[derive(Clone)]
pub struct Lent {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Redaction.
    pub secrets: Arc<dyn Secrets>,
}

impl Lent {
    /// A bridge for these tools; none where there are none, and the CLI runs with every tool off. `shown` as for [`Bridge::start`].
    ///
    /// # Errors
    /// As [`Bridge::start`].
    pub async fn bridge(
        &self,
        catalogue: &Arc<Catalogue>,
        options: BridgeOptions,
        shown: Option<usize>,
    ) -> Result<Option<Bridge>, Error> {
        if catalogue.tools.is_empty() {
            return Ok(None);
        }
        let bridge = Bridge::start(catalogue.clone(), options, shown, self.clock.clone()).await?;
        // The CLI knows it, so it could turn up in what the CLI writes.
        self.secrets.protect(bridge.token());
        Ok(Some(bridge))
    }

    /// Before a run: lends it the person's login, where that is what pays, and tells what a person should know. Waits while another run
    /// renews the login. The outer `None`: the turn was cancelled meanwhile. Cancel-safe.
    ///
    /// # Errors
    /// As [`Original::find`] and [`Loan::make`].
    pub async fn begin(&self, borrow: Borrow<'_>, io: &TurnIo) -> Result<Option<Option<Loan>>, Error> {
        let Borrow {
            credential,
            format,
            dir,
            codes,
            untested,
        } = borrow;
        let warn = |code, message| io.events.emit(Event::Warning { code, message });
        let place = dir.login();
        let login = self.login(credential, format, &place);
        tokio::pin!(login);
        let mut told = false;
        let login = loop {
            tokio::select! {
                biased;
                _ = io.cancel.cancelled() => return Ok(None),
                login = &mut login => break login?,
                () = self.clock.sleep(PATIENCE), if !told => {
                    told = true;
                    warn(codes.login, "another run is having the login renewed; this one waits for it".to_owned());
                }
            }
        };
        let (loan, exposed) = login.unzip();
        for (code, message) in [(codes.untested, untested), (codes.login, exposed.flatten())] {
            if let Some(message) = message {
                warn(code, message);
            }
        }
        Ok(Some(loan))
    }

    /// The lent login, and a remark on its file.
    async fn login(
        &self,
        credential: &Credential,
        format: &'static Format,
        directory: &Path,
    ) -> Result<Option<(Loan, Option<String>)>, Error> {
        let Credential::Subscription(home) = credential.clone() else {
            return Ok(None);
        };
        let found = tokio::task::spawn_blocking(move || {
            let original = Original::find(format, home.as_deref())?;
            let exposed = original.exposed();
            Ok((original, exposed))
        });
        let (original, exposed) = found.await.expect("looking for a file does not panic")?;
        let loan = Loan::make(original, directory, self.clock.clone(), self.secrets.clone()).await?;
        Ok(Some((loan, exposed)))
    }
}

/// What a run borrows, and for whom.
#[derive(Debug)]
pub struct Borrow<'a> {
    /// What pays.
    pub credential: &'a Credential,
    /// The CLI's credential file.
    pub format: &'static Format,
    /// The run.
    pub dir: &'a RunDir,
    /// The dialect's codes.
    pub codes: &'static TurnCodes,
    /// The remark on a version that is not tested.
    pub untested: Option<String>,
}

/// The text of an input.
///
/// # Errors
/// `refused` where it holds a file.
pub fn text_of(input: &Input, refused: &'static Code) -> Result<String, Error> {
    input
        .as_text()
        .ok_or_else(|| Error::new(refused, "the input holds a file"))
}

/// The CLI's id of the conversation in a resume state, under this key.
///
/// # Errors
/// `refused` where the state is another transport's or of another version.
pub fn resumed(resume: &ResumeState, of: (&str, u32), key: &str, refused: &'static Code) -> Result<String, Error> {
    match resume.data[key].as_str() {
        Some(id) if (resume.transport.as_str(), resume.version) == of => Ok(id.to_owned()),
        _ => {
            let message = format!("the state is version {} of `{}`", resume.version, resume.transport);
            Err(Error::new(refused, message))
        }
    }
}

/// The outcome of a turn; where the provider has refused a lent login (`refused`), with what to do about that.
///
/// # Errors
/// As the outcome.
pub fn advised(
    outcome: Result<Outcome, Error>,
    credential: &Credential,
    format: &Format,
    refused: &Code,
) -> Result<Outcome, Error> {
    outcome.map_err(|error| match credential {
        Credential::Subscription(_) if error.code == refused.id => error.hint(format.log_in),
        _ => error,
    })
}

/// What a conversation is good for after a turn: without a kept context the CLI has forgotten the turn with its exit.
pub fn health_after(kept: bool) -> Health {
    if kept { Health::Ready } else { Health::Lost }
}

/// Ends what a conversation holds: the bridge within `grace`, then the run's directory, whose files are counted before.
pub async fn close(bridge: Option<Bridge>, dir: RunDir, mut residue: Residue, grace: Duration) -> Residue {
    if let Some(bridge) = bridge {
        bridge.close(grace).await;
    }
    let removed = tokio::task::spawn_blocking(move || {
        // Nothing writes there any more: the program has ended.
        let scratch = Scratch::count(dir.path());
        (scratch, dir.remove())
    });
    if let Ok((scratch, removed)) = removed.await {
        residue.scratch += scratch;
        residue.files.extend(removed.err().map(|(path, _)| path));
    }
    residue
}

#[cfg(test)]
mod tests {
    use capsule_api::Secret;

    use super::*;
    use crate::codes;

    #[tokio::test]
    async fn what_the_program_left_in_its_directories_is_counted_before_they_go() {
        let parent = tempfile::tempdir().unwrap();
        let dir = RunDir::create(parent.path(), "agent").unwrap();
        std::fs::write(dir.home().join("history"), "12345").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.tmp().join("link")).unwrap();
        let residue = close(None, dir, Residue::default(), Duration::ZERO).await;
        let scratch = Scratch {
            files: 1,
            bytes: 5,
            partial: false,
        };
        let wanted = Residue {
            scratch,
            ..Residue::default()
        };
        assert_eq!((residue.is_empty(), residue), (true, wanted));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_login_that_the_provider_refuses_is_to_be_made_anew_and_a_key_is_to_be_checked() {
        let format = &crate::login::tests::FORMAT;
        let hint = |credential: Credential, code: &'static Code| {
            let failed = Err(Error::new(code, "no"));
            advised(failed, &credential, format, &codes::STDIN)
                .unwrap_err()
                .hint
                .clone()
        };
        assert_eq!(hint(Credential::Subscription(None), &codes::STDIN), format.log_in);
        assert_eq!(hint(Credential::Subscription(None), &codes::SPAWN), codes::SPAWN.remedy);
        assert_eq!(
            hint(Credential::ApiKey(Secret::new("k")), &codes::STDIN),
            codes::STDIN.remedy
        );
    }
}
