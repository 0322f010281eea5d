//! Kept contexts: what a conversation needs to go on in another process.

use std::{
    fs, io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use capsule_api::{Error, ResumeState};
use serde::{Deserialize, Serialize};

use crate::{Places, codes, places};

/// The form of the file; a newer one is refused.
const VERSION: u32 = 1;
/// A resume file larger than this is not one of ours.
const MAX_BYTES: u64 = 256 << 20;

/// A context under its name, held by one run at a time.
#[derive(Debug)]
pub struct KeptContext {
    name: String,
    dir: PathBuf,
    resume: Option<ResumeState>,
    /// Held as long as the context is open. `None` where there is no directory to lock.
    lock: Option<fs::File>,
    /// Why nothing can be kept.
    unwritable: Option<Error>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    transport: String,
    state_version: u32,
    data: serde_json::Value,
}

impl KeptContext {
    /// Opens the context `name` of a capsule, new or kept. One that cannot be written is opened all the same: what it holds can be gone
    /// on with, and [`KeptContext::keep`] says that nothing is added.
    ///
    /// # Errors
    /// A name that is no file name, another run that holds it, a file that cannot be read.
    pub fn open(places: &Places, name: &str) -> Result<Self, Error> {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.chars().all(good) {
            let message = format!("`{name}` cannot name a context");
            return Err(Error::new(&codes::CONTEXT_NAME, message));
        }
        let dir = places.state().join("contexts").join(name);
        let (lock, unwritable) = match places::make_dir(&dir) {
            Ok(()) => lock(&dir.join("lock"), name)?,
            // What somebody else may have written is no state to go on from.
            Err(error) if error.code == codes::PLACE.id => return Err(error),
            Err(error) => (None, Some(error)),
        };
        let resume = if dir.is_dir() {
            read(&dir.join("resume.json"), name)?
        } else {
            None
        };
        Ok(Self {
            name: name.to_owned(),
            dir,
            resume,
            lock,
            unwritable,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A directory for the transport's own state; `None` where it cannot be made.
    pub fn dir(&self) -> Option<&Path> {
        self.lock.is_some().then_some(&self.dir)
    }

    /// What was kept, if it was this transport that kept it.
    ///
    /// # Errors
    /// It was another one.
    pub fn resume_for(&self, transport: &str) -> Result<Option<ResumeState>, Error> {
        match &self.resume {
            Some(state) if state.transport != transport => {
                let message = format!(
                    "the context `{}` was kept by the transport {}, not {transport}",
                    self.name, state.transport
                );
                Err(Error::new(&codes::CONTEXT_UNREADABLE, message))
            }
            state => Ok(state.clone()),
        }
    }

    /// Keeps what the transport gave.
    ///
    /// # Errors
    /// `session-storage`; what was kept before stays.
    pub fn keep(&mut self, state: ResumeState) -> Result<(), Error> {
        if let Some(error) = &self.unwritable {
            return Err(error.clone());
        }
        let stored = Stored {
            version: VERSION,
            transport: state.transport.clone(),
            state_version: state.version,
            data: state.data.clone(),
        };
        let bytes = serde_json::to_vec(&stored).expect("strings, numbers and JSON always serialise");
        places::write_file(&self.dir.join("resume.json"), &bytes)?;
        self.resume = Some(state);
        Ok(())
    }
}

/// Locks the context; where that is only possible without writing, also says why nothing can be kept.
fn lock(path: &Path, name: &str) -> Result<(Option<fs::File>, Option<Error>), Error> {
    let opened = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path);
    let (file, unwritable) = match opened {
        Ok(file) => (Some(file), None),
        Err(error) => (fs::File::open(path).ok(), Some(places::storage("open", path, &error))),
    };
    let Some(file) = file else {
        return Ok((None, unwritable));
    };
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok((Some(file), unwritable)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::new(
            &codes::CONTEXT_BUSY,
            format!("another run is using the context `{name}`"),
        )),
        Err(error) => Err(places::storage("lock", path, &error.into())),
    }
}

fn read(path: &Path, name: &str) -> Result<Option<ResumeState>, Error> {
    let unreadable = |why: String| {
        let message = format!("what was kept of the context `{name}` cannot be read: {why}");
        Error::new(&codes::CONTEXT_UNREADABLE, message).with("path", path.display().to_string())
    };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(places::storage("read", path, &error)),
        Ok(found) if found.len() > MAX_BYTES => return Err(unreadable(format!("it has {} bytes", found.len()))),
        Ok(_) => {}
    }
    let bytes = fs::read(path).map_err(|error| places::storage("read", path, &error))?;
    let stored: Stored = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    if stored.version != VERSION {
        return Err(unreadable(format!(
            "it has version {}, this program knows {VERSION}",
            stored.version
        )));
    }
    Ok(Some(ResumeState {
        transport: stored.transport,
        version: stored.state_version,
        data: stored.data,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn places(dir: &Path) -> Places {
        let state = dir.as_os_str().to_owned();
        Places::of("notes", move |name| (name == "XDG_STATE_HOME").then(|| state.clone()))
    }

    #[test]
    fn what_is_kept_is_there_in_the_next_process_and_for_the_same_transport_only() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        let state = ResumeState {
            transport: "echo".into(),
            version: 3,
            data: json!({"messages": [1, 2]}),
        };
        let mut first = KeptContext::open(&places, "release").unwrap();
        assert_eq!(first.resume_for("echo").unwrap(), None);
        first.keep(state.clone()).unwrap();
        drop(first);
        let second = KeptContext::open(&places, "release").unwrap();
        assert_eq!(second.resume_for("echo").unwrap(), Some(state));
        assert_eq!(
            second.resume_for("other").unwrap_err().code,
            "session-context-unreadable"
        );
    }

    #[test]
    fn a_context_is_held_by_one_run_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        let held = KeptContext::open(&places, "release").unwrap();
        assert_eq!(
            KeptContext::open(&places, "release").unwrap_err().code,
            "session-context-busy"
        );
        drop(held);
        assert!(KeptContext::open(&places, "release").is_ok());
    }

    #[test]
    fn a_context_that_cannot_be_made_is_opened_and_keeps_nothing() {
        let mut context = KeptContext::open(&places(Path::new("/proc/no-such-place")), "release").unwrap();
        assert_eq!(context.dir(), None);
        assert_eq!(context.resume_for("echo").unwrap(), None);
        let state = ResumeState {
            transport: "echo".into(),
            version: 1,
            data: json!(1),
        };
        assert_eq!(context.keep(state).unwrap_err().code, "session-storage");
    }

    #[test]
    fn a_damaged_file_is_an_error_and_not_a_new_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        drop(KeptContext::open(&places, "release").unwrap());
        let file = places.state().join("contexts/release/resume.json");
        for damaged in [
            "{\"version\": 1",
            "{}",
            r#"{"version":2,"transport":"e","state_version":1,"data":null}"#,
        ] {
            fs::write(&file, damaged).unwrap();
            assert_eq!(
                KeptContext::open(&places, "release").unwrap_err().code,
                "session-context-unreadable"
            );
        }
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["", "..", "a/b", ".hidden", "naïve"] {
            assert_eq!(
                KeptContext::open(&places(dir.path()), name).unwrap_err().code,
                "session-context-name"
            );
        }
    }
}
