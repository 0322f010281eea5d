//! One capsule that takes tasks, and the run of one of them.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use capsule_api::{
    Caller, Cancel, CancelReason, Catalogue, Conversation, ConversationSpec, Error, Event, EventSink, Events, Input,
    Limit, Limits, Outcome, Residue, RunSink, Scratch, Services, ToolDispatch, Transport, TransportDescriptor, TurnIo,
    Usage, timeout,
};
use futures_util::FutureExt as _;

use crate::{KeptContext, RunStart, TaskLog, TaskState, What, codes, places::RunDir, sink::TurnSink};

/// How long a conversation may take to close.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// The capsule's tools, to be bound to a turn.
pub trait Toolkit: Send + Sync {
    /// What they are.
    fn catalogue(&self) -> Arc<Catalogue>;

    /// A dispatch whose executions are recorded in `sink`, ask `caller`, and end with `cancel`.
    fn bind(&self, sink: Arc<dyn RunSink>, caller: Arc<dyn Caller>, cancel: Cancel) -> Arc<dyn ToolDispatch>;
}

/// Which capsule this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapsuleInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What every model request starts from.
#[derive(Clone, Debug, Default)]
pub struct Prompting {
    /// The model; `None` leaves it to the transport.
    pub model: Option<String>,
    /// The system prompt, possibly empty.
    pub system_prompt: String,
    /// Limits of each turn.
    pub limits: Limits,
}

/// A capsule on its transport, ready for tasks.
pub struct Agent {
    /// Which capsule.
    pub capsule: CapsuleInfo,
    /// The transport's descriptor.
    pub descriptor: &'static TransportDescriptor,
    /// In words, how it was chosen, where the capsule left that to the host.
    pub chosen_by: Option<String>,
    /// The transport, built from its settings.
    pub transport: Box<dyn Transport>,
    /// The tools.
    pub toolkit: Arc<dyn Toolkit>,
    /// Model, prompt, limits.
    pub prompting: Prompting,
    /// Time, secrets.
    pub services: Services,
}

/// A task: one input, one log, one way to cancel it.
pub struct Task {
    /// Its log.
    pub log: Arc<TaskLog>,
    /// Ends it.
    pub cancel: Cancel,
    /// Whoever sent it.
    pub caller: Arc<dyn Caller>,
}

/// Where a run lives on disk.
#[derive(Debug)]
pub struct RunPlace {
    /// For this run alone.
    pub run_dir: RunDir,
    /// The context it goes on with and is kept in.
    pub context: Option<KeptContext>,
}

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    /// How it ended.
    pub outcome: Result<Outcome, Error>,
    /// Tokens.
    pub usage: Usage,
    /// Tool calls that ran.
    pub calls: u32,
    /// Tool calls that a missing grant stopped.
    pub denied: u32,
    /// What was left behind.
    pub residue: Residue,
    /// The conversation could not be kept.
    pub not_kept: Option<Error>,
}

impl Agent {
    /// Runs a task to its end. The log gets its last entry and is closed before this returns.
    ///
    /// Not cancel-safe: end a task by its `cancel`. If the future is dropped all the same, the turn's own clean-up holds.
    pub async fn run(&self, task: &Task, input: Input, place: RunPlace) -> Report {
        let RunPlace { run_dir, mut context } = place;
        let start = RunStart {
            capsule: (self.capsule.name.clone(), self.capsule.version.clone()),
            transport: self.descriptor.name,
            chosen_by: self.chosen_by.clone(),
            context: context.as_ref().map(|context| context.name().to_owned()),
            input: input.clone(),
        };
        self.say(task, What::RunStart(start));
        self.say(task, What::State(TaskState::Working));

        let sink = TurnSink::new(task.log.clone(), self.services.clock.clone());
        let mut ended = self
            .converse(task, input, run_dir.path().to_owned(), context.as_ref(), &sink)
            .await;
        ended.residue.scratch += Scratch::count(run_dir.path());
        ended.residue.files.extend(run_dir.remove());
        let not_kept = match (&mut context, ended.resume.take()) {
            (Some(context), Some(state)) => context.keep(state).err().map(|error| self.redacted(error)),
            _ => None,
        };
        if let Some(error) = &not_kept {
            let warning = Event::Warning {
                code: error.code,
                message: error.message.clone(),
            };
            self.say(task, What::Model(warning));
        }

        let tally = sink.end();
        let outcome = ended.outcome.map_err(|error| self.redacted(error));
        let state = match &outcome {
            Ok(Outcome::Completed { .. }) => TaskState::Completed,
            Ok(Outcome::InputRequired { .. }) => TaskState::InputRequired,
            Ok(Outcome::Cancelled) => TaskState::Canceled,
            _ => TaskState::Failed,
        };
        self.say(task, What::State(state));
        let (residue, late) = (ended.residue, sink.late());
        self.say(
            task,
            What::RunEnd {
                outcome: outcome.clone(),
                residue: residue.clone(),
                late,
            },
        );
        task.log.close();
        Report {
            outcome,
            usage: tally.usage,
            calls: tally.calls,
            denied: tally.denied,
            residue,
            not_kept,
        }
    }

    async fn converse(
        &self,
        task: &Task,
        input: Input,
        run_dir: PathBuf,
        context: Option<&KeptContext>,
        sink: &Arc<TurnSink>,
    ) -> Ended {
        let spec = match self.spec(task, run_dir, context) {
            Ok(spec) => spec,
            Err(error) => return Ended::failed(error),
        };
        let opening = AssertUnwindSafe(self.transport.open(spec)).catch_unwind();
        let opened = tokio::select! {
            biased;
            opened = opening => opened.unwrap_or_else(|panic| Err(self.panicked(&*panic))),
            reason = task.cancel.cancelled() => return Ended::with(Ok(cancelled(reason))),
        };
        let mut conversation = match opened {
            Ok(conversation) => conversation,
            Err(error) => return Ended::failed(error),
        };
        // The tools end with the turn, also where the turn ends without the task being cancelled.
        let tools_cancel = task.cancel.child();
        let io = TurnIo {
            events: Events::new(sink.clone()),
            tools: self
                .toolkit
                .bind(sink.clone(), task.caller.clone(), tools_cancel.clone()),
            caller: task.caller.clone(),
            cancel: task.cancel.clone(),
        };
        let outcome = self.turn(task, &mut *conversation, input, io).await;
        tools_cancel.cancel(CancelReason::Shutdown);
        let resume = context.and_then(|_| conversation.resume_state());
        let residue = self.close(conversation, sink).await;
        Ended {
            outcome,
            resume,
            residue,
        }
    }

    fn spec(&self, task: &Task, run_dir: PathBuf, context: Option<&KeptContext>) -> Result<ConversationSpec, Error> {
        let resume = context
            .map(|context| context.resume_for(self.descriptor.name))
            .transpose()?
            .flatten();
        Ok(ConversationSpec {
            context: context.map_or_else(|| task.log.task().to_owned(), |context| context.name().to_owned()),
            model: self.prompting.model.clone(),
            system_prompt: self.prompting.system_prompt.clone(),
            catalogue: self.toolkit.catalogue(),
            limits: self.prompting.limits,
            resume,
            run_dir,
            state_dir: context.and_then(KeptContext::dir).map(Path::to_owned),
        })
    }

    /// One turn. Ends soon after a cancel, with or without the transport's help.
    async fn turn(
        &self,
        task: &Task,
        conversation: &mut dyn Conversation,
        input: Input,
        io: TurnIo,
    ) -> Result<Outcome, Error> {
        let events = io.events.clone();
        let turn = AssertUnwindSafe(conversation.turn(input, io)).catch_unwind();
        tokio::pin!(turn);
        let ended = tokio::select! {
            biased;
            ended = &mut turn => ended,
            _ = task.cancel.cancelled() => {
                let within = self.descriptor.stops_within;
                match timeout(&*self.services.clock, within, &mut turn).await {
                    Ok(ended) => ended,
                    Err(_) => {
                        let message = format!("{} did not stop within {within:?} and was dropped", self.descriptor.crate_name);
                        events.emit(Event::Warning { code: "session-turn-overran", message });
                        Ok(Ok(Outcome::Cancelled))
                    }
                }
            }
        };
        let outcome = ended.unwrap_or_else(|panic| Err(self.panicked(&*panic)))?;
        Ok(match (outcome, task.cancel.reason()) {
            (Outcome::Cancelled, Some(reason)) => cancelled(reason),
            (outcome, _) => outcome,
        })
    }

    /// Closes the conversation. One that panics or does not end is dropped, which must leave nothing either; what it would have reported is
    /// not known, and that is said.
    async fn close(&self, conversation: Box<dyn Conversation>, sink: &TurnSink) -> Residue {
        let closing = AssertUnwindSafe(conversation.close(CLOSE_GRACE)).catch_unwind();
        let why = match timeout(&*self.services.clock, CLOSE_GRACE + Duration::from_secs(1), closing).await {
            Ok(Ok(residue)) => return residue,
            Ok(Err(panic)) => self.panicked(&*panic).message.clone(),
            Err(_) => format!("it did not end within {CLOSE_GRACE:?}"),
        };
        let message = format!(
            "{}: the conversation could not be closed: {why}",
            self.descriptor.crate_name
        );
        let code = "session-close-failed";
        sink.emit(Event::Warning { code, message });
        Residue::default()
    }

    fn panicked(&self, panic: &(dyn Any + Send)) -> Error {
        let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let said = said
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        Error::new(
            &codes::PANICKED,
            format!("{} panicked: {said}", self.descriptor.crate_name),
        )
    }

    fn redacted(&self, error: Error) -> Error {
        error.map_text(|text| self.services.secrets.redact(text).into_owned())
    }

    fn say(&self, task: &Task, what: What) {
        task.log.append(self.services.clock.wall(), what);
    }
}

impl Task {
    /// A task with a fresh id (a UUID that sorts by time) that nobody can be asked about.
    pub fn new(services: &Services) -> Self {
        let now = services.clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let log = TaskLog::new(uuid::Uuid::now_v7().to_string(), epoch);
        Self {
            log,
            cancel: Cancel::new(),
            caller: Arc::new(capsule_api::NobodyThere),
        }
    }
}

struct Ended {
    outcome: Result<Outcome, Error>,
    resume: Option<capsule_api::ResumeState>,
    residue: Residue,
}

impl Ended {
    fn with(outcome: Result<Outcome, Error>) -> Self {
        Self {
            outcome,
            resume: None,
            residue: Residue::default(),
        }
    }

    fn failed(error: Error) -> Self {
        Self::with(Err(error))
    }
}

/// A turn that was stopped by a limit has reached that limit; only a caller's stop is a cancel.
fn cancelled(reason: CancelReason) -> Outcome {
    match reason {
        CancelReason::Deadline => Outcome::LimitReached { which: Limit::Wall },
        _ => Outcome::Cancelled,
    }
}
