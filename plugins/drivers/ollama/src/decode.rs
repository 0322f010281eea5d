//! The lines of a chat stream as items.

use capsule_api::{
    BlockDelta, BlockStart, Decoder, Error, Frame, StopReason, StreamItem, Usage,
    serde_json::{self, Value},
};

use crate::{codes, refusal};

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
    /// The block of text or thinking that goes on.
    open: Option<(Kind, u32)>,
    calls: bool,
}

impl Decoder for Chat {
    fn frame(&mut self, frame: &Frame, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        let line: Value = serde_json::from_str(&frame.data).map_err(|error| {
            let message = format!("a line of the stream is not JSON: {error}");
            Error::new(&codes::PROTOCOL, message)
        })?;
        if !line["error"].is_null() {
            return Err(refusal::in_stream(&line));
        }
        let message = &line["message"];
        for (kind, key) in [(Kind::Thinking, "thinking"), (Kind::Text, "content")] {
            self.text(kind, message[key].as_str().unwrap_or_default(), out);
        }
        for call in message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice) {
            self.call(call, out);
        }
        if line["done"] == true {
            return self.done_by(&line, out);
        }
        Ok(())
    }

    fn done(&mut self, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        // Not of this API, but proxies end streams so.
        if self.next > 0 {
            self.stop(StopReason::EndTurn, out);
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut Vec<StreamItem>) -> Result<(), Error> {
        // The line that says `done` has been seen, or the caller finds the answer cut.
        Ok(())
    }
}

impl Chat {
    fn text(&mut self, kind: Kind, text: &str, out: &mut Vec<StreamItem>) {
        if text.is_empty() {
            return;
        }
        let index = match self.open {
            Some((open, index)) if open == kind => index,
            _ => {
                self.close(out);
                let block = match kind {
                    Kind::Text => BlockStart::Text,
                    Kind::Thinking => BlockStart::Thinking { redacted: None },
                };
                let index = self.begin(block, out);
                self.open = Some((kind, index));
                index
            }
        };
        let delta = BlockDelta::Text(text.to_owned());
        out.push(StreamItem::Delta { index, delta });
    }

    /// A call comes whole: each entry is one, whatever its index or id.
    fn call(&mut self, call: &Value, out: &mut Vec<StreamItem>) {
        self.close(out);
        self.calls = true;
        let function = &call["function"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (id, name) = (text(&call["id"]), text(&function["name"]));
        let index = self.begin(BlockStart::Call { id, name }, out);
        let delta = BlockDelta::WholeInput(function["arguments"].clone());
        out.push(StreamItem::Delta { index, delta });
        out.push(StreamItem::Ended { index });
    }

    fn begin(&mut self, block: BlockStart, out: &mut Vec<StreamItem>) -> u32 {
        let index = self.next;
        self.next += 1;
        out.push(StreamItem::Started { index, block });
        index
    }

    fn close(&mut self, out: &mut Vec<StreamItem>) {
        if let Some((_, index)) = self.open.take() {
            out.push(StreamItem::Ended { index });
        }
    }

    /// The last line: counts and the reason.
    fn done_by(&mut self, line: &Value, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        let reason = match line["done_reason"].as_str().unwrap_or_default() {
            "stop" | "" => StopReason::EndTurn,
            "length" => StopReason::MaxTokens,
            other => {
                let shown: String = other.chars().filter(|c| !c.is_control()).take(100).collect();
                let message = format!("the model stopped for a reason that is not known here: `{shown}`");
                return Err(Error::new(&codes::STOP_UNKNOWN, message));
            }
        };
        let of = |key: &str| line[key].as_u64().unwrap_or_default();
        let counts = Usage {
            input: of("prompt_eval_count"),
            output: of("eval_count"),
            ..Usage::default()
        };
        if counts != Usage::default() {
            out.push(StreamItem::Usage(counts));
        }
        self.stop(reason, out);
        Ok(())
    }

    fn stop(&mut self, reason: StopReason, out: &mut Vec<StreamItem>) {
        self.close(out);
        // Calls win over a reason that says the turn is over.
        let calls = self.calls && reason == StopReason::EndTurn;
        out.push(StreamItem::Stopped(if calls { StopReason::ToolCall } else { reason }));
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
