//! The events of a Responses stream as items.

use capsule_api::{
    BlockDelta, BlockStart, Decoder, Error, Frame, StopReason, StreamItem, Usage,
    serde_json::{self, Value},
};

use crate::{
    calls::{Call, Piece},
    codes, refusal,
};

/// A decoder for one answer.
pub(crate) fn decoder() -> Box<dyn Decoder> {
    Box::new(Responses::default())
}

/// An item of the output.
struct Item {
    id: String,
    /// Its place, as the events name it.
    place: Option<u64>,
    /// Its block of the answer.
    block: u32,
    form: Form,
    ended: bool,
}

enum Form {
    /// Text or reasoning; `said` once something of it came.
    Written {
        said: bool,
    },
    Call(Call),
    /// Tools that the provider runs itself, and whatever the API adds.
    Other,
}

#[derive(Default)]
struct Responses {
    items: Vec<Item>,
    refused: bool,
    ended: bool,
}

impl Decoder for Responses {
    fn frame(&mut self, frame: &Frame, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        if frame.data.trim().is_empty() {
            return Ok(());
        }
        let data: Value = serde_json::from_str(&frame.data).map_err(|error| {
            let message = format!("an event of the stream is not JSON: {error}");
            Error::new(&codes::PROTOCOL, message)
        })?;
        let text = |key: &str| data[key].as_str().unwrap_or_default();
        match data["type"].as_str().unwrap_or(&frame.event) {
            "response.output_item.added" => self.added(&data, out)?,
            "response.output_text.delta" => self.written(&data, text("delta"), out),
            "response.refusal.delta" => {
                self.refused = true;
                self.written(&data, text("delta"), out);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.written(&data, text("delta"), out);
            }
            // Paragraphs of a summary are parted as its text is shown.
            "response.reasoning_summary_part.added" if data["summary_index"].as_u64() > Some(0) => {
                self.written(&data, "\n\n", out);
            }
            "response.function_call_arguments.delta" => {
                if let Some(call) = self.call(&data) {
                    let arguments = text("delta");
                    call.take(
                        &Piece {
                            arguments,
                            ..Piece::default()
                        },
                        out,
                    )?;
                }
            }
            "response.function_call_arguments.done" => {
                if let (Some(call), Some(arguments)) = (self.call(&data), data["arguments"].as_str()) {
                    call.whole(arguments, out)?;
                }
            }
            "response.output_item.done" => self.item_done(&data, out)?,
            "response.completed" => return self.completed(&data["response"], out),
            "response.incomplete" => return self.incomplete(&data["response"], out),
            "response.failed" => return Err(refusal::in_stream(&data["response"])),
            "response.cancelled" => return Err(Error::new(&codes::PROTOCOL, "the endpoint cancelled the answer")),
            "error" => return Err(refusal::in_stream(&data)),
            // Servers that fail outside of the API's own events.
            "" if !data["error"].is_null() => return Err(refusal::in_stream(&data)),
            // Starts and ends of parts, whole texts after their deltas, and whatever the API adds.
            _ => {}
        }
        Ok(())
    }

    fn done(&mut self, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        // `[DONE]` ends an answer as well as its last event does; where nothing came there was no answer.
        if !self.items.is_empty() {
            self.stop(StopReason::EndTurn, out);
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut Vec<StreamItem>) -> Result<(), Error> {
        // The last event has been seen, or the caller finds the answer cut.
        Ok(())
    }
}

impl Responses {
    fn added(&mut self, data: &Value, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        let (at, item) = (self.items.len(), &data["item"]);
        let block = u32::try_from(at).map_err(|_| Error::new(&codes::PROTOCOL, "the answer has too many items"))?;
        let started = match item["type"].as_str().unwrap_or_default() {
            "message" => Some(BlockStart::Text),
            "reasoning" => Some(BlockStart::Thinking { redacted: None }),
            _ => None,
        };
        let form = match (&started, item["type"].as_str()) {
            (Some(_), _) => Form::Written { said: false },
            (None, Some("function_call")) => Form::Call(Call::new(block, None)),
            _ => Form::Other,
        };
        self.items.push(Item {
            id: item["id"].as_str().unwrap_or_default().to_owned(),
            place: data["output_index"].as_u64(),
            block,
            form,
            ended: false,
        });
        if let Some(start) = started {
            out.push(StreamItem::Started {
                index: block,
                block: start,
            });
        }
        if let Form::Call(call) = &mut self.items[at].form {
            call.take(&piece_of(item), out)?;
        }
        Ok(())
    }

    /// The item that an event is about: by its id and place, by either, else the last one.
    fn item(&mut self, id: &str, place: Option<u64>) -> Option<&mut Item> {
        let find = |is: &dyn Fn(&Item) -> bool| self.items.iter().rposition(|item| !item.ended && is(item));
        let by_id = |item: &Item| !id.is_empty() && item.id == id;
        let by_place = |item: &Item| place.is_some() && item.place == place;
        let at = find(&|item| by_id(item) && by_place(item))
            .or_else(|| find(&by_id))
            .or_else(|| find(&by_place))
            .or_else(|| find(&|_| id.is_empty() && place.is_none()))?;
        self.items.get_mut(at)
    }

    fn item_of(&mut self, data: &Value) -> Option<&mut Item> {
        self.item(
            data["item_id"].as_str().unwrap_or_default(),
            data["output_index"].as_u64(),
        )
    }

    fn call(&mut self, data: &Value) -> Option<&mut Call> {
        match &mut self.item_of(data)?.form {
            Form::Call(call) => Some(call),
            _ => None,
        }
    }

    fn written(&mut self, data: &Value, text: &str, out: &mut Vec<StreamItem>) {
        if let Some(item) = self.item_of(data)
            && let Form::Written { said } = &mut item.form
            && !text.is_empty()
        {
            *said = true;
            let (index, delta) = (item.block, BlockDelta::Text(text.to_owned()));
            out.push(StreamItem::Delta { index, delta });
        }
    }

    /// An item is whole: what came of it before is not said again, what is new is.
    fn item_done(&mut self, data: &Value, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        let whole = &data["item"];
        let (id, place) = (whole["id"].as_str().unwrap_or_default(), data["output_index"].as_u64());
        if self.item(id, place).is_none() {
            self.added(data, out)?;
        }
        let refused = refusal_of(whole);
        self.refused |= !refused.is_empty();
        let Some(item) = self.item(id, place) else {
            return Ok(());
        };
        let index = item.block;
        item.ended = true;
        match &mut item.form {
            Form::Call(call) => {
                let arguments = whole["arguments"].as_str().unwrap_or_default().to_owned();
                let id = piece_of(whole);
                call.take(&Piece { arguments: "", ..id }, out)?;
                if !arguments.is_empty() {
                    call.whole(&arguments, out)?;
                }
                call.end(out);
                return Ok(());
            }
            Form::Written { said } => {
                let text = text_of(whole) + &refused;
                if !*said && !text.is_empty() {
                    let delta = BlockDelta::Text(text);
                    out.push(StreamItem::Delta { index, delta });
                }
                // Reasoning goes back as the item it was.
                if whole["type"] == "reasoning" {
                    let delta = BlockDelta::Signature(whole.to_string());
                    out.push(StreamItem::Delta { index, delta });
                }
            }
            Form::Other => return Ok(()),
        }
        out.push(StreamItem::Ended { index });
        Ok(())
    }

    fn completed(&mut self, response: &Value, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        // Servers that stream nothing but this event.
        if self.items.is_empty() {
            let output = response["output"].as_array().map_or(&[][..], Vec::as_slice);
            for (place, item) in output.iter().enumerate() {
                let data = serde_json::json!({"output_index": place, "item": item});
                self.added(&data, out)?;
                self.item_done(&data, out)?;
            }
        }
        count(&response["usage"], out);
        // Only what was stored can be continued by its id.
        if let (Some(id), Some(true)) = (response["id"].as_str(), response["store"].as_bool()) {
            out.push(StreamItem::Continuation(id.to_owned()));
        }
        self.stop(StopReason::EndTurn, out);
        Ok(())
    }

    fn incomplete(&mut self, response: &Value, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        let reason = response["incomplete_details"]["reason"].as_str().unwrap_or_default();
        let stop = match reason {
            "max_output_tokens" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            other => {
                let shown: String = other.chars().filter(|c| !c.is_control()).take(100).collect();
                let message = format!("the answer is incomplete for a reason that is not known here: `{shown}`");
                return Err(Error::new(&codes::STOP_UNKNOWN, message));
            }
        };
        count(&response["usage"], out);
        self.stop(stop, out);
        Ok(())
    }

    fn stop(&mut self, stop: StopReason, out: &mut Vec<StreamItem>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let mut calls = false;
        for item in &mut self.items {
            let was_open = !std::mem::replace(&mut item.ended, true);
            match &mut item.form {
                Form::Call(call) => {
                    calls = true;
                    if was_open {
                        call.end(out);
                    }
                }
                Form::Written { .. } if was_open => out.push(StreamItem::Ended { index: item.block }),
                _ => {}
            }
        }
        out.push(StreamItem::Stopped(match stop {
            StopReason::EndTurn if self.refused => StopReason::Refusal,
            StopReason::EndTurn if calls => StopReason::ToolCall,
            stop => stop,
        }));
    }
}

/// What an item says of a call. Its own id is not the one that results name.
fn piece_of(item: &Value) -> Piece<'_> {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    Piece {
        index: None,
        id: text("call_id"),
        name: text("name"),
        arguments: text("arguments"),
    }
}

/// The text of a whole message, or of whole reasoning as far as it can be read.
fn text_of(item: &Value) -> String {
    let parts = |key: &str| item[key].as_array().map_or(&[][..], Vec::as_slice).iter();
    let read = |part: &Value| part["text"].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    if item["type"] == "reasoning" {
        let said: Vec<_> = parts("summary").chain(parts("content")).filter_map(read).collect();
        return said.join("\n\n");
    }
    parts("content").filter_map(read).collect()
}

fn refusal_of(item: &Value) -> String {
    let parts = item["content"].as_array().map_or(&[][..], Vec::as_slice);
    parts.iter().filter_map(|part| part["refusal"].as_str()).collect()
}

/// The counts of the whole request. What the cache gave is part of the input's count.
fn count(usage: &Value, out: &mut Vec<StreamItem>) {
    if !usage.is_object() {
        return;
    }
    let of = |value: &Value| value.as_u64().unwrap_or_default();
    let cache_read = of(&usage["input_tokens_details"]["cached_tokens"]);
    out.push(StreamItem::Usage(Usage {
        input: of(&usage["input_tokens"]).saturating_sub(cache_read),
        output: of(&usage["output_tokens"]),
        cache_read,
        reasoning: of(&usage["output_tokens_details"]["reasoning_tokens"]),
        ..Usage::default()
    }));
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
