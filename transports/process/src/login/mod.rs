//! Logins: whose credential a CLI works with, and how a person's own login is lent to it and comes back.

mod format;
mod loan;
mod original;
mod pledge;

use std::path::PathBuf;

use capsule_api::{Billing, Secret};
use serde::Deserialize;

pub use format::{Format, Grant, Stamp};
pub use loan::{Loan, Settled};
pub use original::Original;

/// Who pays: the values of the setting `login`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Login {
    /// The CLI's own login, as its credential file has it.
    Subscription,
    /// A long-lived token of a subscription.
    Token,
    /// A key of the provider's API.
    ApiKey,
}

impl Login {
    /// The value as it is written in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Subscription => "subscription",
            Self::Token => "token",
            Self::ApiKey => "api_key",
        }
    }

    /// What the first event of a run says.
    pub fn billing(self) -> Billing {
        match self {
            Self::Subscription => Billing::Subscription,
            Self::Token => Billing::Token,
            Self::ApiKey => Billing::ApiKey,
        }
    }
}

/// The credential that the manifest asks for, and no other.
#[derive(Clone, Debug, PartialEq)]
pub enum Credential {
    /// The CLI's own login, in this directory or else where the CLI keeps it for this person.
    Subscription(Option<PathBuf>),
    /// This token.
    Token(Secret),
    /// This key.
    ApiKey(Secret),
}

impl Credential {
    /// Its kind.
    pub fn login(&self) -> Login {
        match self {
            Self::Subscription(_) => Login::Subscription,
            Self::Token(_) => Login::Token,
            Self::ApiKey(_) => Login::ApiKey,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
