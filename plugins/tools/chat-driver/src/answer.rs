//! The answer, put together from the events of the stream, and told while it comes.

use capsule_guest::{Json, Output, emit_chunk, emit_thinking, json, tool_call_input_bytes, tool_call_started};

use crate::failure::Failure;

/// An answer on its way.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    text: String,
    thinking: String,
    calls: Vec<Call>,
    finish: Option<String>,
    refused: bool,
    usage: Json,
    failure: Option<Failure>,
    done: bool,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Answer {
    /// Takes the data of an event.
    pub(crate) fn event(&mut self, data: &str) {
        self.done |= data == "[DONE]";
        if self.is_over() {
            return;
        }
        let Ok(event) = data.parse::<Json>() else {
            self.failure = Some(Failure::new("protocol", "an event of the stream is not JSON"));
            return;
        };
        if !event["error"].is_null() {
            self.failure = Some(Failure::of_event(&event["error"]));
            return;
        }
        if event["usage"].is_object() {
            self.usage = event["usage"].clone();
        }
        // The last event has the counts and no choice.
        let choice = &event["choices"][0];
        self.delta(&choice["delta"]);
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
    }

    fn delta(&mut self, delta: &Json) {
        if let Some(piece) = text(&delta["reasoning_content"]) {
            self.thinking.push_str(piece);
            emit_thinking(piece);
        }
        self.refused |= text(&delta["refusal"]).is_some();
        for piece in [text(&delta["content"]), text(&delta["refusal"])].into_iter().flatten() {
            self.text.push_str(piece);
            emit_chunk(piece);
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(piece);
        }
    }

    /// A piece of a call: of the call with this index, unless it brings another id.
    fn call(&mut self, piece: &Json) {
        let id = text(&piece["id"]).unwrap_or_default();
        let index = piece["index"].as_u64();
        let fits = |call: &&mut Call| match index {
            Some(_) => call.index == index,
            None => true,
        };
        let known = self.calls.iter_mut().rev().find(fits);
        let known = known.filter(|call| id.is_empty() || call.id.is_empty() || call.id == id);
        let call = match known {
            Some(call) => call,
            None => {
                self.calls.push(Call {
                    index,
                    ..Call::default()
                });
                let last = self.calls.len() - 1;
                &mut self.calls[last]
            }
        };
        let named = call.is_named();
        if call.id.is_empty() {
            call.id.push_str(id);
        }
        if call.name.is_empty() {
            call.name.push_str(text(&piece["function"]["name"]).unwrap_or_default());
        }
        call.arguments
            .push_str(text(&piece["function"]["arguments"]).unwrap_or_default());
        if call.is_named() {
            if !named {
                tool_call_started(&call.id, &call.name);
            }
            tool_call_input_bytes(&call.id, call.arguments.len() as u64);
        }
    }

    /// Whether nothing more need be read.
    pub(crate) fn is_over(&self) -> bool {
        self.done || self.failure.is_some()
    }

    /// The whole answer.
    pub(crate) fn finish(self) -> Result<Output, Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let Some(finish) = self.finish else {
            let what = "the stream ended before the answer was complete";
            return Err(Failure::new("network", what).transient());
        };
        let stop_reason = match finish.as_str() {
            _ if self.refused => "refusal",
            // Some say `stop` and mean the calls.
            "stop" if !self.calls.is_empty() => "tool_call",
            "stop" => "end_turn",
            "tool_calls" | "function_call" => "tool_call",
            "length" => "max_tokens",
            "content_filter" => "refusal",
            other => other,
        };
        let mut content = Vec::new();
        if !self.thinking.is_empty() {
            content.push(json!({"type": "thinking", "text": self.thinking}));
        }
        if !self.text.is_empty() {
            content.push(json!({"type": "text", "text": self.text}));
        }
        content.extend(self.calls.into_iter().map(|call| {
            // What is not whole stays text, and the host does not run it.
            json!({"type": "tool_call", "id": call.id, "name": call.name, "input": call.arguments})
        }));
        let answer = json!({"stop_reason": stop_reason, "content": content, "usage": usage(&self.usage)});
        Ok(Output::json(&answer))
    }
}

impl Call {
    /// Whether it can be told: by an id and a name.
    fn is_named(&self) -> bool {
        !self.id.is_empty() && !self.name.is_empty()
    }
}

fn text(value: &Json) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// The API counts cached tokens among those of the prompt; here they stand apart.
fn usage(usage: &Json) -> Json {
    if usage.is_null() {
        return Json::Null;
    }
    let count = |value: &Json| value.as_u64().unwrap_or_default();
    let cached = count(&usage["prompt_tokens_details"]["cached_tokens"]);
    json!({
        "input_tokens": count(&usage["prompt_tokens"]).saturating_sub(cached),
        "output_tokens": count(&usage["completion_tokens"]),
        "cache_read_tokens": cached,
        "reasoning_tokens": count(&usage["completion_tokens_details"]["reasoning_tokens"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(events: &[Json]) -> Result<Output, Failure> {
        let mut answer = Answer::default();
        events.iter().for_each(|event| answer.event(&event.to_string()));
        answer.event("[DONE]");
        answer.finish()
    }

    fn delta(delta: Json) -> Json {
        json!({"choices": [{"delta": delta}]})
    }

    fn stop(reason: &str) -> Json {
        json!({"choices": [{"delta": {}, "finish_reason": reason}]})
    }

    #[test]
    fn text_calls_and_counts_are_put_together() {
        let piece = |piece: Json| delta(json!({"tool_calls": [piece]}));
        let events = [
            delta(json!({"reasoning_content": "Hm"})),
            delta(json!({"content": "Hel"})),
            delta(json!({"content": "lo"})),
            piece(json!({"index": 0, "id": "c1", "function": {"name": "greet", "arguments": "{\"na"}})),
            piece(json!({"index": 0, "function": {"arguments": "me\": 1}"}})),
            // The same index, and another call.
            piece(json!({"index": 0, "id": "c2", "function": {"name": "greet", "arguments": ""}})),
            stop("stop"),
            json!({"choices": [], "usage": {
                "prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4},
            }}),
        ];
        let expected = json!({
            "stop_reason": "tool_call",
            "content": [
                {"type": "thinking", "text": "Hm"},
                {"type": "text", "text": "Hello"},
                {"type": "tool_call", "id": "c1", "name": "greet", "input": "{\"name\": 1}"},
                {"type": "tool_call", "id": "c2", "name": "greet", "input": ""},
            ],
            "usage": {"input_tokens": 6, "output_tokens": 5, "cache_read_tokens": 4, "reasoning_tokens": 0},
        });
        assert_eq!(answer(&events), Ok(Output::json(&expected)));
    }

    #[test]
    fn reasons_to_stop_are_the_hosts_where_it_has_them() {
        for (reason, expected) in [
            ("stop", "end_turn"),
            ("length", "max_tokens"),
            ("content_filter", "refusal"),
            ("bored", "bored"),
        ] {
            let expected = json!({"stop_reason": expected, "content": [], "usage": null});
            assert_eq!(answer(&[stop(reason)]), Ok(Output::json(&expected)));
        }
    }

    #[test]
    fn a_cut_stream_and_an_error_in_it_are_failures() {
        let cut = Failure::new("network", "the stream ended before the answer was complete").transient();
        assert_eq!(answer(&[delta(json!({"content": "Hel"}))]), Err(cut));
        let error = json!({"error": {"message": "busy", "code": 503}});
        let busy = Failure::new("overloaded", "busy").transient();
        assert_eq!(answer(&[error, stop("stop")]), Err(busy));
    }
}
