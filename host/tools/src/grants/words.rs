//! Grants in words, for a person who asks what a tool may do.

use capsule_api::{ByteSize, HumanDuration};

use super::{Checked, ClockGrant, Gateway, Mode, Preopen, RandomGrant, network::Pattern};

impl Checked {
    /// What is granted, a phrase each that goes on after "it may"; empty where it is nothing.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = self.filesystem.iter().map(directory).collect();
        if !self.network.is_empty() {
            let hosts: Vec<String> = self.network.iter().map(Pattern::to_string).collect();
            words.push(format!("send HTTP requests to {}", hosts.join(", ")));
        }
        words.extend(self.secrets.iter().map(secret));
        if !self.env_names.is_empty() {
            let unset = |name: &&String| !self.env.iter().any(|(set, _)| set == *name);
            let mut text = format!("see the environment variables {}", self.env_names.join(", "));
            let unset: Vec<&str> = self.env_names.iter().filter(unset).map(String::as_str).collect();
            if !unset.is_empty() {
                text.push_str(&format!(" (not set: {})", unset.join(", ")));
            }
            words.push(text);
        }
        if let ClockGrant::Fixed(_) = self.clock {
            words.push("see a clock that stands still".to_owned());
        }
        if let RandomGrant::Seeded(_) = self.random {
            words.push("draw random numbers that are the same in each call".to_owned());
        }
        words
    }

    /// The limits of a call in one line.
    pub(crate) fn limits_in_words(&self) -> String {
        let limits = &self.limits;
        format!(
            "a call takes at most {}, {} of memory, {} of output, {} in each HTTP body",
            HumanDuration(limits.deadline),
            ByteSize(limits.memory),
            ByteSize(limits.output),
            ByteSize(limits.http_body),
        )
    }
}

fn directory(grant: &Preopen) -> String {
    let what = match grant.mode {
        Mode::Ro => "read",
        Mode::Rw => "read, change and delete",
    };
    format!(
        "{what} files below {} ({} on this machine)",
        grant.guest,
        grant.host.display()
    )
}

fn secret(gateway: &Gateway) -> String {
    let hosts: Vec<String> = gateway.hosts.iter().map(Pattern::to_string).collect();
    format!(
        "have requests to {} carry the secret {} in the header `{}`, without seeing it",
        hosts.join(", "),
        gateway.name,
        gateway.header
    )
}
