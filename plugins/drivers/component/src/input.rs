//! A neutral request as the component reads it.
//!
//! A reasoning block is the component's own: whatever fields it has, it comes back as it was. The contract's block knows three of them, so one
//! that has more is kept whole, as JSON, in the place of its signature.

use capsule_api::{
    ContentBlock, Request,
    serde_json::{self, Value},
};

/// Marks a signature that is a whole block.
const WHOLE: &str = "component:";
/// The fields that the contract's block has.
const KNOWN: [&str; 4] = ["type", "text", "signature", "redacted"];

/// The request as JSON.
pub(crate) fn input(request: &Request) -> Value {
    // A request is plain data with text for keys: it always has a JSON form.
    let mut value = serde_json::to_value(request).unwrap_or_default();
    let messages = value["messages"].as_array_mut().into_iter().flatten();
    let blocks = messages
        .filter_map(|message| message["content"].as_array_mut())
        .flatten();
    for block in blocks.filter(|block| block["type"] == "thinking") {
        if let Some(whole) = kept(block) {
            *block = whole;
        }
    }
    value
}

fn kept(block: &Value) -> Option<Value> {
    serde_json::from_str(block["signature"].as_str()?.strip_prefix(WHOLE)?).ok()
}

/// A reasoning block of an answer.
///
/// # Errors
/// It is not of the form of one.
pub(crate) fn thinking(block: &Value) -> Result<ContentBlock, serde_json::Error> {
    let fields = block.as_object().into_iter().flatten();
    let foreign = fields.clone().any(|(key, _)| !KNOWN.contains(&key.as_str()));
    let marked = block["signature"].as_str().is_some_and(|text| text.starts_with(WHOLE));
    if !foreign && !marked {
        return serde_json::from_value(block.clone());
    }
    let shown = [&block["text"], &block["thinking"]];
    let shown = shown.into_iter().find_map(Value::as_str).unwrap_or_default();
    Ok(ContentBlock::Thinking {
        text: shown.to_owned(),
        signature: Some(format!("{WHOLE}{block}")),
        redacted: None,
    })
}
