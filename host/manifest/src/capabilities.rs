//! What the tools may do, as types: the capsule's ceiling, and a tool's own part of it.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use capsule_api::{ByteSize, HumanDuration};
use serde::{Deserialize, Deserializer, de::Error as _};

/// What the tools may do; all else is denied.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Grants {
    /// Directories.
    #[serde(default)]
    pub filesystem: Vec<DirectoryGrant>,
    /// Hosts.
    #[serde(default)]
    pub network: AllowList,
    /// Environment variables.
    #[serde(default)]
    pub env: AllowList,
    /// Credentials that the host attaches to requests, by the variable that holds each.
    #[serde(default)]
    pub secrets: BTreeMap<String, SecretGrant>,
    /// Limits of every call.
    #[serde(default)]
    pub limits: CallLimits,
    /// The time that tools are shown; `None` is the machine's.
    #[serde(default, deserialize_with = "time")]
    pub clock: Option<Duration>,
    /// What random numbers are made from; `None` is the system's generator.
    #[serde(default)]
    pub random: RandomGrant,
}

/// A tool's own part of the grants: all that it gets, each entry within the capsule's.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ToolGrants {
    /// Directories.
    pub filesystem: Vec<DirectoryGrant>,
    /// Hosts.
    pub network: AllowList,
    /// Environment variables.
    pub env: AllowList,
    /// Names of secrets.
    pub secrets: Vec<String>,
    /// Limits, each at most the capsule's; those that are not here are the capsule's.
    pub limits: ToolLimits,
}

/// A directory that the tools may use.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DirectoryGrant {
    /// The directory, as written; [`crate::Loaded::path`] resolves it.
    pub path: PathBuf,
    /// Where the tools see it: absolute, without `.` and `..`, unique.
    pub at: String,
    /// Whether they may write.
    pub mode: Mode,
}

/// What a grant of a directory permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Mode {
    /// Reading.
    #[serde(rename = "ro")]
    ReadOnly,
    /// Reading and writing.
    #[serde(rename = "rw")]
    ReadWrite,
}

/// What is allowed, by name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AllowList {
    /// The names.
    #[serde(default)]
    pub allow: Vec<String>,
}

/// A credential that no tool sees.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SecretGrant {
    /// Where the value is.
    pub from: SecretSource,
    /// The hosts whose requests carry it.
    pub hosts: Vec<String>,
    /// The header, with `{}` for the value.
    pub header: String,
}

/// Where the value of a secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SecretSource {
    /// In the variable of its name: of the environment, else of the file `.env` beside the manifest.
    Env,
}

/// Where random numbers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RandomGrant {
    /// The same numbers in each call, made from this.
    #[serde(default)]
    pub seed: Option<u64>,
}

/// Limits of every tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CallLimits {
    /// Memory of one call; more than zero.
    pub memory: ByteSize,
    /// Elements of all tables of one call.
    pub table_elements: u32,
    /// Core instances of one call.
    pub instances: u32,
    /// The longest a call may take; more than zero.
    pub deadline: HumanDuration,
    /// The largest result; more than zero.
    pub output: ByteSize,
    /// The largest body of an HTTP request or response.
    pub http_body: ByteSize,
    /// Calls at once; 1 to 1000.
    pub concurrent_calls: u32,
    /// Calls inside one another; 1 to 8.
    pub registry_depth: u32,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            memory: ByteSize(256 << 20),
            table_elements: 20_000,
            instances: 1000,
            deadline: HumanDuration(Duration::from_secs(60)),
            output: ByteSize(1 << 20),
            http_body: ByteSize(10 << 20),
            concurrent_calls: 16,
            registry_depth: 4,
        }
    }
}

/// Limits of one tool's calls; `None` is the capsule's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ToolLimits {
    /// Memory of one call.
    pub memory: Option<ByteSize>,
    /// Elements of all tables of one call.
    pub table_elements: Option<u32>,
    /// Core instances of one call.
    pub instances: Option<u32>,
    /// The longest a call may take.
    pub deadline: Option<HumanDuration>,
    /// The largest result.
    pub output: Option<ByteSize>,
    /// The largest body of an HTTP request or response.
    pub http_body: Option<ByteSize>,
}

/// A time in the form of the schema, since 1970; `Err` says what is wrong with it.
pub(crate) fn since_1970(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_rfc3339(text).map_err(|error| error.to_string())?;
    time.duration_since(SystemTime::UNIX_EPOCH)
        .map_err(|_| "it is before 1970".to_owned())
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    since_1970(&text).map(Some).map_err(D::Error::custom)
}
