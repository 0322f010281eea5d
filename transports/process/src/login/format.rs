//! What a CLI's credential file looks like, as far as it is read here.

use std::time::SystemTime;

use capsule_api::Secret;
use serde_json::{Map, Value};

/// The credential file of one CLI.
#[derive(Debug)]
pub struct Format {
    /// The CLI's command, for messages.
    pub program: &'static str,
    /// The file's name.
    pub file: &'static str,
    /// The variable that names its directory.
    pub variable: &'static str,
    /// Its directory below the person's home, where the variable is not set.
    pub directory: &'static str,
    /// The members of the file that make up the login. Nothing else of it is lent.
    pub parts: &'static [&'static str],
    /// Reads the login from those members; `None` where they hold none.
    pub grant: fn(&Map<String, Value>) -> Option<Grant>,
    /// What to do where there is no login.
    pub log_in: &'static str,
}

impl Format {
    /// The members of a whole file that make up the login.
    pub(super) fn parts_of(&self, file: &Map<String, Value>) -> Map<String, Value> {
        let lent = |part: &&str| Some(((*part).to_owned(), file.get(*part)?.clone()));
        self.parts.iter().filter_map(lent).collect()
    }
}

/// What a login says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The plan, for people.
    pub plan: Option<String>,
    /// Whose it is, where the file says so.
    pub account: Option<String>,
    /// Which of two logins of one account is the later one.
    pub stamp: Stamp,
    /// When its access token is no longer taken, where that is known.
    pub expires: Option<SystemTime>,
    /// Whether the CLI can renew it.
    pub renewable: bool,
    /// Every token in it.
    pub secrets: Vec<Secret>,
}

/// When a login was made or renewed. Ordered; two stamps of one format compare.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(String, String);

impl Stamp {
    /// Milliseconds since some fixed moment.
    pub fn millis(millis: u64) -> Self {
        Self(format!("{millis:020}"), String::new())
    }

    /// A time in UTC as RFC 3339 writes it.
    pub fn rfc3339(time: &str) -> Self {
        // Fractions have any number of digits, so they are compared apart: as text that is the order of the numbers.
        let time = time.trim_end_matches(['Z', 'z']);
        let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
        Self(seconds.to_owned(), fraction.trim_end_matches('0').to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_ordered_by_time() {
        assert!(Stamp::millis(999) < Stamp::millis(1_000_000));
        let times = [
            "2026-11-29T21:39:55Z",
            "2026-11-29T21:39:55.1Z",
            "2026-11-29T21:39:55.18012Z",
            "2026-11-29T21:39:56Z",
        ];
        assert!(
            times
                .windows(2)
                .all(|pair| Stamp::rfc3339(pair[0]) < Stamp::rfc3339(pair[1]))
        );
        assert_eq!(Stamp::rfc3339("2026-11-29T21:39:55.10Z"), Stamp::rfc3339(times[1]));
    }
}
