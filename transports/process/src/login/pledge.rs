//! A login and its copy, and what becomes of either when the other has changed. Blocks on the file system; knows no time.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use capsule_api::Error;
use serde_json::{Map, Value};

use super::{
    format::Grant,
    original::{self, Access, Original},
};
use crate::codes;

type Parts = Map<String, Value>;

/// A copy of a login in a run's directory.
pub(super) struct Pledge {
    original: Original,
    copy: PathBuf,
    /// What both sides had when they were last compared.
    agreed: Parts,
}

/// What a comparison has come to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Compared {
    /// Neither side has changed.
    Same,
    /// The CLI has renewed the copy; the original is renewed.
    Returned(Grant),
    /// The original was renewed by somebody else; the copy is too.
    Followed(Grant),
    /// Both have changed, and the original is not the copy's to replace. It stays as it is.
    Apart,
    /// The original holds no login any more. It is not made anew.
    Gone,
    /// The CLI has thrown the login away. The original stays as it is.
    Spoilt,
}

impl Pledge {
    /// Writes the copy, readable by this user alone. To be called under the original's lock.
    pub(super) fn make(original: Original, content: &original::Content, directory: &Path) -> Result<Self, Error> {
        let agreed = original.format().parts_of(&content.all);
        let copy = directory.join(original.format().file);
        original::replace(&copy, &agreed, Access::PRIVATE).map_err(|error| not_written(&copy, error))?;
        Ok(Self { original, copy, agreed })
    }

    /// Compares both sides and brings the later login to the other, under the original's lock.
    ///
    /// The original is replaced where it is as it was lent. Where it has changed meanwhile, it is replaced only by a later login of the
    /// same account, as far as the files name one; else it stays. It is never made anew where it is gone.
    pub(super) fn compare(&mut self) -> Result<Compared, Error> {
        let _lock = self.original.lock()?;
        let Some((copied, copied_grant)) = self.copied() else {
            return Ok(Compared::Spoilt);
        };
        let Ok(content) = self.original.read() else {
            return Ok(Compared::Gone);
        };
        let Ok(grant) = self.original.grant_in(&content) else {
            return Ok(Compared::Gone);
        };
        let parts = self.original.format().parts_of(&content.all);
        if parts == copied {
            self.agreed = parts;
            return Ok(Compared::Same);
        }
        if parts == self.agreed {
            return self.give_back(&content, copied, copied_grant);
        }
        let later = copied_grant.stamp > grant.stamp && copied != self.agreed;
        match (&copied_grant.account, &grant.account) {
            (Some(copied_for), Some(of)) if copied_for != of => Ok(Compared::Apart),
            (Some(_), Some(_)) if later => self.give_back(&content, copied, copied_grant),
            (_, _) if later => Ok(Compared::Apart),
            _ => self.follow(parts, grant),
        }
    }

    fn give_back(&mut self, before: &original::Content, parts: Parts, grant: Grant) -> Result<Compared, Error> {
        let written = self.original.replace(before, &parts);
        written.map_err(|error| not_written(self.original.path(), error))?;
        self.agreed = parts;
        Ok(Compared::Returned(grant))
    }

    fn follow(&mut self, parts: Parts, grant: Grant) -> Result<Compared, Error> {
        original::replace(&self.copy, &parts, Access::PRIVATE).map_err(|error| not_written(&self.copy, error))?;
        self.agreed = parts;
        Ok(Compared::Followed(grant))
    }

    /// The copy's login; `None` where the CLI has left none, or something else in its place.
    fn copied(&self) -> Option<(Parts, Grant)> {
        let (bytes, _) = original::open(&self.copy).and_then(original::read_whole).ok()?;
        let file: Map<String, Value> = serde_json::from_slice(&bytes).ok()?;
        let parts = self.original.format().parts_of(&file);
        let grant = (self.original.format().grant)(&parts)?;
        Some((parts, grant))
    }

    /// Removes the copy.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.copy) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn not_written(path: &Path, error: io::Error) -> Error {
    let message = format!("the login could not be written to {}: {error}", path.display());
    Error::new(&codes::LOGIN_NOT_WRITTEN, message).caused_by(error)
}

#[cfg(test)]
mod tests;
