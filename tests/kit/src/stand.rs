//! The test stand: a built transport, its scripted peer and the turns that are run on it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use capsule_api::{
    Cancel, Capabilities, Conversation, ConversationSpec, Error, Events, Input, Limits, NobodyThere, Outcome,
    ResumeState, SystemClock, Transport, TransportDescriptor, TurnIo, timeout,
};
use tempfile::TempDir;

use crate::{Failure, Fixture, Meeting, Recorder, Script, Stage, TestTools};

/// A transport on its stage.
pub struct Stand {
    /// The transport under test.
    pub transport: Box<dyn Transport>,
    /// Its descriptor.
    pub descriptor: &'static TransportDescriptor,
    /// Its peer.
    pub stage: Stage,
    /// How long its cases wait for anything that should come.
    pub patience: Duration,
    dirs: TempDir,
}

impl Stand {
    /// Stages the script and builds the transport.
    ///
    /// # Errors
    /// `build` failed.
    pub async fn new(fixture: &dyn Fixture, script: Script) -> Result<Self, Failure> {
        let descriptor = fixture.descriptor();
        let stage = fixture.stage(script).await;
        let built = (descriptor.build)(stage.settings.clone(), stage.services.clone());
        Ok(Self {
            transport: built.map_err(|error| Failure::new(format!("`build` failed: {error} ({})", error.code)))?,
            descriptor,
            stage,
            patience: fixture.patience(),
            dirs: tempfile::tempdir().expect("the machine has a writable directory for temporary files"),
        })
    }

    /// What the instance declares.
    pub fn capabilities(&self) -> Capabilities {
        self.transport.capabilities()
    }

    /// Opens a conversation with the kit's tools.
    ///
    /// # Errors
    /// `open` failed.
    pub async fn open(&self, context: &str) -> Result<Box<dyn Conversation>, Failure> {
        self.open_with(context, Limits::default(), None).await
    }

    /// Opens a conversation with these limits, from this state.
    ///
    /// # Errors
    /// `open` failed.
    pub async fn open_with(
        &self,
        context: &str,
        limits: Limits,
        resume: Option<ResumeState>,
    ) -> Result<Box<dyn Conversation>, Failure> {
        let spec = ConversationSpec {
            context: context.to_owned(),
            model: self.stage.model.clone(),
            system_prompt: "You are under test.".to_owned(),
            catalogue: TestTools::offered(),
            limits,
            resume,
            run_dir: self.run_dir()?,
            state_dir: Some(self.state_dir()?),
        };
        let opened = self.transport.open(spec).await;
        opened.map_err(|error| Failure::new(format!("`open` failed: {error} ({})", error.code)))
    }

    /// A directory of its own for every conversation.
    fn run_dir(&self) -> Result<PathBuf, Failure> {
        let made = tempfile::Builder::new().prefix("run-").tempdir_in(self.dirs.path());
        Ok(made.map_err(unmade)?.keep())
    }

    /// The same directory for all conversations.
    fn state_dir(&self) -> Result<PathBuf, Failure> {
        let state = self.dirs.path().join("state");
        std::fs::create_dir_all(&state).map_err(unmade)?;
        Ok(state)
    }

    /// A turn with tools of its own.
    pub fn turn(&self) -> TestTurn {
        self.turn_meeting_at(Meeting::new())
    }

    /// A turn whose tool `meet` waits for calls of other turns too.
    pub fn turn_meeting_at(&self, meeting: Meeting) -> TestTurn {
        TestTurn::new(self, meeting)
    }

    /// What the peer was sent, where it can tell.
    pub fn seen(&self) -> Option<Vec<String>> {
        self.stage.seen.as_ref().map(|seen| seen())
    }
}

fn unmade(error: std::io::Error) -> Failure {
    Failure::new(format!("the test's own directory cannot be made: {error}"))
}

/// What one turn uses, and where its events end.
pub struct TestTurn {
    /// The log.
    pub log: Arc<Recorder>,
    /// The tools.
    pub tools: Arc<TestTools>,
    /// Ends the turn.
    pub cancel: Cancel,
    patience: Duration,
    input: Option<String>,
}

impl TestTurn {
    fn new(stand: &Stand, meeting: Meeting) -> Self {
        let log = Arc::new(Recorder::new());
        Self {
            tools: Arc::new(TestTools::meeting_at(log.clone(), meeting)),
            log,
            cancel: Cancel::new(),
            patience: stand.patience,
            input: stand.stage.input.clone(),
        }
    }

    /// The turn's input: the case's, unless the stage has one of its own.
    pub fn input(&self, text: &str) -> Input {
        Input::text(self.input.as_deref().unwrap_or(text))
    }

    /// What the transport gets.
    pub fn io(&self) -> TurnIo {
        TurnIo {
            events: Events::new(self.log.clone()),
            tools: self.tools.clone(),
            caller: Arc::new(NobodyThere),
            cancel: self.cancel.clone(),
        }
    }

    /// Runs the turn to its end and closes the log.
    ///
    /// # Errors
    /// It did not end within the fixture's patience.
    pub async fn run(&self, talk: &mut dyn Conversation, input: &str) -> Result<Result<Outcome, Error>, Failure> {
        let ended = timeout(&SystemClock, self.patience, talk.turn(self.input(input), self.io())).await;
        self.log.close();
        ended.map_err(|_| Failure::new(format!("the turn did not end within {:?}", self.patience)))
    }

    /// Runs the turn and wants it to complete.
    ///
    /// # Errors
    /// It ended otherwise.
    pub async fn complete(&self, talk: &mut dyn Conversation, input: &str) -> Result<String, Failure> {
        match self.run(talk, input).await? {
            Ok(Outcome::Completed { text }) => Ok(text),
            Ok(other) => Err(Failure::new(format!(
                "the turn should have completed, but ended as {other:?}"
            ))),
            Err(error) => {
                let (code, hint) = (error.code, &error.hint);
                Err(Failure::new(format!(
                    "the turn should have completed, but failed: {error} ({code}; {hint})"
                )))
            }
        }
    }
}
