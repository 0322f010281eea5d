//! The Responses API: <https://platform.openai.com/docs/api-reference/responses-streaming>.

mod check;

use bytes::Bytes;
use serde_json::{Value, json};

pub(crate) use self::check::check;
use super::{
    NotOffered, Stream, named,
    openai::{call_id, error_object},
    sse,
};
use crate::{ApiError, Block, Call, Quirk, Reply, Usage};

/// The type of a tool that is a group of tools.
const GROUP: &str = "namespace";

/// The event that ends a stream with an error.
pub(crate) fn error_event(error: &ApiError) -> Bytes {
    let mut event = error_object(error);
    event["type"] = json!("error");
    event["code"] = json!(event["code"].as_str().unwrap_or("server_error"));
    event["sequence_number"] = json!(999);
    sse(Some("error"), &event.to_string())
}

/// A reply as server-sent events: the response as it begins, each item with its parts and deltas, the response as it ended.
pub(crate) fn events(reply: &Reply, request: &Value, number: usize) -> Result<Stream, NotOffered> {
    let mut told = Told {
        reply,
        request,
        number,
        events: Vec::new(),
        output: Vec::new(),
    };
    let begun = told.response("in_progress");
    told.push("response.created", json!({"response": begun}));
    told.push("response.in_progress", json!({"response": begun}));
    for block in &reply.blocks {
        told.block(block)?;
    }
    let content = told.events.len();
    if reply.has(Quirk::NoReason) {
        told.events.push(sse(None, "[DONE]"));
    } else {
        let (event, response) = told.end();
        told.push(event, json!({"response": response}));
    }
    Ok(Stream {
        events: told.events,
        content,
    })
}

/// A reply as one JSON object.
pub(crate) fn whole(reply: &Reply, request: &Value, number: usize) -> Result<Value, NotOffered> {
    let mut told = Told {
        reply,
        request,
        number,
        events: Vec::new(),
        output: Vec::new(),
    };
    for block in &reply.blocks {
        told.block(block)?;
    }
    Ok(told.end().1)
}

/// What was told so far.
struct Told<'a> {
    reply: &'a Reply,
    request: &'a Value,
    number: usize,
    events: Vec<Bytes>,
    output: Vec<Value>,
}

impl Told<'_> {
    fn push(&mut self, kind: &str, mut fields: Value) {
        let mut event = json!({"type": kind, "sequence_number": self.events.len()});
        if let (Value::Object(event), Value::Object(fields)) = (&mut event, &mut fields) {
            event.append(fields);
        }
        let has_place = event["output_index"].is_u64();
        if has_place && self.reply.has(Quirk::IndexZero) {
            event["output_index"] = json!(0);
        }
        if let (true, true, Value::Object(event)) = (has_place, self.reply.has(Quirk::NoIndex), &mut event) {
            event.remove("output_index");
        }
        self.events.push(sse(Some(kind), &event.to_string()));
    }

    fn response(&self, status: &str) -> Value {
        json!({
            "id": format!("resp_scripted_{:04}", self.number + 1),
            "object": "response",
            "created_at": 1_700_000_000,
            "status": status,
            "error": null,
            "incomplete_details": null,
            "instructions": self.request["instructions"],
            "max_output_tokens": self.request["max_output_tokens"],
            "model": self.request["model"],
            "output": self.output,
            "parallel_tool_calls": true,
            "previous_response_id": self.request["previous_response_id"],
            "store": self.request["store"] != false,
            "tool_choice": "auto",
            "tools": self.request["tools"].as_array().cloned().unwrap_or_default(),
            "metadata": {},
            "usage": null,
        })
    }

    /// The last event's name and response.
    fn end(&self) -> (&'static str, Value) {
        let reason = match self.reply.stop_reason() {
            "end_turn" | "tool_use" | "refusal" => None,
            "max_tokens" => Some("max_output_tokens"),
            other => Some(other),
        };
        let mut response = self.response(if reason.is_some() { "incomplete" } else { "completed" });
        if let Some(reason) = reason {
            response["incomplete_details"] = json!({"reason": reason});
        }
        if !self.reply.has(Quirk::NoUsage) {
            response["usage"] = usage(self.reply.usage);
        }
        let event = if reason.is_some() {
            "response.incomplete"
        } else {
            "response.completed"
        };
        (event, response)
    }

    fn block(&mut self, block: &Block) -> Result<(), NotOffered> {
        match block {
            Block::Text(text) => self.text(&text.to_vec()),
            Block::Thinking { text, signature } => self.reasoning(&text.to_vec(), signature),
            Block::RedactedThinking(data) => self.reasoning(&[], data),
            Block::Call(call) => self.call(call)?,
            Block::Other { start, deltas } => {
                let place = self.output.len();
                self.push(
                    "response.output_item.added",
                    json!({"output_index": place, "item": start}),
                );
                for delta in deltas {
                    let kind = delta["type"].as_str().unwrap_or_default().to_owned();
                    self.push(&kind, delta.clone());
                }
                self.item_done(start.clone());
            }
            Block::Events(raw) => {
                let raw = raw.iter().map(|raw| sse(raw.event.as_deref(), &raw.data));
                self.events.extend(raw);
            }
        }
        Ok(())
    }

    /// An item's id: `msg_scripted_0001_0`.
    fn id(&self, kind: &str) -> String {
        format!("{kind}_scripted_{:04}_{}", self.number + 1, self.output.len())
    }

    fn item_done(&mut self, item: Value) {
        let place = self.output.len();
        self.push(
            "response.output_item.done",
            json!({"output_index": place, "item": item}),
        );
        self.output.push(item);
    }

    fn text(&mut self, pieces: &[String]) {
        let refusal = self.reply.stop.as_deref() == Some("refusal");
        let (id, place, text) = (self.id("msg"), self.output.len(), pieces.concat());
        let message = |status: &str, content: Value| json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content});
        let (kind, part) = if refusal {
            ("refusal", json!({"type": "refusal", "refusal": text}))
        } else {
            (
                "output_text",
                json!({"type": "output_text", "text": text, "annotations": []}),
            )
        };
        let mut empty = part.clone();
        empty[if refusal { "refusal" } else { "text" }] = json!("");
        let at = |mut fields: Value| {
            fields["item_id"] = json!(id);
            fields["output_index"] = json!(place);
            fields["content_index"] = json!(0);
            fields
        };
        let begun = message("in_progress", json!([]));
        self.push(
            "response.output_item.added",
            json!({"output_index": place, "item": begun}),
        );
        self.push("response.content_part.added", at(json!({"part": empty})));
        for piece in pieces {
            let fields = if refusal {
                json!({"delta": piece})
            } else {
                json!({"delta": piece, "logprobs": []})
            };
            self.push(&format!("response.{kind}.delta"), at(fields));
        }
        let whole = if refusal {
            json!({"refusal": text})
        } else {
            json!({"text": text, "logprobs": []})
        };
        self.push(&format!("response.{kind}.done"), at(whole));
        self.push("response.content_part.done", at(json!({"part": part})));
        self.item_done(message("completed", json!([part])));
    }

    fn reasoning(&mut self, pieces: &[String], encrypted: &str) {
        let (id, place) = (self.id("rs"), self.output.len());
        let mut item = json!({"id": id, "type": "reasoning", "summary": []});
        self.push(
            "response.output_item.added",
            json!({"output_index": place, "item": item}),
        );
        let part = |text: &str| json!({"type": "summary_text", "text": text});
        let at = |mut fields: Value| {
            fields["item_id"] = json!(id);
            fields["output_index"] = json!(place);
            fields["summary_index"] = json!(0);
            fields
        };
        if !pieces.is_empty() {
            let text = pieces.concat();
            self.push("response.reasoning_summary_part.added", at(json!({"part": part("")})));
            for piece in pieces {
                self.push("response.reasoning_summary_text.delta", at(json!({"delta": piece})));
            }
            self.push("response.reasoning_summary_text.done", at(json!({"text": text})));
            self.push("response.reasoning_summary_part.done", at(json!({"part": part(&text)})));
            item["summary"] = json!([part(&text)]);
        }
        // Given to those who ask.
        let asked = self.request["include"].as_array();
        if asked.is_some_and(|asked| asked.contains(&json!("reasoning.encrypted_content"))) {
            item["encrypted_content"] = json!(encrypted);
        }
        self.item_done(item);
    }

    fn call(&mut self, call: &Call) -> Result<(), NotOffered> {
        let (id, place) = (self.id("fc"), self.output.len());
        let grouped = grouped(call, self.request);
        let name = match grouped {
            Some((_, name)) => name.to_owned(),
            None => named(call, self.request)?,
        };
        let mut whole = json!({
            "id": id, "type": "function_call", "status": "completed", "call_id": call_id(call, self.number, place),
            "name": name, "arguments": call.input_pieces().concat(),
        });
        if let Some((group, _)) = grouped {
            whole["namespace"] = json!(group);
        }
        let mut begun = whole.clone();
        begun["status"] = json!("in_progress");
        begun["arguments"] = json!("");
        if self.reply.has(Quirk::LateId) {
            begun["call_id"] = json!("");
        }
        self.push(
            "response.output_item.added",
            json!({"output_index": place, "item": begun}),
        );
        for piece in call.input_pieces() {
            let fields = json!({"item_id": id, "output_index": place, "delta": piece});
            self.push("response.function_call_arguments.delta", fields);
        }
        let fields = json!({
            "item_id": id, "output_index": place, "name": whole["name"], "arguments": whole["arguments"]
        });
        self.push("response.function_call_arguments.done", fields);
        if self.reply.stop_reason() == "max_tokens" {
            whole["status"] = json!("incomplete");
        }
        self.item_done(whole);
        Ok(())
    }
}

/// The group and the name under which a request offers a script's tool, where it offers its tools in groups, as some clients do with those
/// of an MCP server. Such a client may also write `_` for `-`.
fn grouped<'a>(call: &Call, request: &'a Value) -> Option<(&'a str, &'a str)> {
    if call.raw_name {
        return None;
    }
    let wanted = call.name.replace('-', "_");
    let groups = request["tools"].as_array()?.iter().filter(|tool| tool["type"] == GROUP);
    let mut offered = groups.flat_map(|group| {
        let tools = group["tools"].as_array().map_or(&[][..], Vec::as_slice);
        tools
            .iter()
            .filter_map(|tool| Some((group["name"].as_str()?, tool["name"].as_str()?)))
    });
    offered.find(|(_, name)| name.replace('-', "_") == wanted)
}

fn usage(usage: Usage) -> Value {
    let input = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": usage.cache_read_input_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": input + usage.output_tokens,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_offered_in_a_group_is_called_with_its_group() {
        let group =
            json!({"type": "namespace", "name": "mcp__capsule", "tools": [{"type": "function", "name": "read_file"}]});
        let request = json!({"tools": [{"type": "function", "name": "other"}, group]});
        let reply = Reply::new().call("call-1", "read-file", json!({}));
        let answer = whole(&reply, &request, 0).unwrap();
        let call = &answer["output"][0];
        assert_eq!(
            (&call["namespace"], &call["name"]),
            (&json!("mcp__capsule"), &json!("read_file"))
        );
        let reply = Reply::new().call("call-1", "write", json!({}));
        assert!(whole(&reply, &request, 0).is_err(), "what is not offered is not called");
    }
}
