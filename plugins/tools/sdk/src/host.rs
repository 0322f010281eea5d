//! What the host offers a tool while it runs.

use crate::Json;
#[cfg(target_family = "wasm")]
use crate::bindings::murmur;

/// Shows text to the person who runs the task, before the tool has ended. It is no part of the
/// answer. Where nobody watches, and outside a component, it does nothing.
pub fn emit_chunk(text: &str) {
    #[cfg(target_family = "wasm")]
    murmur::stream::events::emit_chunk(text);
    #[cfg(not(target_family = "wasm"))]
    let _ = text;
}

/// Like [`emit_chunk`], for text that explains how the tool gets there.
pub fn emit_thinking(text: &str) {
    #[cfg(target_family = "wasm")]
    murmur::stream::events::emit_thinking_chunk(text);
    #[cfg(not(target_family = "wasm"))]
    let _ = text;
}

/// Says that the model has begun to write the tool call `id`. For drivers: from a tool it does
/// nothing.
pub fn tool_call_started(id: &str, name: &str) {
    #[cfg(target_family = "wasm")]
    murmur::stream::events::tool_call_started(id, name);
    #[cfg(not(target_family = "wasm"))]
    let _ = (id, name);
}

/// Says how many bytes of that call's input there are by now. For drivers: from a tool it does
/// nothing.
pub fn tool_call_input_bytes(id: &str, bytes: u64) {
    #[cfg(target_family = "wasm")]
    murmur::stream::events::tool_call_input_bytes(id, bytes);
    #[cfg(not(target_family = "wasm"))]
    let _ = (id, bytes);
}

/// Asks the person who runs the task and waits for the answer. The tool's deadline does not run
/// meanwhile. With nobody to ask, the host ends the call as failed and this function does not
/// return.
///
/// # Panics
///
/// Outside a component, where no host can ask.
#[must_use]
pub fn request_input(prompt: &str) -> String {
    #[cfg(target_family = "wasm")]
    return murmur::task::task::request_input(prompt);
    #[cfg(not(target_family = "wasm"))]
    panic!("request_input({prompt:?}) outside a component: there is no host to ask");
}

/// Calls another tool of the same capsule and returns its data: JSON where it is JSON, else a
/// string; `null` where it has none.
///
/// # Errors
///
/// The text of the other tool where that failed, the host's reason where it made no call (an
/// unknown name, too deep a chain of calls), and always outside a component.
pub fn invoke(name: &str, input: &Json) -> Result<Json, String> {
    #[cfg(target_family = "wasm")]
    return invoke_in_host(name, input);
    #[cfg(not(target_family = "wasm"))]
    Err(format!("no host to call tool '{name}' with {input}"))
}

#[cfg(target_family = "wasm")]
fn invoke_in_host(name: &str, input: &Json) -> Result<Json, String> {
    use murmur::tool::run::{Status, ToolInput};

    let input = ToolInput {
        data: Some(input.to_string()),
        log_path: None,
    };
    let result = murmur::tool_registry::invoke::invoke(name, &input)?;
    match (result.status, result.data) {
        (Status::Passed, None) => Ok(Json::Null),
        (Status::Passed, Some(data)) => Ok(serde_json::from_str(&data).unwrap_or(Json::String(data))),
        (_, data) => Err(data
            .or(result.summary)
            .unwrap_or_else(|| format!("tool '{name}' failed and gave no reason"))),
    }
}
