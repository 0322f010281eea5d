//! B1: from the start of the process to the first byte of the model request, against `curl` sending the same request.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use tempfile::TempDir;

use crate::{
    Done, Result,
    figure::{Figure, Judged, Side, in_turn},
    program_folder,
    server::{Arrival, Server, headers},
    shipped,
};

const ROUNDS: usize = 40;
/// Milliseconds.
const GOAL: f64 = 30.0;
/// The program, if it is not beside this one.
const PROGRAM: &str = "CAPSULE_BIN";

/// What the model answers.
const SAID: &str = "Hello, Ada!";
const ANSWER: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"usage":{"input_tokens":30,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello, Ada!"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":30,"output_tokens":12}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// Runs the benchmark.
pub(crate) fn run() -> Result<Done> {
    let Ok(curl) = which::which("curl") else {
        return Ok(Done {
            left_out: vec!["B1: curl is not on this machine".to_owned()],
            ..Done::default()
        });
    };
    let program = program()?;
    let server = Server::start(ANSWER)?;
    let folder = capsule(&server)?;
    // The first run fills the compile cache, and its request is the one that curl sends.
    let (_, request) = timed(&server, ours(&program, folder.path()), SAID)?;
    let body = folder.path().join("request.json");
    fs::write(&body, &request.body)?;
    let arguments = curl_arguments(&server, &request, &body)?;
    let side = |command: Command, answer: &str| -> Result<f64> {
        let (milliseconds, sent) = timed(&server, command, answer)?;
        if sent.body != request.body || sent.head.lines().next() != request.head.lines().next() {
            return Err("the request differs from that of the first run".into());
        }
        Ok(milliseconds)
    };
    let rounds = in_turn(
        ROUNDS,
        || side(ours(&program, folder.path()), SAID),
        || {
            let mut command = Command::new(&curl);
            command.args(&arguments);
            side(command, ANSWER)
        },
    )?;
    let figure = Figure {
        id: "b1",
        what: "process start to the first byte of the model request, beyond what curl takes for the same",
        unit: "ms",
        values: rounds.differences(),
        goal: GOAL,
        judged: Judged::Median,
        sides: vec![
            Side {
                name: "capsule run, one tool, compile cache warm",
                unit: "ms",
                values: rounds.first,
            },
            Side {
                name: "curl",
                unit: "ms",
                values: rounds.second,
            },
        ],
    };
    Ok(Done {
        figures: vec![figure],
        ..Done::default()
    })
}

fn program() -> Result<PathBuf> {
    let program = match env::var_os(PROGRAM) {
        Some(path) => PathBuf::from(path),
        None => program_folder()?.join("capsule"),
    };
    if !program.is_file() {
        let path = program.display();
        return Err(format!("{path} is missing: build it with `-p capsule-host`, or name another in {PROGRAM}").into());
    }
    Ok(program)
}

/// A capsule with one tool whose model is the server. Its folder is also the home of all that runs.
fn capsule(server: &Server) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    fs::copy(shipped("hello.wasm"), folder.path().join("hello.wasm"))?;
    let manifest = format!(
        "name: bench\n\
         version: 0.1.0\n\
         task: Greet Ada.\n\
         tools:\n\
         \x20 - name: hello\n\
         \x20   component: hello.wasm\n\
         inference:\n\
         \x20 transport: http\n\
         \x20 driver: anthropic\n\
         \x20 model: claude-sonnet-4-5\n\
         \x20 system_prompt: You greet people.\n\
         \x20 api_key: ${{ANTHROPIC_API_KEY}}\n\
         \x20 endpoint: {}\n",
        server.url()
    );
    fs::write(folder.path().join("capsule.yaml"), manifest)?;
    Ok(folder)
}

fn ours(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("run").arg(folder);
    command
        .env_clear()
        .env("HOME", folder)
        .env("ANTHROPIC_API_KEY", "no-key");
    command
}

/// The same method, path, headers and body. `-q` keeps a person's own settings out.
fn curl_arguments(server: &Server, request: &Arrival, body: &Path) -> Result<Vec<OsString>> {
    let line = request.head.lines().next().unwrap_or_default();
    let path = line.split(' ').nth(1).ok_or("the request has no path")?;
    let mut arguments: Vec<OsString> = ["-q", "-sS", "-N", "--http1.1"].map(OsString::from).to_vec();
    for (name, value) in headers(&request.head) {
        let own = ["host", "content-length"]
            .iter()
            .any(|own| name.eq_ignore_ascii_case(own));
        if !own {
            arguments.extend(["-H".into(), format!("{name}: {value}").into()]);
        }
    }
    let mut from = OsString::from("@");
    from.push(body);
    arguments.extend(["--data-binary".into(), from, format!("{}{path}", server.url()).into()]);
    Ok(arguments)
}

/// Runs a command to its end: milliseconds from before its start to the first byte of its request, and the request.
fn timed(server: &Server, mut command: Command, answer: &str) -> Result<(f64, Arrival)> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let started = Instant::now();
    let child = command.spawn()?;
    let ended = child.wait_with_output()?;
    let (said, complained) = (
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr),
    );
    if !ended.status.success() || !said.contains(answer.trim_end()) {
        let program = command.get_program().to_string_lossy();
        return Err(format!("{program} gave a wrong answer ({}): {said}{complained}", ended.status).into());
    }
    let request = server.next()?;
    let taken = request.at.saturating_duration_since(started);
    Ok((taken.as_secs_f64() * 1000.0, request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curl_is_told_to_send_the_same_request() {
        let server = Server::start("").unwrap();
        let request = Arrival {
            at: Instant::now(),
            head: "POST /v1/messages HTTP/1.1\r\nhost: a\r\nx-api-key: b\r\nContent-Length: 2".to_owned(),
            body: b"{}".to_vec(),
        };
        let arguments = curl_arguments(&server, &request, Path::new("body.json")).unwrap();
        let url = format!("{}/v1/messages", server.url());
        let expected = [
            "-q",
            "-sS",
            "-N",
            "--http1.1",
            "-H",
            "x-api-key: b",
            "--data-binary",
            "@body.json",
            &url,
        ];
        assert_eq!(arguments, expected);
    }

    #[test]
    fn a_command_that_fails_gives_a_wrong_answer() {
        let server = Server::start("").unwrap();
        let failed = timed(&server, Command::new("false"), "").unwrap_err();
        let expected = "false gave a wrong answer (exit status: 1): ";
        assert_eq!(failed.to_string(), expected);
    }
}
