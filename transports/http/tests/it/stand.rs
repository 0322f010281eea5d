//! A transport on a scripted provider, and one conversation.

use std::{borrow::Cow, sync::Arc, time::Duration};

use capsule_api::{
    Cancel, Conversation, ConversationSpec, Error, Event, Events, Input, Limits, NobodyThere, Outcome, Registry,
    ResumeState, Secret, Secrets, Services, Settings, Transport, TransportDescriptor, TurnIo,
    serde_json::{Value, json},
};
use capsule_fakes::{Provider, Script};
use capsule_net::NetClient;
use tokio::task::JoinHandle;

use crate::{
    log::{Entry, Log, Tools, catalogue},
    time::ManualClock,
};

/// No variables; what is protected is found again.
#[derive(Default)]
pub(crate) struct NoVariables(std::sync::Mutex<Vec<Secret>>);

impl Secrets for NoVariables {
    fn expand(&self, text: &str) -> Result<String, Error> {
        Ok(text.to_owned())
    }

    fn protect(&self, secret: &Secret) {
        self.0.lock().unwrap().push(secret.clone());
    }

    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let secrets = self.0.lock().unwrap();
        let redacted = secrets.iter().fold(text.to_owned(), |text, secret| {
            text.replace(secret.expose(), "[redacted]")
        });
        redacted.into()
    }
}

pub(crate) fn descriptor() -> &'static TransportDescriptor {
    Registry::<TransportDescriptor>::linked().unwrap().get("http").unwrap()
}

pub(crate) fn build(
    settings: &Value,
    base: &std::path::Path,
    clock: Arc<ManualClock>,
) -> Result<Box<dyn Transport>, Error> {
    let schema = (descriptor().settings_schema)(Some(settings));
    let settings = Settings::new(settings.as_object().unwrap().clone(), &schema, base);
    let http = Arc::new(NetClient::new(clock.clone()));
    let services = Services::new(clock, Arc::new(NoVariables::default()), http);
    (descriptor().build)(settings, services)
}

pub(crate) fn spec() -> ConversationSpec {
    ConversationSpec {
        context: "c".to_owned(),
        model: Some("claude-test".to_owned()),
        system_prompt: "Be brief.".to_owned(),
        catalogue: catalogue(),
        limits: Limits::default(),
        resume: None,
        run_dir: std::env::temp_dir(),
        state_dir: None,
    }
}

pub(crate) struct Stand {
    pub(crate) provider: Provider,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) conversation: Option<Box<dyn Conversation>>,
    pub(crate) log: Arc<Log>,
}

pub(crate) type Ended = (Box<dyn Conversation>, Result<Outcome, Error>);

impl Stand {
    pub(crate) async fn new(script: Script) -> Self {
        Self::with(script, &json!({}), spec()).await
    }

    /// With settings that are added to the usual ones.
    pub(crate) async fn with(script: Script, extra: &Value, spec: ConversationSpec) -> Self {
        let provider = Provider::start(script).await.unwrap();
        let mut settings = json!({
            "driver": "anthropic", "endpoint": provider.url(), "api_key": "sk-dummy-key",
            // What is marked for the cache is the driver's business and only in the way here.
            "cache": false,
        });
        settings
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        let clock = Arc::new(ManualClock::new());
        let transport = build(&settings, std::path::Path::new("."), clock.clone()).unwrap();
        let conversation = Some(transport.open(spec).await.unwrap());
        Self {
            provider,
            clock,
            transport,
            conversation,
            log: Log::new(),
        }
    }

    /// A whole turn.
    pub(crate) async fn turn(&mut self, text: &str) -> Result<Outcome, Error> {
        let running = self.start(text, Cancel::new());
        self.end(running).await
    }

    /// A turn that goes on beside the test.
    pub(crate) fn start(&mut self, text: &str, cancel: Cancel) -> JoinHandle<Ended> {
        self.log = Log::new();
        let io = TurnIo {
            events: Events::new(self.log.clone()),
            tools: Tools::new(self.log.clone()),
            caller: Arc::new(NobodyThere),
            cancel,
        };
        let mut conversation = self.conversation.take().unwrap();
        let input = Input::text(text);
        tokio::spawn(async move {
            let ended = conversation.turn(input, io).await;
            (conversation, ended)
        })
    }

    pub(crate) async fn end(&mut self, running: JoinHandle<Ended>) -> Result<Outcome, Error> {
        let (conversation, ended) = running.await.unwrap();
        self.conversation = Some(conversation);
        ended
    }

    pub(crate) fn resume_state(&self) -> Option<ResumeState> {
        self.conversation.as_ref().unwrap().resume_state()
    }

    /// Waits until the `n`th retry of the turn is told, from 1, and lets its delay pass. Returns the delay.
    pub(crate) async fn pass_retry(&self, n: u32) -> Duration {
        let delay = |entry: &Entry| match entry {
            Entry::Model(Event::Retrying { attempt, after, .. }) if *attempt == n => Some(*after),
            _ => None,
        };
        let after = self.log.wait_for_some(delay).await;
        self.clock.pass(after).await;
        after
    }

    /// The messages of the provider's request `n`, from 0.
    pub(crate) fn messages(&self, n: usize) -> Value {
        self.provider.requests()[n].body["messages"].clone()
    }
}

pub(crate) fn completed(text: &str) -> Outcome {
    Outcome::Completed { text: text.to_owned() }
}
