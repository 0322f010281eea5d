//! The capsule's tools, as a stand-in for a CLI gets at them.

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
};

use serde_json::{Value, json};

use crate::{err, named};

/// The variable in which the host hands over the token.
pub(crate) const TOKEN: &str = "CAPSULE_MCP_TOKEN";

/// The MCP server of the capsule.
pub struct Bridge {
    address: String,
    token: String,
}

impl Bridge {
    /// The server at this URL, with the token of the environment; without it under a name that ends with `-no-token`.
    pub fn at(url: &str) -> Option<Self> {
        let address = url.strip_prefix("http://")?.strip_suffix("/mcp")?.to_owned();
        let token = if named("-no-token") {
            String::new()
        } else {
            std::env::var(TOKEN).unwrap_or_default()
        };
        Some(Self { address, token })
    }

    /// The names of the tools; `None`, and a word on stderr, where the server does not say. Not asked for under a name that ends with
    /// `-no-tools`.
    pub fn tools(&self) -> Option<Vec<String>> {
        if named("-no-tools") {
            return None;
        }
        let listed = self.ask("tools/list", &json!({}))?;
        let tools = listed["tools"].as_array().into_iter().flatten();
        Some(
            tools
                .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
                .collect(),
        )
    }

    /// Calls a tool under an id of the CLI's own.
    pub fn call(&self, key: &str, id: &str, tool: &str, arguments: &Value) -> Option<Value> {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {key: id}});
        self.ask("tools/call", &params)
    }

    fn ask(&self, method: &str, params: &Value) -> Option<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let told = self
            .post(&body)
            .inspect_err(|error| err(format_args!("{method}: {error}")));
        let told = told.ok()?;
        let (head, body) = told.split_once("\r\n\r\n")?;
        if !head.starts_with("HTTP/1.1 200 ") {
            err(format_args!("{method}: {}", head.lines().next().unwrap_or_default()));
            return None;
        }
        let answer: Value = serde_json::from_str(body).ok()?;
        answer.get("result").cloned()
    }

    fn post(&self, body: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             accept: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            self.address,
            self.token,
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut told = String::new();
        stream.read_to_string(&mut told)?;
        Ok(told)
    }
}
