//! The events of a Messages stream as items.

use capsule_api::{
    BlockDelta, BlockStart, Decoder, Error, Frame, StopReason, StreamItem, Usage,
    serde_json::{self, Value},
};

use crate::{codes, refusal};

/// A decoder for one answer.
pub(crate) fn decoder() -> Box<dyn Decoder> {
    Box::new(Messages::default())
}

#[derive(Default)]
struct Messages {
    usage: Usage,
    stop: Option<StopReason>,
    /// Blocks of kinds that are not known here; their events are passed over.
    unknown: Vec<u32>,
}

impl Decoder for Messages {
    fn frame(&mut self, frame: &Frame, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        let data: Value = match serde_json::from_str(&frame.data) {
            Ok(data) => data,
            Err(error) => {
                let message = format!("an event of the stream is not JSON: {error}");
                return Err(Error::new(&codes::PROTOCOL, message));
            }
        };
        let kind = data["type"].as_str().unwrap_or(&frame.event);
        match kind {
            "message_start" => self.count(&data["message"]["usage"], out),
            "content_block_start" => self.started(&data, out)?,
            "content_block_delta" => self.delta(&data, out)?,
            "content_block_stop" => {
                if let Some(index) = self.known(&data)? {
                    out.push(StreamItem::Ended { index });
                }
            }
            "message_delta" => {
                self.count(&data["usage"], out);
                if let Some(reason) = data["delta"]["stop_reason"].as_str() {
                    self.stop = Some(stop_reason(reason)?);
                }
            }
            "message_stop" => return self.finish(out),
            "error" => return Err(refusal::in_stream(&data)),
            // `ping`, and whatever the API adds: its documentation asks clients to pass over events that they do not know.
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        // Without a stop reason the caller finds the answer cut.
        out.extend(self.stop.map(StreamItem::Stopped));
        Ok(())
    }
}

impl Messages {
    /// Counts are cumulative: a later one replaces the one before, and one that is missing leaves it.
    fn count(&mut self, usage: &Value, out: &mut Vec<StreamItem>) {
        let before = self.usage;
        for (key, count) in [
            ("input_tokens", &mut self.usage.input),
            ("output_tokens", &mut self.usage.output),
            ("cache_read_input_tokens", &mut self.usage.cache_read),
            ("cache_creation_input_tokens", &mut self.usage.cache_write),
        ] {
            if let Some(value) = usage[key].as_u64() {
                *count = value;
            }
        }
        if self.usage != before {
            out.push(StreamItem::Usage(self.usage));
        }
    }

    fn started(&mut self, data: &Value, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        let index = index(data)?;
        let start = &data["content_block"];
        let text = |key: &str| start[key].as_str().unwrap_or_default().to_owned();
        let (block, first) = match start["type"].as_str().unwrap_or_default() {
            "text" => (BlockStart::Text, BlockDelta::Text(text("text"))),
            "thinking" => (
                BlockStart::Thinking { redacted: None },
                BlockDelta::Text(text("thinking")),
            ),
            "redacted_thinking" => {
                let redacted = Some(text("data"));
                (BlockStart::Thinking { redacted }, BlockDelta::Text(String::new()))
            }
            "tool_use" => {
                let (id, name) = (text("id"), text("name"));
                // The input at the start is `{}`, a placeholder, unless a gateway sends all of it at once.
                let whole = start["input"].as_object().filter(|input| !input.is_empty());
                let first = whole.map_or(BlockDelta::Input(String::new()), |_| {
                    BlockDelta::WholeInput(start["input"].clone())
                });
                (BlockStart::Call { id, name }, first)
            }
            _ => {
                self.unknown.push(index);
                return Ok(());
            }
        };
        out.push(StreamItem::Started { index, block });
        let empty = matches!(&first, BlockDelta::Text(text) | BlockDelta::Input(text) if text.is_empty());
        if !empty {
            out.push(StreamItem::Delta { index, delta: first });
        }
        let signature = text("signature");
        if !signature.is_empty() {
            let delta = BlockDelta::Signature(signature);
            out.push(StreamItem::Delta { index, delta });
        }
        Ok(())
    }

    fn delta(&mut self, data: &Value, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        let Some(index) = self.known(data)? else {
            return Ok(());
        };
        let delta = &data["delta"];
        let text = |key: &str| delta[key].as_str().unwrap_or_default().to_owned();
        let delta = match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => BlockDelta::Text(text("text")),
            "thinking_delta" => BlockDelta::Text(text("thinking")),
            "signature_delta" => BlockDelta::Signature(text("signature")),
            "input_json_delta" => BlockDelta::Input(text("partial_json")),
            // Citations and the like.
            _ => return Ok(()),
        };
        out.push(StreamItem::Delta { index, delta });
        Ok(())
    }

    /// The index of an event's block, unless it is of a kind that is passed over.
    fn known(&self, data: &Value) -> Result<Option<u32>, Error> {
        let index = index(data)?;
        Ok((!self.unknown.contains(&index)).then_some(index))
    }
}

fn index(data: &Value) -> Result<u32, Error> {
    let index = data["index"].as_u64().and_then(|index| u32::try_from(index).ok());
    index.ok_or_else(|| Error::new(&codes::PROTOCOL, "an event of a content block has no index"))
}

/// The stop reason in the contract's words.
fn stop_reason(reason: &str) -> Result<StopReason, Error> {
    Ok(match reason {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolCall,
        "max_tokens" => StopReason::MaxTokens,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Pause,
        "model_context_window_exceeded" => {
            let message = "the model stopped because its context window is full";
            return Err(Error::new(&codes::CONTEXT, message));
        }
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
