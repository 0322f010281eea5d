//! A driver component: a neutral request in, a streamed chat completion out and back.
//!
//! ```text
//! request   the body of the HTTP request
//! exchange  sends it, and reads the answer as it comes (components only)
//! events    bytes into the data of the stream's events
//! answer    their data into the answer, and what is told of it meanwhile
//! failure   what went wrong, by its class
//! ```
//!
//! It holds no key: the host attaches one to its requests.
#![cfg(any(test, target_family = "wasm"))]
mod answer;
mod events;
#[cfg(target_family = "wasm")]
mod exchange;
mod failure;
mod request;

use capsule_guest::{Error, Json, Output, Tool, export_tool};

use answer::Answer;
use failure::Failure;

struct ChatDriver;

export_tool!(ChatDriver {
    name: "chat-driver",
    description: "Speaks to an API of the kind of OpenAI's chat completions. A driver, not a tool.",
    input_schema: r#"{"type": "object", "required": ["model", "messages"]}"#,
});

impl Tool for ChatDriver {
    fn call(input: Json) -> Result<Output, Error> {
        Ok(match ask(&input) {
            Ok(answer) => answer,
            Err(failure) => failure.output(),
        })
    }
}

fn ask(input: &Json) -> Result<Output, Failure> {
    let variable = |name: &str| std::env::var(format!("MURMUR_INFERENCE_{name}")).unwrap_or_default();
    let config = serde_json_or_null(&variable("DRIVER_CONFIG"));
    let path = config["path"].as_str().unwrap_or("/chat/completions");
    let url = format!("{}{path}", variable("ENDPOINT").trim_end_matches('/'));
    let mut answer = Answer::default();
    send(&url, &request::body(input), &mut answer)?;
    answer.finish()
}

fn serde_json_or_null(text: &str) -> Json {
    text.parse().unwrap_or(Json::Null)
}

#[cfg(target_family = "wasm")]
use exchange::send;

/// Outside a component there is no network.
#[cfg(not(target_family = "wasm"))]
fn send(url: &str, _: &Json, _: &mut Answer) -> Result<(), Failure> {
    Err(Failure::new("network", format!("there is no host to reach {url} with")))
}
