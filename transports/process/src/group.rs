//! A process group: signals to all of it, and who is still in it.

use std::{
    fmt,
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    sync::{Mutex, PoisonError},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// A signal of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// `SIGINT`.
    Interrupt,
    /// `SIGTERM`.
    Terminate,
    /// `SIGKILL`.
    Kill,
}

impl Stop {
    fn signal(self) -> Signal {
        match self {
            Self::Interrupt => Signal::INT,
            Self::Terminate => Signal::TERM,
            Self::Kill => Signal::KILL,
        }
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Processes that outlived it and were killed: those of its group, and those that had left it but carry a mark of the program's. Id and
    /// name.
    pub leftovers: Vec<(u32, String)>,
    /// Those of them that were still there a second after `SIGKILL`.
    pub survivors: Vec<(u32, String)>,
}

impl Exit {
    pub(crate) fn new(status: ExitStatus) -> Self {
        Self {
            code: status.code(),
            signal: status.signal(),
            leftovers: Vec::new(),
            survivors: Vec::new(),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit status {code}"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) => f.write_str("an unknown end"),
        }
    }
}

/// A group, named by its leader.
///
/// The leader's id stays taken until it is reaped, so nothing may be signalled or listed by it afterwards: it could be somebody else's.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Pid,
    reaped: Mutex<bool>,
}

impl Group {
    pub(crate) fn new(leader: Pid) -> Self {
        Self {
            leader,
            reaped: Mutex::new(false),
        }
    }

    pub(crate) fn leader(&self) -> Pid {
        self.leader
    }

    /// Signals every process of the group; nothing once the leader is reaped.
    pub(crate) fn signal(&self, stop: Stop) {
        self.unless_reaped(|| {
            // ESRCH is the only failure for a group of our own, and means that nobody is there.
            let _ = kill_process_group(self.leader, stop.signal());
        });
    }

    /// The living processes of the group other than the leader. Reads `/proc`; empty where there is none.
    pub(crate) fn others(&self) -> Vec<(u32, String)> {
        let mut others = self.unless_reaped(|| members(self.leader)).unwrap_or_default();
        others.retain(|(id, _)| i32::try_from(*id) != Ok(self.leader.as_raw_nonzero().get()));
        others
    }

    /// All living processes of the group.
    pub(crate) fn members(&self) -> Vec<(u32, String)> {
        self.unless_reaped(|| members(self.leader)).unwrap_or_default()
    }

    /// Runs `reap` as the last thing that is done under the leader's id.
    pub(crate) fn reap<T>(&self, reap: impl FnOnce() -> T) -> T {
        let mut reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        *reaped = true;
        reap()
    }

    fn unless_reaped<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        (!*reaped).then(act)
    }
}

fn members(group: Pid) -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter_map(|id| Some((id, living_member(id, group)?))).collect()
}

/// The name of process `id` if it lives in `group`.
fn living_member(id: u32, group: Pid) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (name, state, of) = stat_fields(&stat)?;
    let dead = matches!(state, "Z" | "X");
    (of == group.as_raw_nonzero().get() && !dead).then(|| name.to_owned())
}

/// Name, state and process group from a line of `/proc/ID/stat`. The name may hold spaces and parentheses.
fn stat_fields(stat: &str) -> Option<(&str, &str, i32)> {
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1;
    let mut fields = after.split_whitespace();
    let state = fields.next()?;
    let group = fields.nth(1)?.parse().ok()?;
    Some((name, state, group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_name_holds() {
        assert_eq!(stat_fields("42 (a b) c) S 1 40 40 0 -1"), Some(("a b) c", "S", 40)));
        assert_eq!(stat_fields("42 (cut"), None);
        assert_eq!(stat_fields(""), None);
    }
}
