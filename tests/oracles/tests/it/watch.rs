//! What the machine shows of a run: processes, files, descriptors.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::support::{Scene, names_in};

/// A process as everybody on the machine sees it.
pub(crate) struct Seen {
    pub(crate) id: u32,
    /// One argument a line.
    pub(crate) args: String,
    /// One variable a line.
    pub(crate) environ: String,
}

impl Seen {
    fn of(id: u32) -> Self {
        let read = |what: &str| {
            String::from_utf8_lossy(&fs::read(format!("/proc/{id}/{what}")).unwrap_or_default()).replace('\0', "\n")
        };
        Self {
            id,
            args: read("cmdline"),
            environ: read("environ"),
        }
    }

    /// The value of a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        let mut values = self.environ.lines().filter_map(|line| line.split_once('='));
        values.find(|(of, _)| *of == name).map(|(_, value)| value)
    }
}

/// The processes below this one.
pub(crate) fn descendants() -> Vec<Seen> {
    let mut found = vec![std::process::id()];
    let mut at = 0;
    while at < found.len() {
        for task in fs::read_dir(format!("/proc/{}/task", found[at]))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().map(|id| id.parse::<u32>().unwrap()));
        }
        at += 1;
    }
    found[1..].iter().copied().map(Seen::of).collect()
}

/// The CLI of this scene, which runs; not its probe.
pub(crate) fn cli_of(scene: &Scene) -> Seen {
    let place = scene.dir.path().display().to_string();
    let mut ours = descendants().into_iter().filter(|seen| {
        let home = seen.variable("HOME").is_some_and(|home| home.starts_with(&place));
        home && seen.variable("CAPSULE_MCP_TOKEN").is_some()
    });
    ours.next().expect("the CLI runs")
}

/// Ids of the processes that this scene's directory shows up in: the CLIs it started.
pub(crate) fn processes(scene: &Scene) -> Vec<u32> {
    let place = scene.dir.path().display().to_string();
    let names = names_in("/proc".as_ref()).into_iter();
    let ids = names.filter_map(|name| name.parse::<u32>().ok());
    ids.filter(|id| {
        let seen = Seen::of(*id);
        seen.args.contains(&place) || seen.environ.contains(&place)
    })
    .collect()
}

pub(crate) fn descriptors() -> usize {
    names_in("/proc/self/fd".as_ref()).len()
}

/// Threads of this process that wait for a CLI's end.
pub(crate) fn reapers() -> usize {
    let tasks = names_in("/proc/self/task".as_ref()).into_iter();
    let names = tasks.filter_map(|id| fs::read_to_string(format!("/proc/self/task/{id}/comm")).ok());
    names.filter(|name| name.trim() == "capsule-reaper").count()
}

/// Memory of this process that is in use now, in bytes.
pub(crate) fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// A file and what is in it.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) content: Vec<u8>,
}

impl Found {
    pub(crate) fn holds(&self, secret: &str) -> bool {
        self.content.windows(secret.len()).any(|at| at == secret.as_bytes())
    }
}

/// Every file below a directory, also those that come and go meanwhile as far as they can be read.
pub(crate) fn files(dir: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    walk(dir, usize::MAX, &mut |path, _| {
        let content = fs::read(path).unwrap_or_default();
        found.push(Found {
            path: path.to_owned(),
            content,
        });
    });
    found
}

/// Files written since `start` in the places that every program of the machine may write to, and in the person's home.
pub(crate) fn written_elsewhere(start: SystemTime) -> Vec<Found> {
    /// Deeper than any place for temporary files; not as deep as what other programs build meanwhile.
    const DEPTH: usize = 3;
    const LARGEST: u64 = 16 << 20;
    let mut places = vec![
        std::env::temp_dir(),
        "/tmp".into(),
        "/var/tmp".into(),
        "/dev/shm".into(),
    ];
    places.extend(std::env::var_os("HOME").map(PathBuf::from));
    places.extend(
        ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"]
            .map(std::env::var_os)
            .into_iter()
            .flatten()
            .map(PathBuf::from),
    );
    places.sort();
    places.dedup();
    let mut found = Vec::new();
    for place in places {
        walk(&place, DEPTH, &mut |path, about| {
            let new = about.modified().is_ok_and(|time| time >= start);
            if new && about.len() <= LARGEST {
                let content = fs::read(path).unwrap_or_default();
                found.push(Found {
                    path: path.to_owned(),
                    content,
                });
            }
        });
    }
    found
}

/// Whether others than its owner can open the file: it and every directory between it and `top` let them.
pub(crate) fn others_can_read(path: &Path, top: &Path) -> bool {
    let lets = |path: &Path, bit| fs::metadata(path).is_ok_and(|about| about.permissions().mode() & bit != 0);
    let mut above = path.ancestors().skip(1).take_while(|dir| *dir != top);
    lets(path, 0o044) && above.all(|dir| lets(dir, 0o011))
}

fn walk(dir: &Path, depth: usize, on: &mut dyn FnMut(&Path, &fs::Metadata)) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        // What is gone again is no file.
        let Ok(about) = entry.path().symlink_metadata() else {
            continue;
        };
        if about.is_dir() && depth > 0 && about.mode() != 0 {
            walk(&entry.path(), depth - 1, on);
        } else if about.is_file() {
            on(&entry.path(), &about);
        }
    }
}
