//! The transport and its conversations.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use capsule_api::{
    Capabilities, Clock, Conversation, ConversationSpec, Error, Event, Health, Input, Outcome, Probe, Residue,
    ResumeState, Secrets, Services, Settings, ToolDispatch, Transport, TurnIo,
};
use capsule_transport_process::{Bridge, BridgeOptions, Child, RunDir, Watchdog, private_dir};
use serde_json::json;

use crate::{
    binary::Binary,
    codes,
    command::{self, Run},
    last::LastCalls,
    protocol::{MAX_INPUT, Thread},
    reader::{Expected, Reader},
    settings::Config,
    turn::{Blocks, Left, Tools, Turn},
};

/// The name in the registry, and in resume states.
pub(crate) const NAME: &str = "codex";
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
pub(crate) struct Codex {
    config: Arc<Config>,
    settings: Settings,
    clock: Arc<dyn Clock>,
    secrets: Arc<dyn Secrets>,
}

/// Builds the transport from its settings.
pub(crate) fn build(settings: Settings, services: Services) -> Result<Box<dyn Transport>, Error> {
    let config = Arc::new(Config::read(&settings, &*services.secrets)?);
    Ok(Box::new(Codex {
        config,
        settings,
        clock: services.clock,
        secrets: services.secrets,
    }))
}

impl Codex {
    async fn binary(&self) -> Result<Binary, Error> {
        Binary::find(&self.config.command, &self.settings, &*self.clock).await
    }
}

#[async_trait]
impl Transport for Codex {
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
        let thread = spec.resume.as_ref().map(thread_of).transpose()?;
        let Some(model) = spec.model.clone() else {
            return Err(Error::new(&codes::NO_MODEL, "no model is named"));
        };
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
        let (spec, dir, catalogue) = prepare(spec, model.clone(), self.config.clone()).await?;
        Ok(Box::new(Talk {
            config: self.config.clone(),
            clock: self.clock.clone(),
            binary,
            spec,
            model,
            dir,
            catalogue,
            bridge,
            thread,
            health: Health::Ready,
            residue: Residue::default(),
        }))
    }
}

/// Makes the directories and files, off the runtime.
async fn prepare(
    spec: ConversationSpec,
    model: String,
    config: Arc<Config>,
) -> Result<(ConversationSpec, RunDir, PathBuf), Error> {
    let work = move || {
        let dir = RunDir::create(&spec.run_dir, NAME)?;
        private_dir(&command::home_of(&spec, &dir))?;
        let catalogue = command::write_catalogue(&dir, &spec, &model, &config)?;
        Ok((spec, dir, catalogue))
    };
    tokio::task::spawn_blocking(work)
        .await
        .expect("making files does not panic")
}

fn thread_of(resume: &ResumeState) -> Result<String, Error> {
    let thread = resume.data["thread"].as_str();
    match thread {
        Some(thread) if resume.transport == NAME && resume.version == RESUME_VERSION => Ok(thread.to_owned()),
        _ => {
            let message = format!("the state is version {} of `{}`", resume.version, resume.transport);
            Err(Error::new(&codes::RESUME_VERSION, message))
        }
    }
}

fn bridge_options() -> BridgeOptions {
    let mut options = BridgeOptions::new("capsule", env!("CARGO_PKG_VERSION"));
    options.call_id_keys = vec!["callId".to_owned()];
    options
}

/// A conversation: one run of the CLI per turn, a bridge over all of them.
struct Talk {
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    binary: Binary,
    spec: ConversationSpec,
    model: String,
    dir: RunDir,
    catalogue: PathBuf,
    bridge: Option<Bridge>,
    thread: Option<String>,
    health: Health,
    residue: Residue,
}

impl Talk {
    async fn start(&self, io: TurnIo) -> Result<Turn, Error> {
        let run = Run {
            binary: &self.binary,
            config: &self.config,
            spec: &self.spec,
            dir: &self.dir,
            catalogue: &self.catalogue,
            bridge: self.bridge.as_ref(),
        };
        let tools = self.bridge.as_ref().map(|bridge| self.attach(bridge, &io));
        let child = Child::spawn(run.program()).await?;
        let reader = Reader::new(Expected {
            catalogue: self.spec.catalogue.clone(),
            peer: format!("codex {}", self.binary.version),
            resumed: self.thread.is_some(),
            requests: self.spec.limits.requests,
            code_mode: self.config.code_mode,
        });
        let wall = self.config.wall_clock.map(|wall| wall.0);
        Ok(Turn {
            child,
            reader,
            io,
            tools,
            watchdog: Watchdog::new(self.clock.clone(), self.config.idle_timeout.0, wall),
            clock: self.clock.clone(),
            blocks: Blocks::default(),
        })
    }

    fn attach(&self, bridge: &Bridge, io: &TurnIo) -> Tools {
        let last = Arc::new(LastCalls::new(io.tools.clone(), self.clock.clone()));
        let tools: Arc<dyn ToolDispatch> = last.clone();
        let exact = self.thread.is_none() && !self.config.code_mode;
        Tools {
            attached: bridge.attach(&TurnIo { tools, ..io.clone() }),
            listed: bridge.listed(),
            last,
            last_request: exact.then_some(self.spec.limits.requests),
        }
    }

    /// Where the context is kept, the thread goes on with the next turn, as soon as the CLI has written it down.
    async fn keep(&mut self, thread: Option<String>) {
        let (Some(_), Some(thread)) = (&self.spec.state_dir, thread) else {
            return;
        };
        let sessions = command::home_of(&self.spec, &self.dir).join("sessions");
        let end = format!("-{thread}.jsonl");
        let written = tokio::task::spawn_blocking(move || is_below(&sessions, &end, 3)).await;
        if written.unwrap_or(false) {
            self.thread = Some(thread);
        }
    }
}

/// Whether a file whose name ends so is in a directory or, `deeper` levels down, below it: the CLI makes directories for year, month, day.
fn is_below(directory: &Path, end: &str, deeper: u32) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        match is_directory {
            true => deeper > 0 && is_below(&entry.path(), end, deeper - 1),
            false => entry.file_name().to_string_lossy().ends_with(end),
        }
    })
}

#[async_trait]
impl Conversation for Talk {
    async fn turn(&mut self, input: Input, io: TurnIo) -> Result<Outcome, Error> {
        let Some(prompt) = input.as_text() else {
            return Err(Error::new(&codes::INPUT, "the input holds a file"));
        };
        let length = prompt.chars().count();
        if length > MAX_INPUT {
            let message = format!("the input has {length} characters");
            return Err(Error::new(&codes::INPUT_TOO_LONG, message));
        }
        if io.cancel.is_cancelled() {
            return Ok(Outcome::Cancelled);
        }
        // What holds if this future is dropped: the program is killed, and what it has written down may be half a turn.
        self.health = Health::Reopen;
        if let Some(message) = self.binary.untested() {
            io.events.emit(Event::Warning {
                code: "codex-untested",
                message,
            });
        }
        let open = Thread {
            model: &self.model,
            system_prompt: &self.spec.system_prompt,
            work: &self.dir.work(),
            kept: self.spec.state_dir.is_some(),
            resume: self.thread.as_deref(),
        };
        let open = open.open();
        let turn = self.start(io).await.inspect_err(|_| self.health = Health::Ready)?;
        let Left {
            outcome,
            thread,
            survivors,
        } = turn.run(open, &prompt).await;
        self.residue.processes.extend(survivors);
        self.keep(thread).await;
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
        let thread = self.thread.as_ref()?;
        Some(ResumeState {
            transport: NAME.to_owned(),
            version: RESUME_VERSION,
            data: json!({"thread": thread}),
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
