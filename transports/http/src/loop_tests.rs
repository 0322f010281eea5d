//! Whole turns over a driver that plays a script, without a provider.

use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use capsule_api::{
    Annotations, CallId, Cancel, Catalogue, Code, ContextWindow, DriverOut, Events, Limits, Message, NobodyThere,
    Progress, ToolCall, ToolDispatch, ToolReply, ToolSpec, ToolStatus, Usage,
    serde_json::{self, json},
};
use capsule_transport_kit::Recorder;
use tokio::sync::Notify;

use super::*;
use crate::meter::Prices;

#[path = "loop_tests/held.rs"]
mod held;
#[path = "loop_tests/long.rs"]
mod long;
#[path = "../tests/it/time.rs"]
mod time;

use time::ManualClock;

type Answer = Result<Response, Error>;

/// Answers in order; the last answer is for every later request, too. Remembers what it was asked.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Request>>,
    /// For requests that offer no tools, where set.
    summary: Mutex<Option<Answer>>,
}

struct Player(Arc<Script>);

#[async_trait]
impl Driver for Player {
    async fn request(&self, request: &Request, _: &mut dyn DriverOut) -> Answer {
        let Player(script) = self;
        script.asked.lock().unwrap().push(request.clone());
        if let (true, Some(summary)) = (request.tools.is_empty(), &*script.summary.lock().unwrap()) {
            return summary.clone();
        }
        let mut answers = script.answers.lock().unwrap();
        match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().expect("a script has at least one answer"),
        }
    }
}

/// One tool, `work`: does what its arguments say.
struct Work {
    catalogue: Arc<Catalogue>,
    ran: AtomicU32,
    answered: Notify,
    asked: Notify,
}

impl Work {
    fn new() -> Arc<Self> {
        let tool = ToolSpec {
            name: "work".to_owned(),
            alias: "work".to_owned(),
            description: "Works.".to_owned(),
            input_schema: json!({"type": "object"}),
            annotations: Annotations::default(),
            longest: Duration::from_secs(60),
            largest: 1 << 20,
        };
        Arc::new(Self {
            catalogue: Arc::new(Catalogue { tools: vec![tool] }),
            ran: AtomicU32::new(0),
            answered: Notify::new(),
            asked: Notify::new(),
        })
    }
}

#[async_trait]
impl ToolDispatch for Work {
    fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    async fn call(&self, call: ToolCall) -> ToolReply {
        self.ran.fetch_add(1, Ordering::SeqCst);
        match call.arguments["do"].as_str() {
            Some("fail") => ToolReply::new(ToolStatus::Failed, "no"),
            Some("hang") => std::future::pending().await,
            Some("ask") => {
                let progress = call.progress.expect("the loop follows its calls");
                progress(Progress::WaitingForCaller);
                self.asked.notify_one();
                self.answered.notified().await;
                progress(Progress::Resumed);
                ToolReply::text("asked")
            }
            _ => ToolReply::text("x".repeat(500)),
        }
    }

    fn missed(&self, _: CallId, _: &str) {}
}

struct Stand {
    script: Arc<Script>,
    work: Arc<Work>,
    clock: Arc<ManualClock>,
    log: Arc<Recorder>,
    conversation: HttpConversation,
}

impl Stand {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(answers, |_, _| {})
    }

    fn with(answers: impl IntoIterator<Item = Answer>, change: impl FnOnce(&mut Shared, &mut Limits)) -> Self {
        let script = Arc::new(Script::default());
        script.answers.lock().unwrap().extend(answers);
        let (work, clock) = (Work::new(), Arc::new(ManualClock::new()));
        let mut shared = Shared {
            driver: Box::new(Player(script.clone())),
            peer: "script".to_owned(),
            billing: Billing::Free,
            clock: clock.clone(),
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
        let mut limits = Limits::default();
        change(&mut shared, &mut limits);
        let spec = ConversationSpec {
            context: "c".to_owned(),
            model: None,
            system_prompt: String::new(),
            catalogue: work.catalogue.clone(),
            limits,
            resume: None,
            run_dir: ".".into(),
            state_dir: None,
        };
        Self {
            script,
            work,
            clock,
            log: Arc::new(Recorder::new()),
            conversation: HttpConversation::new(Arc::new(shared), spec, History::default(), Spent::default()),
        }
    }

    async fn turn(&mut self, text: &str) -> Result<Outcome, Error> {
        self.log = Arc::new(Recorder::new());
        let io = TurnIo {
            events: Events::new(self.log.clone()),
            tools: self.work.clone(),
            caller: Arc::new(NobodyThere),
            cancel: Cancel::new(),
        };
        self.conversation.turn(Input::text(text), io).await
    }

    /// How many messages each request had, and what it went on from.
    fn asked(&self) -> Vec<(usize, Option<String>)> {
        let asked = self.script.asked.lock().unwrap();
        let shape = |request: &Request| (request.messages.len(), request.continuation_id.clone());
        asked.iter().map(shape).collect()
    }

    fn last_request(&self) -> Request {
        self.script.asked.lock().unwrap().last().cloned().unwrap()
    }
}

fn answer(text: &str) -> Answer {
    Ok(Response {
        stop_reason: StopReason::EndTurn,
        content: vec![ContentBlock::text(text)],
        continuation_id: None,
        usage: Usage {
            input: 40,
            output: 10,
            ..Usage::default()
        },
    })
}

fn calls(what: &str, count: usize) -> Answer {
    let call = |_| ContentBlock::ToolCall {
        id: String::new(),
        name: "work".to_owned(),
        input: json!({"do": what}),
    };
    answer("").map(|answer| Response {
        stop_reason: StopReason::ToolCall,
        content: (0..count).map(call).collect(),
        ..answer
    })
}

fn held(answer: Answer, id: &str) -> Answer {
    answer.map(|answer| Response {
        continuation_id: Some(id.to_owned()),
        ..answer
    })
}

fn fails(kind: ErrorKind) -> Answer {
    const LOST: Code = Code {
        id: "script-lost",
        kind: ErrorKind::ConversationLost,
        meaning: "",
        remedy: "",
    };
    const LONG: Code = Code {
        id: "script-long",
        kind: ErrorKind::ContextOverflow,
        ..LOST
    };
    let code: &'static Code = if kind == LOST.kind { &LOST } else { &LONG };
    Err(Error::new(code, "no"))
}

fn completed(text: &str) -> Outcome {
    Outcome::Completed { text: text.to_owned() }
}

fn reached(which: Limit) -> Outcome {
    Outcome::LimitReached { which }
}

fn compacted(log: &Recorder) -> Vec<(u64, u64)> {
    let events = log.events().into_iter().filter_map(|event| match event {
        Event::Compacted { before, after } => Some((before, after)),
        _ => None,
    });
    events.collect()
}

fn warnings(log: &Recorder) -> Vec<&'static str> {
    let events = log.events().into_iter().filter_map(|event| match event {
        Event::Warning { code, .. } => Some(code),
        _ => None,
    });
    events.collect()
}

#[tokio::test]
async fn once_the_tokens_of_the_session_are_used_nothing_more_is_asked() {
    let mut stand = Stand::with([calls("work", 1)], |shared, _| shared.allowance.tokens = Some(100));
    assert_eq!(stand.turn("go").await.unwrap(), reached(Limit::Tokens));
    assert_eq!(stand.asked().len(), 2);
    assert_eq!(stand.turn("go on").await.unwrap(), reached(Limit::Tokens));
    assert_eq!(stand.asked().len(), 2);

    // It is the whole conversation's, also in another process.
    let state = stand.conversation.resume_state().unwrap();
    let (_, spent) = resume::read(&state, &stand.conversation.peer()).unwrap();
    assert_eq!(spent, stand.conversation.meter.spent());
}

#[tokio::test]
async fn an_answer_that_uses_up_the_last_token_is_delivered() {
    let mut stand = Stand::with([answer("done")], |shared, _| shared.allowance.tokens = Some(50));
    assert_eq!(stand.turn("go").await.unwrap(), completed("done"));
}

#[tokio::test]
async fn the_cost_is_told_and_limited() {
    let prices = Prices {
        input: 1.0,
        output: 6.0,
        cache_read: Some(0.0),
        cache_write: Some(0.0),
    };
    let mut stand = Stand::with([calls("work", 1)], |shared, _| {
        shared.allowance.prices = Some(prices);
        shared.allowance.cost_micros = Some(250);
    });
    assert_eq!(stand.turn("go").await.unwrap(), reached(Limit::Cost));
    let costs = stand.log.events().into_iter().filter_map(|event| match event {
        Event::Usage(usage) => usage.cost_micros,
        _ => None,
    });
    assert_eq!(costs.collect::<Vec<_>>(), [100, 200, 300]);
}

#[tokio::test]
async fn a_turn_that_takes_too_long_ends_with_its_calls_recorded_as_cancelled() {
    let answers = [calls("hang", 1), answer("ok")];
    let mut stand = Stand::with(answers, |shared, _| shared.wall = Some(Duration::from_secs(10)));
    let clock = stand.clock.clone();
    let (outcome, ()) = tokio::join!(stand.turn("go"), clock.pass(Duration::from_secs(10)));
    assert_eq!(outcome.unwrap(), reached(Limit::Wall));
    assert_eq!(stand.conversation.health(), Health::Ready);
    assert_eq!(stand.turn("go on").await.unwrap(), completed("ok"));
    let told = Message::Tool {
        tool_call_id: "call_1".to_owned(),
        is_error: true,
        content: vec![ContentBlock::text(CANCELLED)],
    };
    assert_eq!(stand.last_request().messages[2], told);
}

#[tokio::test]
async fn the_time_in_which_a_tool_waits_for_the_caller_does_not_count() {
    let answers = [calls("ask", 1), answer("ok")];
    let mut stand = Stand::with(answers, |shared, _| shared.wall = Some(Duration::from_secs(10)));
    let (clock, work) = (stand.clock.clone(), stand.work.clone());
    let caller = async {
        work.asked.notified().await;
        let (_, ()) = tokio::join!(
            clock.sleep(Duration::from_secs(3600)),
            clock.pass(Duration::from_secs(3600))
        );
        work.answered.notify_one();
    };
    let (outcome, ()) = tokio::join!(stand.turn("go"), caller);
    assert_eq!(outcome.unwrap(), completed("ok"));
}

#[tokio::test]
async fn a_model_that_repeats_a_failing_call_is_stopped() {
    let mut stand = Stand::new([calls("fail", 2)]);
    assert_eq!(stand.turn("go").await.unwrap(), reached(Limit::SameFailure));
    assert_eq!(stand.asked().len(), 5);

    let work = (0..10).flat_map(|_| [calls("fail", 1), calls("work", 1)]);
    let mut stand = Stand::new(work.chain([answer("done")]));
    assert_eq!(
        stand.turn("go").await.unwrap(),
        completed("done"),
        "other work came between"
    );
}
