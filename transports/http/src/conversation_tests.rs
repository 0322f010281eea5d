use std::{sync::Mutex, time::Duration};

use capsule_api::{
    Cancel, DriverOut, Events, FoldedCall, Limits, NobodyThere, SystemClock, ToolStatus, Usage, serde_json::json,
};
use capsule_transport_kit::{Recorder, TestTools};

use super::*;

/// A driver without a wire: whole answers, no items.
struct Whole(Mutex<Vec<Response>>);

#[async_trait]
impl Driver for Whole {
    async fn request(&self, _: &Request, _: &mut dyn DriverOut) -> Result<Response, Error> {
        Ok(self.0.lock().unwrap().remove(0))
    }
}

fn response(stop_reason: StopReason, content: Vec<ContentBlock>) -> Response {
    Response {
        stop_reason,
        content,
        continuation_id: None,
        usage: Usage::default(),
    }
}

fn call(alias: &str, input: Value) -> ContentBlock {
    ContentBlock::ToolCall {
        id: String::new(),
        name: alias.to_owned(),
        input,
    }
}

async fn turn(answers: Vec<Response>) -> (Result<Outcome, Error>, Arc<Recorder>) {
    let shared = Shared {
        driver: Box::new(Whole(Mutex::new(answers))),
        peer: "whole".to_owned(),
        billing: Billing::Unknown,
        clock: Arc::new(SystemClock),
        policy: Policy {
            max_retries: 0,
            initial_delay: Duration::ZERO,
            max_delay: Duration::ZERO,
            max_elapsed: Duration::ZERO,
        },
        chance: || 0.5,
        parallel: 16,
        params: Map::new(),
        allowance: Allowance::default(),
        wall: None,
        same_failure: 5,
    };
    let spec = ConversationSpec {
        context: "c".to_owned(),
        model: None,
        system_prompt: String::new(),
        catalogue: TestTools::offered(),
        limits: Limits::default(),
        resume: None,
        run_dir: ".".into(),
        state_dir: None,
    };
    let log = Arc::new(Recorder::new());
    let io = TurnIo {
        events: Events::new(log.clone()),
        tools: Arc::new(TestTools::new(log.clone())),
        caller: Arc::new(NobodyThere),
        cancel: Cancel::new(),
    };
    let mut conversation = HttpConversation::new(Arc::new(shared), spec, History::default(), Spent::default());
    (conversation.turn(Input::text("go"), io).await, log)
}

#[tokio::test]
async fn a_driver_that_answers_as_a_whole_is_told_like_any_other() {
    let calls = vec![ContentBlock::text("I try."), call("no_such", Value::Null)];
    let answers = vec![
        response(StopReason::EndTurn, calls),
        response(StopReason::EndTurn, vec![ContentBlock::text("Done.")]),
    ];
    let (outcome, log) = turn(answers).await;
    let text = "Done.".to_owned();
    assert_eq!(outcome.unwrap(), Outcome::Completed { text });
    let fold = log.fold();
    assert_eq!(fold.texts(), ["I try.", "Done."]);
    let [
        FoldedCall {
            name,
            arguments,
            result,
        },
    ] = fold.calls()[..]
    else {
        panic!("one call, not {:?}", fold.calls())
    };
    assert_eq!((name.as_str(), arguments), ("no_such", &json!({})));
    assert_eq!(result.as_ref().map(|(status, _)| *status), Some(ToolStatus::Unknown));
}

#[tokio::test]
async fn answers_that_break_the_rules_are_errors_and_run_nothing() {
    let calls = |input| vec![call("no_such", input)];
    for (answer, code) in [
        (
            response(StopReason::ToolCall, calls(json!([1]))),
            "http-call-incomplete",
        ),
        (
            response(StopReason::ToolCall, vec![ContentBlock::text("hm")]),
            "http-calls-missing",
        ),
        (
            response(StopReason::Error, vec![ContentBlock::text("half")]),
            "http-answer-failed",
        ),
    ] {
        let (outcome, log) = turn(vec![answer]).await;
        assert_eq!((outcome.unwrap_err().code, log.fold().calls().len()), (code, 0));
    }
}

#[tokio::test]
async fn h_03_calls_that_a_driver_gives_with_a_cut_answer_are_not_run() {
    let content = vec![ContentBlock::text("half"), call("no_such", json!({}))];
    let (outcome, log) = turn(vec![response(StopReason::MaxTokens, content)]).await;
    let partial = "half".to_owned();
    assert_eq!(outcome.unwrap(), Outcome::Truncated { partial });
    assert_eq!(log.fold().calls().len(), 0);
}
