//! The lines that are sent to the app-server: JSON-RPC without its version field, one message a line.

use std::path::Path;

use serde_json::{Value, json};

use crate::command::PROVIDER;

/// Ids of the requests, by which their answers are known.
pub(crate) const INITIALIZE: u64 = 0;
pub(crate) const THREAD: u64 = 1;
pub(crate) const TURN: u64 = 2;
const INTERRUPT: u64 = 3;
pub(crate) const AUTH: u64 = 4;

/// The longest input of a turn, in characters.
pub(crate) const MAX_INPUT: usize = 1_048_576;

/// The thread that a turn belongs to.
pub(crate) struct Thread<'a> {
    pub(crate) model: &'a str,
    pub(crate) system_prompt: &'a str,
    pub(crate) work: &'a Path,
    /// Whether it may be gone on with in another process.
    pub(crate) kept: bool,
    /// The thread to go on with.
    pub(crate) resume: Option<&'a str>,
    /// Whether to ask which login the CLI uses.
    pub(crate) login: bool,
}

impl Thread<'_> {
    /// The handshake and the thread, in one piece: each waits for the one before it on the other side.
    pub(crate) fn open(&self) -> Vec<u8> {
        let mut lines = line(&json!({
            "id": INITIALIZE,
            "method": "initialize",
            "params": {
                "clientInfo": {"name": "capsule", "title": "Capsule", "version": env!("CARGO_PKG_VERSION")},
                // For `experimentalRawEvents`.
                "capabilities": {"experimentalApi": true},
            },
        }));
        lines.extend(line(&json!({"method": "initialized"})));
        if self.login {
            let params = json!({"includeToken": false, "refreshToken": false});
            lines.extend(line(&json!({"id": AUTH, "method": "getAuthStatus", "params": params})));
        }
        lines.extend(line(&self.request()));
        lines
    }

    fn request(&self) -> Value {
        let mut params = json!({
            "model": self.model,
            "modelProvider": PROVIDER,
            "approvalPolicy": "never",
            "sandbox": "read-only",
            "cwd": self.work,
            "baseInstructions": self.system_prompt,
        });
        match self.resume {
            Some(thread) => {
                params["threadId"] = json!(thread);
                params["excludeTurns"] = json!(true);
                json!({"id": THREAD, "method": "thread/resume", "params": params})
            }
            None => {
                params["ephemeral"] = json!(!self.kept);
                // The model's own items: calls of tools that are not there, and where one answer ends.
                params["experimentalRawEvents"] = json!(true);
                json!({"id": THREAD, "method": "thread/start", "params": params})
            }
        }
    }
}

/// The user's message. It is a text without elements, so nothing in it is taken for a file or a skill.
pub(crate) fn turn(thread: &str, text: &str) -> Vec<u8> {
    let input = json!([{"type": "text", "text": text, "text_elements": []}]);
    line(&json!({"id": TURN, "method": "turn/start", "params": {"threadId": thread, "input": input}}))
}

/// The protocol's interrupt.
pub(crate) fn interrupt(thread: &str, turn: &str) -> Vec<u8> {
    line(&json!({"id": INTERRUPT, "method": "turn/interrupt", "params": {"threadId": thread, "turnId": turn}}))
}

/// The answer to a request of the app-server's: there is nobody to ask.
pub(crate) fn refusal(id: &Value) -> Vec<u8> {
    line(&json!({"id": id, "error": {"code": -32601, "message": "there is nobody to ask"}}))
}

fn line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}
