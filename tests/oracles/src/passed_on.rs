//! The real CLI, started by a stand-in that has changed what it is told of the capsule's tools.

use std::{env, fs, io, os::unix::process::CommandExt as _, path::Path, process::Command};

use crate::{bridge::TOKEN, err, named};

/// Nobody listens there.
const CLOSED: &str = "http://127.0.0.1:1/mcp";

/// Becomes the program `real` beside this one, if there is one.
pub fn pass_on() {
    let beside = env::current_exe().map(|own| own.with_file_name("real"));
    let Some(real) = beside.ok().filter(|real| real.exists()) else {
        return;
    };
    let args = env::args()
        .skip(1)
        .map(|arg| if named("-closed-port") { elsewhere(arg) } else { arg });
    let mut command = Command::new(real);
    command.args(args);
    if named("-wrong-token") {
        command.env(TOKEN, "wrong");
    }
    if named("-no-token") {
        command.env_remove(TOKEN);
    }
    let error = command.exec();
    err(format_args!("{error}"));
}

/// An argument with another URL of the capsule's tools, whether it has it or names the file that does.
fn elsewhere(arg: String) -> String {
    if let Some(key) = arg.strip_suffix("/mcp\"").and_then(|arg| arg.split_once('=')) {
        return format!("{}=\"{CLOSED}\"", key.0);
    }
    if !arg.ends_with("/mcp.json") {
        return arg;
    }
    rewritten(&arg).unwrap_or_else(|error| {
        err(format_args!("{arg}: {error}"));
        arg
    })
}

fn rewritten(file: &str) -> io::Result<String> {
    let mut config: serde_json::Value = serde_json::from_slice(&fs::read(file)?)?;
    config["mcpServers"]["capsule"]["url"] = CLOSED.into();
    let copy = Path::new(file).with_file_name("tmp").join("mcp.json");
    fs::write(&copy, config.to_string())?;
    Ok(copy.to_string_lossy().into_owned())
}
