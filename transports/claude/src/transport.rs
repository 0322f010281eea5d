//! The transport and its conversations.

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use capsule_api::{
    Capabilities, Conversation, ConversationSpec, Error, Health, Input, Outcome, Probe, Residue, ResumeState, Services,
    Settings, Transport, TurnIo,
};
use capsule_transport_process::{
    self as process, Borrow, Bridge, BridgeOptions, Child, Lent, Loan, RunDir, TurnParts, Watchdog, private_dir,
    report, text_of,
};
use serde_json::json;

use crate::{
    binary::{Binary, VERSIONS},
    codes,
    command::{self, Files, MOST_CHARS, Run},
    login,
    reader::{Expected, Reader},
    settings::Config,
    turn::{CODES, Left, Turn},
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
    lent: Lent,
}

/// Builds the transport from its settings.
pub(crate) fn build(settings: Settings, services: Services) -> Result<Box<dyn Transport>, Error> {
    let config = Arc::new(Config::read(&settings, &*services.secrets)?);
    Ok(Box::new(Claude {
        config,
        settings,
        lent: Lent {
            clock: services.clock,
            secrets: services.secrets,
        },
    }))
}

impl Claude {
    async fn binary(&self) -> Result<Binary, Error> {
        Binary::find(&self.config.cli, &self.settings, &*self.lent.clock).await
    }
}

#[async_trait]
impl Transport for Claude {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    async fn probe(&self, _online: bool) -> Probe {
        let program = self.binary().await.map(|binary| (binary.path, binary.version));
        report(
            program,
            &VERSIONS,
            &self.config.cli.credential,
            &login::FORMAT,
            &*self.lent.clock,
        )
        .await
    }

    async fn open(&self, spec: ConversationSpec) -> Result<Box<dyn Conversation>, Error> {
        let resumed = |state| process::resumed(state, (NAME, RESUME_VERSION), "session", &codes::RESUME_VERSION);
        let session = spec.resume.as_ref().map(resumed).transpose()?;
        let binary = self.binary().await?;
        let shown = usize::try_from(MOST_CHARS).ok();
        let bridge = self.lent.bridge(&spec.catalogue, bridge_options(), shown).await?;
        let url = bridge.as_ref().map(Bridge::url);
        let (spec, dir, files) = prepare(spec, url).await?;
        Ok(Box::new(Talk {
            config: self.config.clone(),
            lent: self.lent.clone(),
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

fn bridge_options() -> BridgeOptions {
    let mut options = BridgeOptions::new("capsule", env!("CARGO_PKG_VERSION"));
    options.call_id_keys = vec!["claudecode/toolUseId".to_owned()];
    options.tool_meta = Some(Arc::new(|tool| Some(command::tool_meta(tool))));
    options
}

/// A conversation: one run of the CLI per turn, a bridge over all of them.
struct Talk {
    config: Arc<Config>,
    lent: Lent,
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
    async fn start(&self, io: TurnIo, loan: Option<Loan>) -> Result<Turn, Error> {
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
            login: self.config.cli.credential.login(),
        });
        let clock = self.lent.clock.clone();
        let run = process::Turn::new(TurnParts {
            child,
            io,
            calls,
            watchdog: Watchdog::new(clock.clone(), self.config.cli.idle, self.config.cli.wall),
            clock,
            loan,
            codes: &CODES,
        });
        Ok(Turn { run, reader })
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
        let prompt = text_of(&input, &codes::INPUT)?;
        let borrow = Borrow {
            credential: &self.config.cli.credential,
            format: &login::FORMAT,
            dir: &self.dir,
            codes: &CODES,
            untested: self.binary.untested(),
        };
        let Some(loan) = self.lent.begin(borrow, &io).await? else {
            return Ok(Outcome::Cancelled);
        };
        // What holds if this future is dropped: the program is killed, and what it has written down may be half a turn.
        self.health = Health::Reopen;
        let turn = self
            .start(io, loan)
            .await
            .inspect_err(|_| self.health = Health::Ready)?;
        let Left {
            outcome,
            session,
            survivors,
        } = turn.run(&prompt).await;
        self.residue.processes.extend(survivors);
        self.keep(session).await;
        self.health = process::health_after(self.spec.state_dir.is_some());
        process::advised(outcome, &self.config.cli.credential, &login::FORMAT, &codes::AUTH)
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
        process::close(self.bridge, self.dir, self.residue, grace).await
    }
}
