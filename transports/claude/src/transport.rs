//! The transport and its conversations.

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use capsule_api::{
    Capabilities, Clock, Conversation, ConversationSpec, Error, Event, Health, Input, Outcome, Probe, Residue,
    ResumeState, Secrets, Services, Settings, Transport, TurnIo,
};
use capsule_transport_process::{Bridge, BridgeOptions, Child, RunDir, Watchdog, private_dir};
use serde_json::json;

use crate::{
    binary::Binary,
    codes,
    command::{self, Files, RESULT_CHARS, Run},
    reader::{Expected, Reader},
    settings::Config,
    turn::{Blocks, Left, Turn},
};

/// The name in the registry, and in resume states.
pub(crate) const NAME: &str = "claude";
const RESUME_VERSION: u32 = 1;

/// What the transport can do, whatever its settings.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    streams: true,
    thinking: true,
    usage: true,
    resumes: true,
    parallel_tools: true,
    interrupts: true,
    host_owns_loop: false,
};

/// One configured CLI.
pub(crate) struct Claude {
    config: Arc<Config>,
    settings: Settings,
    clock: Arc<dyn Clock>,
    secrets: Arc<dyn Secrets>,
}

/// Builds the transport from its settings.
pub(crate) fn build(settings: Settings, services: Services) -> Result<Box<dyn Transport>, Error> {
    let config = Arc::new(Config::read(&settings, &*services.secrets)?);
    Ok(Box::new(Claude {
        config,
        settings,
        clock: services.clock,
        secrets: services.secrets,
    }))
}

impl Claude {
    async fn binary(&self) -> Result<Binary, Error> {
        Binary::find(&self.config.command, &self.settings, &*self.clock).await
    }
}

#[async_trait]
impl Transport for Claude {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    async fn probe(&self, _online: bool) -> Probe {
        match self.binary().await {
            Err(error) => Probe {
                usable: Err(error),
                facts: Vec::new(),
            },
            Ok(binary) => {
                let mut facts = vec![
                    ("path".to_owned(), binary.path.display().to_string()),
                    ("version".to_owned(), binary.version.to_string()),
                    ("login".to_owned(), "api_key".to_owned()),
                ];
                facts.extend(binary.untested().map(|remark| ("warning".to_owned(), remark)));
                Probe { usable: Ok(()), facts }
            }
        }
    }

    async fn open(&self, spec: ConversationSpec) -> Result<Box<dyn Conversation>, Error> {
        let session = spec.resume.as_ref().map(session_of).transpose()?;
        let binary = self.binary().await?;
        // No tools: no bridge, and the CLI runs with every tool off.
        let bridge = if spec.catalogue.tools.is_empty() {
            None
        } else {
            let catalogue = spec.catalogue.clone();
            let bridge = Bridge::start(catalogue, bridge_options(), self.clock.clone()).await?;
            // The CLI knows it, so it could turn up in what the CLI writes.
            self.secrets.protect(bridge.token());
            Some(bridge)
        };
        let url = bridge.as_ref().map(Bridge::url);
        let (spec, dir, files) = prepare(spec, url).await?;
        Ok(Box::new(Talk {
            config: self.config.clone(),
            clock: self.clock.clone(),
            binary,
            spec,
            dir,
            files,
            bridge,
            session,
            health: Health::Ready,
            residue: Residue::default(),
        }))
    }
}

/// Makes the directories and files, off the runtime.
async fn prepare(spec: ConversationSpec, url: Option<String>) -> Result<(ConversationSpec, RunDir, Files), Error> {
    let work = move || {
        let dir = RunDir::create(&spec.run_dir, NAME)?;
        private_dir(&command::config_dir(&spec, &dir))?;
        let files = Files::write(&dir, &spec, url.as_deref())?;
        Ok((spec, dir, files))
    };
    tokio::task::spawn_blocking(work)
        .await
        .expect("making files does not panic")
}

fn session_of(resume: &ResumeState) -> Result<String, Error> {
    let session = resume.data["session"].as_str();
    match session {
        Some(session) if resume.transport == NAME && resume.version == RESUME_VERSION => Ok(session.to_owned()),
        _ => {
            let message = format!("the state is version {} of `{}`", resume.version, resume.transport);
            Err(Error::new(&codes::RESUME_VERSION, message))
        }
    }
}

fn bridge_options() -> BridgeOptions {
    let mut options = BridgeOptions::new("capsule", env!("CARGO_PKG_VERSION"));
    options.call_id_keys = vec!["claudecode/toolUseId".to_owned()];
    // Without it the CLI puts a result of more than 50,000 characters into a file that the model cannot read.
    options.tool_meta = Some(Arc::new(|_| {
        Some(json!({"anthropic/maxResultSizeChars": RESULT_CHARS}))
    }));
    options
}

/// A conversation: one run of the CLI per turn, a bridge over all of them.
struct Talk {
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    binary: Binary,
    spec: ConversationSpec,
    dir: RunDir,
    files: Files,
    bridge: Option<Bridge>,
    session: Option<String>,
    health: Health,
    residue: Residue,
}

impl Talk {
    async fn start(&self, io: TurnIo) -> Result<Turn, Error> {
        let run = Run {
            binary: &self.binary.path,
            config: &self.config,
            spec: &self.spec,
            dir: &self.dir,
            files: &self.files,
            bridge: self.bridge.as_ref(),
            session: self.session.as_deref(),
        };
        let calls = self.bridge.as_ref().map(|bridge| bridge.attach(&io));
        let child = Child::spawn(run.program()).await?;
        let reader = Reader::new(Expected {
            catalogue: self.spec.catalogue.clone(),
            peer: format!("claude {}", self.binary.version),
            resumed: self.session.is_some(),
        });
        let wall = self.config.wall_clock.map(|wall| wall.0);
        Ok(Turn {
            child,
            reader,
            io,
            calls,
            watchdog: Watchdog::new(self.clock.clone(), self.config.idle_timeout.0, wall),
            clock: self.clock.clone(),
            blocks: Blocks::default(),
        })
    }

    /// Where the context is kept, the session goes on with the next turn, as soon as the CLI has written it down.
    async fn keep(&mut self, session: Option<String>) {
        let (Some(_), Some(session)) = (&self.spec.state_dir, session) else {
            return;
        };
        let projects = command::config_dir(&self.spec, &self.dir).join("projects");
        let file = format!("{session}.jsonl");
        let written = tokio::task::spawn_blocking(move || is_in_a_project(projects, &file)).await;
        if written.unwrap_or(false) {
            self.session = Some(session);
        }
    }
}

fn is_in_a_project(projects: PathBuf, file: &str) -> bool {
    let entries = std::fs::read_dir(projects).into_iter().flatten();
    entries
        .filter_map(Result::ok)
        .any(|entry| entry.path().join(file).is_file())
}

#[async_trait]
impl Conversation for Talk {
    async fn turn(&mut self, input: Input, io: TurnIo) -> Result<Outcome, Error> {
        let Some(prompt) = input.as_text() else {
            return Err(Error::new(&codes::INPUT, "the input holds a file"));
        };
        if io.cancel.is_cancelled() {
            return Ok(Outcome::Cancelled);
        }
        // What holds if this future is dropped: the program is killed, and what it has written down may be half a turn.
        self.health = Health::Reopen;
        if let Some(message) = self.binary.untested() {
            io.events.emit(Event::Warning {
                code: "claude-untested",
                message,
            });
        }
        let turn = self.start(io).await.inspect_err(|_| self.health = Health::Ready)?;
        let Left {
            outcome,
            session,
            survivors,
        } = turn.run(&prompt).await;
        self.residue.processes.extend(survivors);
        self.keep(session).await;
        // Without a kept context the CLI has forgotten the turn with its exit.
        self.health = if self.spec.state_dir.is_some() {
            Health::Ready
        } else {
            Health::Lost
        };
        outcome
    }

    fn health(&self) -> Health {
        self.health
    }

    fn resume_state(&self) -> Option<ResumeState> {
        let session = self.session.as_ref()?;
        Some(ResumeState {
            transport: NAME.to_owned(),
            version: RESUME_VERSION,
            data: json!({"session": session}),
        })
    }

    async fn close(self: Box<Self>, grace: Duration) -> Residue {
        let mut residue = self.residue;
        if let Some(bridge) = self.bridge {
            bridge.close(grace).await;
        }
        let dir = self.dir;
        let removed = tokio::task::spawn_blocking(move || dir.remove()).await;
        if let Ok(Err((path, _))) = removed {
            residue.files.push(path);
        }
        residue
    }
}
