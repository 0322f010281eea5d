//! Rules that an answer and an input keep, whichever driver and caller they come from. Pure.

use capsule_api::{ContentBlock, Error, Input, Part, Response, StopReason};

use crate::{
    assemble::{few_calls, object},
    codes,
};

/// The rules that an answer keeps: it did not fail, its calls are not too many and have objects as arguments, and it does not wait for results of calls that it
/// does not make. Calls that the output limit cut are not among its blocks.
pub(crate) fn checked(mut response: Response) -> Result<Response, Error> {
    if response.stop_reason == StopReason::Error {
        return Err(failed());
    }
    if response.stop_reason == StopReason::MaxTokens {
        response
            .content
            .retain(|block| !matches!(block, ContentBlock::ToolCall { .. }));
    }
    let mut calls = 0;
    for block in &mut response.content {
        if let ContentBlock::ToolCall { name, input, .. } = block {
            calls += 1;
            few_calls(calls)?;
            *input = object(name, Some(input.take()))?;
        }
    }
    if response.stop_reason == StopReason::ToolCall && calls == 0 {
        let message = "the model stopped to wait for tool results but called no tool";
        return Err(Error::new(&codes::CALLS_MISSING, message));
    }
    Ok(response)
}

/// The answer says of itself that it failed.
pub(crate) fn failed() -> Error {
    let message = "the driver reports that the model's answer failed";
    Error::new(&codes::ANSWER_FAILED, message)
}

/// The input as blocks.
///
/// # Errors
/// A part is a file.
pub(crate) fn content_of(input: Input) -> Result<Vec<ContentBlock>, Error> {
    let parts = input.parts.into_iter().map(|part| match part {
        Part::Text(text) => Ok(ContentBlock::Text { text }),
        Part::Data(value) => Ok(ContentBlock::text(value.to_string())),
        _ => Err(Error::new(&codes::FILE_INPUT, "the task has a part that is not text")),
    });
    parts.collect()
}

/// The text of an answer.
pub(crate) fn text_of(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use capsule_api::{Usage, serde_json::json};

    use super::*;
    use crate::assemble::MAX_CALLS;

    #[test]
    fn no_driver_gets_more_calls_run_than_one_answer_may_have() {
        let call = ContentBlock::ToolCall {
            id: "a".to_owned(),
            name: "greet".to_owned(),
            input: json!({}),
        };
        let answer = |calls| Response {
            stop_reason: StopReason::ToolCall,
            content: vec![call.clone(); calls],
            continuation_id: None,
            usage: Usage::default(),
        };
        assert_eq!(checked(answer(MAX_CALLS)).unwrap().content.len(), MAX_CALLS);
        assert_eq!(checked(answer(MAX_CALLS + 1)).unwrap_err().code, "http-too-many-calls");
    }
}
