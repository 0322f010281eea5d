//! `reasoning_details`: reasoning as objects with seals, which some endpoints stream in pieces and want back whole.

use capsule_api::{
    Error,
    serde_json::{Map, Value},
};

use crate::codes;

/// The most of them that one answer may have, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// The details of one answer. A seal covers the whole of what it seals, so pieces are put together before they go back.
#[derive(Debug, Default)]
pub(crate) struct Details {
    whole: Vec<Map<String, Value>>,
    bytes: usize,
}

impl Details {
    /// Takes what a chunk says of them.
    ///
    /// # Errors
    /// There are more than [`MAX_BYTES`].
    pub(crate) fn take(&mut self, pieces: &Value) -> Result<(), Error> {
        for piece in pieces.as_array().into_iter().flatten().filter_map(Value::as_object) {
            self.bytes += Value::Object(piece.clone()).to_string().len();
            if self.bytes > MAX_BYTES {
                let message = format!("`reasoning_details` are larger than {} MiB", MAX_BYTES >> 20);
                return Err(Error::new(&codes::PROTOCOL, message));
            }
            match self.begun(piece) {
                Some(at) => add(&mut self.whole[at], piece),
                None => self.whole.push(piece.clone()),
            }
        }
        Ok(())
    }

    /// All of them, as JSON; none where none came.
    pub(crate) fn end(&mut self) -> Option<String> {
        let whole = std::mem::take(&mut self.whole);
        (!whole.is_empty()).then(|| Value::from_iter(whole).to_string())
    }

    /// Which of them the piece goes on with: the one with its type and index. Without an index, the last one, if it is of text as well.
    fn begun(&self, piece: &Map<String, Value>) -> Option<usize> {
        let of = |detail: &Map<String, Value>, key: &str| detail.get(key).filter(|value| !value.is_null()).cloned();
        let same = |detail: &Map<String, Value>, key| of(detail, key) == of(piece, key);
        if of(piece, "index").is_some() {
            return self
                .whole
                .iter()
                .position(|detail| same(detail, "type") && same(detail, "index"));
        }
        let last = self.whole.len().checked_sub(1)?;
        let grows = ["text", "summary", "signature"]
            .iter()
            .any(|key| piece.contains_key(*key));
        (grows && same(&self.whole[last], "type") && same(&self.whole[last], "index")).then_some(last)
    }
}

/// Texts go on, a seal comes last, and everything else is said once.
fn add(detail: &mut Map<String, Value>, piece: &Map<String, Value>) {
    for (key, value) in piece.iter().filter(|(_, value)| !value.is_null()) {
        let goes_on = matches!(key.as_str(), "text" | "summary" | "data");
        match (detail.get_mut(key), value) {
            (Some(Value::String(known)), Value::String(more)) if goes_on => known.push_str(more),
            (Some(known), _) if key == "signature" || known.is_null() => known.clone_from(value),
            (Some(_), _) => {}
            (None, _) => {
                detail.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use capsule_api::serde_json::{from_str, json};

    use super::*;

    fn joined(pieces: &[Value]) -> Value {
        let mut details = Details::default();
        for piece in pieces {
            details.take(&json!([piece])).unwrap();
        }
        from_str(&details.end().unwrap()).unwrap()
    }

    #[test]
    fn h_09_pieces_of_one_index_are_one_with_the_seal_that_came_last() {
        let pieces = [
            json!({"type": "reasoning.text", "text": "Let", "signature": null, "format": "f-v1", "index": 0}),
            json!({"type": "reasoning.encrypted", "data": "b3Bh", "id": "call-1", "index": 1}),
            json!({"type": "reasoning.text", "text": " me see.", "format": "f-v1", "index": 0}),
            json!({"type": "reasoning.text", "signature": "seal", "index": 0}),
            json!({"type": "reasoning.summary", "summary": "**See", "index": 0}),
            json!({"type": "reasoning.summary", "summary": "ing**", "index": 0}),
        ];
        let whole = json!([
            {"type": "reasoning.text", "text": "Let me see.", "signature": "seal", "format": "f-v1", "index": 0},
            {"type": "reasoning.encrypted", "data": "b3Bh", "id": "call-1", "index": 1},
            {"type": "reasoning.summary", "summary": "**Seeing**", "index": 0}
        ]);
        assert_eq!(joined(&pieces), whole);
    }

    #[test]
    fn h_09_without_an_index_text_goes_on_and_what_is_encrypted_stays_apart() {
        let pieces = [
            json!({"type": "reasoning.text", "text": "a"}),
            json!({"type": "reasoning.text", "text": "b", "signature": "seal"}),
            json!({"type": "reasoning.encrypted", "data": "1"}),
            json!({"type": "reasoning.encrypted", "data": "2"}),
        ];
        let whole = json!([
            {"type": "reasoning.text", "text": "ab", "signature": "seal"},
            {"type": "reasoning.encrypted", "data": "1"},
            {"type": "reasoning.encrypted", "data": "2"}
        ]);
        assert_eq!(joined(&pieces), whole);
    }

    #[test]
    fn what_is_no_list_of_objects_is_passed_over_and_too_many_are_an_error() {
        let mut details = Details::default();
        for other in [
            json!(null),
            json!("text"),
            json!({"type": "reasoning.text"}),
            json!([7]),
        ] {
            details.take(&other).unwrap();
        }
        assert_eq!(details.end(), None);
        let large = json!([{"type": "reasoning.text", "text": "x".repeat(MAX_BYTES)}]);
        assert_eq!(details.take(&large).unwrap_err().code, "openai-protocol");
    }
}
