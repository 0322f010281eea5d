//! What the component returned, as the answer or an error.

use capsule_api::{
    ComponentEnd, ComponentReply, ContentBlock, DriverOut, Error, Response, StopReason, StreamItem, Usage,
    serde_json::{self, Map, Value, json},
};

use crate::{
    codes,
    failure::{ended, reported, with_what_was_seen},
    input::thinking,
};

/// The longest stop reason that an error quotes, in characters.
const MAX_QUOTE: usize = 100;

/// The answer. The counts of one that failed go to `out`: it was paid for.
pub(crate) fn answer(reply: &ComponentReply, out: &mut dyn DriverOut) -> Result<Response, Error> {
    if let Some(error) = ended(reply) {
        return Err(error);
    }
    let text = reply.data.as_deref().unwrap_or_default();
    let parsed = serde_json::from_str::<Value>(text);
    if reply.end != ComponentEnd::Passed {
        // A failure may be told as an answer is, or as mere text.
        let error = match &parsed {
            Ok(value) if value.get("error").is_some() => value["error"].clone(),
            Ok(Value::String(text)) => text.as_str().into(),
            _ => text.into(),
        };
        return Err(reported(&error, reply));
    }
    if reply.truncated {
        return Err(malformed(reply, "it says itself that it is cut"));
    }
    let value = match parsed {
        _ if text.trim().is_empty() => return Err(malformed(reply, "it is empty")),
        Ok(value @ Value::Object(_)) => value,
        Ok(_) => return Err(malformed(reply, "it is no JSON object")),
        Err(cause) => return Err(malformed(reply, &format!("it is not JSON: {cause}"))),
    };
    let usage = usage(&value["usage"]).map_err(|why| malformed(reply, &why))?;
    let stop_reason = stop_reason(&value["stop_reason"], reply)?;
    if stop_reason == StopReason::Error {
        if let Some(usage) = usage {
            out.item(StreamItem::Usage(usage));
        }
        return Err(reported(&value["error"], reply));
    }
    Ok(Response {
        stop_reason,
        content: content(&value["content"]).map_err(|why| malformed(reply, &why))?,
        continuation_id: continuation(&value, reply),
        usage: usage.unwrap_or_default(),
    })
}

fn malformed(reply: &ComponentReply, why: &str) -> Error {
    let what = format!("what the driver's component returned is no answer: {why}");
    Error::new(&codes::MALFORMED, with_what_was_seen(what, reply))
}

fn stop_reason(value: &Value, reply: &ComponentReply) -> Result<StopReason, Error> {
    let Some(name) = value.as_str() else {
        return Err(malformed(reply, "it has no `stop_reason`"));
    };
    serde_json::from_value(value.clone()).map_err(|_| {
        let name: String = name.chars().take(MAX_QUOTE).collect();
        Error::new(
            &codes::STOP_UNKNOWN,
            format!("the model stopped for the reason {name:?}, which is not known"),
        )
    })
}

fn content(value: &Value) -> Result<Vec<ContentBlock>, String> {
    let blocks = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(blocks) => blocks,
        _ => return Err("its `content` is no array".to_owned()),
    };
    let mut content = Vec::new();
    for (n, value) in blocks.iter().enumerate() {
        let read = match value["type"].as_str() {
            Some("text") => serde_json::from_value(value.clone()),
            Some("thinking") => thinking(value),
            Some("tool_call") => call(value),
            // A block of a kind that is not known says nothing here.
            Some(_) => continue,
            None => return Err(format!("block {n} of its `content` has no `type`")),
        };
        content.push(read.map_err(|why| format!("block {n} of its `content`: {why}"))?);
    }
    Ok(content)
}

/// A call. No arguments at all are an empty object; what is no whole object is left for the loop, which refuses it.
fn call(value: &Value) -> Result<ContentBlock, serde_json::Error> {
    let mut fields = value.as_object().cloned().unwrap_or_default();
    fields.entry("id").or_insert_with(|| json!(""));
    let input = match fields.remove("input") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::String(text)) if text.trim().is_empty() => Value::Object(Map::new()),
        Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        Some(input) => input,
    };
    fields.insert("input".to_owned(), input);
    serde_json::from_value(Value::Object(fields))
}

fn usage(value: &Value) -> Result<Option<Usage>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let usage = serde_json::from_value(value.clone());
    usage.map(Some).map_err(|why| format!("its `usage`: {why}"))
}

/// The metadata says it; an answer may too.
fn continuation(value: &Value, reply: &ComponentReply) -> Option<String> {
    let said = reply
        .metadata("continuation_id")
        .or_else(|| value["continuation_id"].as_str());
    said.filter(|id| !id.is_empty()).map(str::to_owned)
}
