//! The real CLI, started by a stand-in that has changed what it is told of the capsule's tools.

use std::{env, fs, io, os::unix::process::CommandExt as _, path::Path, process::Command};

use crate::{bridge::TOKEN, err, named};

/// Nobody listens there.
const CLOSED: u16 = 1;

/// Becomes the program `real` beside this one, if there is one.
pub fn pass_on() {
    let beside = env::current_exe().map(|own| own.with_file_name("real"));
    let Some(real) = beside.ok().filter(|real| real.exists()) else {
        return;
    };
    let port = other_port();
    let args = env::args().skip(1).map(|arg| match port {
        Some(port) => elsewhere(arg, port),
        None => arg,
    });
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

/// The port for the capsule's tools that its own name asks for.
fn other_port() -> Option<u16> {
    if named("-closed-port") {
        return Some(CLOSED);
    }
    let name = env::args().next()?;
    name.rsplit_once("-port-")?.1.parse().ok()
}

/// An argument with another URL of the capsule's tools, whether it has it or names the file that does.
fn elsewhere(arg: String, port: u16) -> String {
    if let Some(key) = arg.strip_suffix("/mcp\"").and_then(|arg| arg.split_once('=')) {
        return format!("{}=\"{}\"", key.0, url(port));
    }
    if !arg.ends_with("/mcp.json") {
        return arg;
    }
    rewritten(&arg, port).unwrap_or_else(|error| {
        err(format_args!("{arg}: {error}"));
        arg
    })
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/mcp")
}

fn rewritten(file: &str, port: u16) -> io::Result<String> {
    let mut config: serde_json::Value = serde_json::from_slice(&fs::read(file)?)?;
    config["mcpServers"]["capsule"]["url"] = url(port).into();
    let copy = Path::new(file).with_file_name("tmp").join("mcp.json");
    fs::write(&copy, config.to_string())?;
    Ok(copy.to_string_lossy().into_owned())
}
