//! A tool's own part of what its capsule is granted: less, never more.

use std::{collections::BTreeSet, path::Path};

use capsule_api::{ByteSize, HumanDuration};

use super::{Checked, Mode, Preopen, network::Pattern};
use crate::Limits;

/// All that one tool is granted, out of what its capsule is. A limit that is `None` is the capsule's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowing {
    /// Directories; each inside one that the capsule grants, with at most its mode.
    pub filesystem: Vec<Preopen>,
    /// Entries as of `network.allow`.
    pub network: Vec<String>,
    /// Names of environment variables.
    pub env: Vec<String>,
    /// Names of secrets.
    pub secrets: Vec<String>,
    /// Limits of its calls.
    pub limits: NarrowedLimits,
}

/// Limits of one tool's calls, each at most the capsule's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NarrowedLimits {
    /// As [`Limits::memory`].
    pub memory: Option<u64>,
    /// As [`Limits::table_elements`].
    pub table_elements: Option<u32>,
    /// As [`Limits::instances`].
    pub instances: Option<u32>,
    /// As [`Limits::deadline`].
    pub deadline: Option<std::time::Duration>,
    /// As [`Limits::output`].
    pub output: Option<u64>,
    /// As [`Limits::http_body`].
    pub http_body: Option<u64>,
}

impl Narrowing {
    /// What is left of the ceiling. `Err` names each entry that is outside it, and what the capsule grants.
    pub(crate) fn of(&self, ceiling: &Checked) -> Result<Checked, Vec<String>> {
        let mut wrong = Vec::new();
        let mut left = Checked {
            clock: ceiling.clock,
            random: ceiling.random,
            ..Checked::nothing(self.limits(ceiling.limits, &mut wrong))
        };
        let mut places = BTreeSet::new();
        for entry in &self.filesystem {
            match directory(entry, &ceiling.filesystem, &mut places) {
                Ok(entry) => left.filesystem.push(entry),
                Err(why) => wrong.push(why),
            }
        }
        let granted = || list(ceiling.network.iter().map(Pattern::to_string));
        for text in &self.network {
            match Pattern::parse(text) {
                Ok(entry) if ceiling.network.iter().any(|grant| grant.covers(&entry)) => left.network.push(entry),
                Ok(entry) => wrong.push(outside("network.allow", &entry.to_string(), &granted())),
                Err(why) => wrong.push(format!("`network.allow` has `{text}`: {why}")),
            }
        }
        for name in &self.env {
            if !ceiling.env_names.contains(name) {
                wrong.push(outside("env.allow", name, &list(ceiling.env_names.iter().cloned())));
            }
        }
        let named = ceiling.env.iter().filter(|(name, _)| self.env.contains(name));
        left.env = named.cloned().collect();
        left.env_names.clone_from(&self.env);
        for name in &self.secrets {
            match ceiling.secrets.iter().find(|secret| secret.name == *name) {
                Some(secret) => left.secrets.push(secret.clone()),
                None => {
                    let granted = list(ceiling.secrets.iter().map(|secret| secret.name.clone()));
                    wrong.push(outside("secrets", name, &granted));
                }
            }
        }
        if wrong.is_empty() { Ok(left) } else { Err(wrong) }
    }

    fn limits(&self, ceiling: Limits, wrong: &mut Vec<String>) -> Limits {
        let own = self.limits;
        let mut limits = ceiling;
        let size = |bytes: u64| ByteSize(bytes).to_string();
        let count = |count: u32| count.to_string();
        narrow("memory", &mut limits.memory, own.memory, size, wrong);
        narrow(
            "table_elements",
            &mut limits.table_elements,
            own.table_elements,
            count,
            wrong,
        );
        narrow("instances", &mut limits.instances, own.instances, count, wrong);
        narrow("output", &mut limits.output, own.output, size, wrong);
        narrow("http_body", &mut limits.http_body, own.http_body, size, wrong);
        let time = |time| HumanDuration(time).to_string();
        narrow("deadline", &mut limits.deadline, own.deadline, time, wrong);
        if wrong.is_empty() {
            wrong.extend(limits.check().into_iter().map(|error| error.message.clone()));
        }
        limits
    }
}

fn narrow<T: Copy + Ord>(
    name: &str,
    limit: &mut T,
    own: Option<T>,
    show: impl Fn(T) -> String,
    wrong: &mut Vec<String>,
) {
    match own {
        Some(own) if own > *limit => wrong.push(outside(&format!("limits.{name}"), &show(own), &show(*limit))),
        Some(own) => *limit = own,
        None => {}
    }
}

fn directory(entry: &Preopen, ceiling: &[Preopen], places: &mut BTreeSet<String>) -> Result<Preopen, String> {
    let found = entry.check(places).map_err(|error| error.message.clone())?;
    let covers =
        |grant: &&Preopen| found.host.starts_with(&grant.host) && (grant.mode == Mode::Rw || found.mode == Mode::Ro);
    if ceiling.iter().any(|grant| covers(&grant)) {
        return Ok(found);
    }
    let granted = list(ceiling.iter().map(|grant| shown(&grant.host, grant.mode)));
    Err(outside("filesystem", &shown(&found.host, found.mode), &granted))
}

fn shown(path: &Path, mode: Mode) -> String {
    format!("{} {}", path.display(), mode.as_str())
}

fn outside(key: &str, entry: &str, ceiling: &str) -> String {
    format!("`{key}` has `{entry}`, which is more than the capsule's ({ceiling})")
}

fn list(entries: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = entries.map(|entry| format!("`{entry}`")).collect();
    match all.is_empty() {
        true => "nothing".to_owned(),
        false => all.join(", "),
    }
}
