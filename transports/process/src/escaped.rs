//! Processes that have left a program's group (`setsid`), found by what they have inherited.

use std::{ffi::OsStr, fs, io::Read, os::unix::ffi::OsStrExt};

/// More of a process's environment is not read.
const MOST_BYTES: u64 = 1 << 20;

/// Variables that no process has but a program and those that it has started, wherever they have gone since: they name directories of
/// this one run. A process that was started with another environment carries none of them and is not found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks(Vec<Vec<u8>>);

impl Marks {
    /// A variable with its value.
    pub(crate) fn add(&mut self, name: &str, value: &OsStr) {
        self.0.push([name.as_bytes(), b"=", value.as_bytes()].concat());
    }

    /// The living processes of this user that carry a mark: id and name. Reads `/proc`; empty where there is none.
    pub(crate) fn carriers(&self) -> Vec<(u32, String)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        ids.filter(|id| self.is_carried_by(*id))
            .map(|id| (id, name_of(id)))
            .collect()
    }

    /// Kills these processes, as far as they still carry a mark.
    #[cfg(target_os = "linux")]
    pub(crate) fn kill(&self, carriers: &[(u32, String)]) {
        use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

        for (id, _) in carriers {
            let Some(pid) = i32::try_from(*id).ok().and_then(Pid::from_raw) else {
                continue;
            };
            // The id could be another process's by now; what the descriptor names cannot change, so it is looked at once more.
            if let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
                && self.is_carried_by(*id)
            {
                // It may have ended by itself.
                let _ = pidfd_send_signal(process, Signal::KILL);
            }
        }
    }

    /// Without `/proc` there is nobody to kill.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn kill(&self, _: &[(u32, String)]) {}

    fn is_carried_by(&self, id: u32) -> bool {
        let mut environ = Vec::new();
        let read = fs::File::open(format!("/proc/{id}/environ"));
        if read
            .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut environ))
            .is_err()
        {
            // Another user's, or gone.
            return false;
        }
        let mut variables = environ.split(|byte| *byte == 0);
        variables.any(|variable| self.0.iter().any(|mark| mark == variable))
    }
}

fn name_of(id: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}
