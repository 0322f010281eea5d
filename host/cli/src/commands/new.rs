//! `capsule new`: a capsule that runs at once.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use crate::{
    Failure,
    args::{New, Template},
    failure,
};

/// The files of a template. Reached by a committed link inside the crate, so that a packaged crate has them too.
const HELLO: &[(&str, &[u8])] = &[
    ("capsule.yaml", include_bytes!("../../capsules/hello/capsule.yaml")),
    ("README.md", include_bytes!("../../capsules/hello/README.md")),
    ("notes/team.md", include_bytes!("../../capsules/hello/notes/team.md")),
    (
        "tapes/hello.json",
        include_bytes!("../../capsules/hello/tapes/hello.json"),
    ),
    (
        "tools/hello.wasm",
        include_bytes!("../../capsules/hello/tools/hello.wasm"),
    ),
    (
        "tools/read-file.wasm",
        include_bytes!("../../capsules/hello/tools/read-file.wasm"),
    ),
];

pub(crate) fn new(args: &New) -> Result<ExitCode, Failure> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if args.name.is_empty() || args.name.len() > 100 || !args.name.chars().all(good) {
        let message = format!(
            "`{}` cannot name a capsule: use 1 to 100 lower-case letters, digits and `-`",
            args.name
        );
        return Err(Failure::usage(message));
    }
    let dir = Path::new(&args.name);
    // `create_dir`, so that nothing that is already there is ever overwritten.
    fs::create_dir(dir)
        .map_err(|error| Failure::usage(format!("cannot make the directory `{}`: {error}", args.name)))?;
    let files = match args.template {
        Template::Hello => HELLO,
    };
    for (path, bytes) in files {
        write(dir, path, bytes, &args.name)
            .map_err(|error| Failure::usage(format!("cannot write {}/{path}: {error}", args.name)))?;
    }
    let told = writeln!(
        io::stdout().lock(),
        "made {0}/; run it with: capsule run {0}",
        args.name
    );
    told.map_err(|error| failure::output(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn write(dir: &Path, path: &str, bytes: &[u8], name: &str) -> io::Result<()> {
    let to = dir.join(path);
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    if path == "capsule.yaml" {
        let text = String::from_utf8_lossy(bytes).replacen("name: hello\n", &format!("name: {name}\n"), 1);
        return fs::write(to, text);
    }
    fs::write(to, bytes)
}
