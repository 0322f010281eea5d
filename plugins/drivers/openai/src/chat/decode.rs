//! The chunks of a Chat Completions stream as items.

use std::borrow::Cow;

use capsule_api::{
    BlockDelta, BlockStart, Decoder, Error, Frame, StopReason, StreamItem, Usage,
    serde_json::{self, Value},
};

use super::details::Details;
use crate::{
    calls::{Calls, Piece},
    codes, refusal,
};

/// A decoder for one answer.
pub(crate) fn decoder() -> Box<dyn Decoder> {
    Box::new(Chat::default())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

#[derive(Default)]
struct Chat {
    /// The block that follows the last one.
    next: u32,
    /// The block of text or reasoning that goes on.
    open: Option<(Kind, u32)>,
    calls: Calls,
    details: Details,
    usage: Usage,
    refused: bool,
    stop: Option<StopReason>,
    ended: bool,
}

impl Decoder for Chat {
    fn frame(&mut self, frame: &Frame, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        if frame.data.trim().is_empty() {
            return Ok(());
        }
        let data: Value = serde_json::from_str(&frame.data).map_err(|error| {
            let message = format!("a chunk of the stream is not JSON: {error}");
            Error::new(&codes::PROTOCOL, message)
        })?;
        // Only the first of several answers is one.
        let choices = data["choices"].as_array().map_or(&[][..], Vec::as_slice);
        let first = choices.iter().find(|choice| choice["index"].as_u64().unwrap_or(0) == 0);
        let failed = |value: &Value| !value["error"].is_null();
        if frame.event == "error" || failed(&data) {
            return Err(refusal::in_stream(&data));
        }
        if let Some(choice) = first {
            if failed(choice) {
                return Err(refusal::in_stream(choice));
            }
            // A server that does not stream in earnest sends one `message`.
            let said = [&choice["delta"], &choice["message"]]
                .into_iter()
                .find(|said| said.is_object());
            self.said(said.unwrap_or(&Value::Null), out)?;
            if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
                self.stop = Some(stop_reason(reason)?);
            }
        }
        self.count(&data["usage"], out);
        // The counts of the whole request come last, in a chunk without choices.
        if self.stop.is_some() && choices.is_empty() && data["usage"].is_object() {
            return self.finish(out);
        }
        Ok(())
    }

    fn done(&mut self, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        // `[DONE]` ends an answer as well as a reason does; with neither reason nor content there was no answer.
        if self.next > 0 {
            self.stop.get_or_insert(StopReason::EndTurn);
        }
        self.finish(out)
    }

    fn finish(&mut self, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        // Without a reason the caller finds the answer cut.
        let Some(stop) = self.stop else { return Ok(()) };
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        self.close(out);
        self.calls.end(out);
        // The text of the reasoning was shown as it came. This is what goes back in its place.
        if let Some(details) = self.details.end() {
            let (index, redacted) = (self.next, Some(details));
            self.next += 1;
            let block = BlockStart::Thinking { redacted };
            out.extend([StreamItem::Started { index, block }, StreamItem::Ended { index }]);
        }
        out.push(StreamItem::Stopped(match stop {
            StopReason::EndTurn if self.refused => StopReason::Refusal,
            // Calls win over a reason that says the turn is over.
            StopReason::EndTurn if !self.calls.is_empty() => StopReason::ToolCall,
            stop => stop,
        }));
        Ok(())
    }
}

impl Chat {
    fn said(&mut self, delta: &Value, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        // Gateways that know both names send the same text under both.
        let reasoning = [&delta["reasoning_content"], &delta["reasoning"]];
        let reasoning = reasoning.into_iter().map(text_of).find(|text| !text.is_empty());
        self.text(Kind::Thinking, reasoning.unwrap_or_default(), out);
        self.details.take(&delta["reasoning_details"])?;
        self.text(Kind::Text, text_of(&delta["content"]), out);
        let refusal = text_of(&delta["refusal"]);
        self.refused |= !refusal.is_empty();
        self.text(Kind::Text, refusal, out);
        let calls = delta["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        if calls.is_empty() {
            return Ok(());
        }
        self.close(out);
        let arguments: Vec<_> = calls
            .iter()
            .map(|call| arguments_of(&call["function"]["arguments"]))
            .collect();
        let pieces = calls.iter().zip(&arguments).map(|(call, arguments)| Piece {
            index: call["index"].as_u64(),
            id: call["id"].as_str().unwrap_or_default(),
            name: call["function"]["name"].as_str().unwrap_or_default(),
            arguments,
        });
        self.calls.chunk(&pieces.collect::<Vec<_>>(), &mut self.next, out)
    }

    fn text(&mut self, kind: Kind, text: String, out: &mut Vec<StreamItem>) {
        if text.is_empty() {
            return;
        }
        let index = match self.open {
            Some((open, index)) if open == kind => index,
            _ => {
                self.close(out);
                let index = self.next;
                self.next += 1;
                self.open = Some((kind, index));
                let block = match kind {
                    Kind::Text => BlockStart::Text,
                    Kind::Thinking => BlockStart::Thinking { redacted: None },
                };
                out.push(StreamItem::Started { index, block });
                index
            }
        };
        let delta = BlockDelta::Text(text);
        out.push(StreamItem::Delta { index, delta });
    }

    fn close(&mut self, out: &mut Vec<StreamItem>) {
        if let Some((_, index)) = self.open.take() {
            out.push(StreamItem::Ended { index });
        }
    }

    /// Counts replace the ones before; zeros throughout are a placeholder. What the cache gave is part of the prompt's count.
    fn count(&mut self, usage: &Value, out: &mut Vec<StreamItem>) {
        let of = |value: &Value| value.as_u64().unwrap_or_default();
        let details = &usage["prompt_tokens_details"];
        let cached = details["cached_tokens"].as_u64();
        let cache_read = cached.unwrap_or_else(|| of(&usage["prompt_cache_hit_tokens"]));
        let cache_write = of(&details["cache_write_tokens"]);
        let counts = Usage {
            input: of(&usage["prompt_tokens"]).saturating_sub(cache_read + cache_write),
            output: of(&usage["completion_tokens"]),
            cache_read,
            cache_write,
            reasoning: of(&usage["completion_tokens_details"]["reasoning_tokens"]),
            ..Usage::default()
        };
        if counts != Usage::default() && counts != self.usage {
            self.usage = counts;
            out.push(StreamItem::Usage(counts));
        }
    }
}

/// Text, also where it comes as parts.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Arguments as text, also where they come as the object itself.
fn arguments_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Object(_) => Cow::Owned(value.to_string()),
        _ => Cow::Borrowed(""),
    }
}

/// The finish reason in the contract's words.
fn stop_reason(reason: &str) -> Result<StopReason, Error> {
    Ok(match reason {
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolCall,
        "length" => StopReason::MaxTokens,
        "content_filter" => StopReason::Refusal,
        other => {
            let shown: String = other.chars().filter(|c| !c.is_control()).take(100).collect();
            let message = format!("the model stopped for a reason that is not known here: `{shown}`");
            return Err(Error::new(&codes::STOP_UNKNOWN, message));
        }
    })
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
