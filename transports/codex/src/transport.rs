//! The transport and its conversations.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use capsule_api::{
    Capabilities, Conversation, ConversationSpec, Error, Health, Input, Outcome, Probe, Residue, ResumeState, Services,
    Settings, ToolDispatch, Transport, TurnIo,
};
use capsule_transport_process::{
    self as process, AttachedTurn, Borrow, Bridge, BridgeOptions, Child, Lent, Loan, Login, RunDir, TurnParts,
    Watchdog, private_dir, report, text_of,
};
use serde_json::json;

use crate::{
    binary::{Binary, VERSIONS},
    codes,
    command::{self, Run},
    last::LastCalls,
    login,
    protocol::{MAX_INPUT, Thread},
    reader::{Expected, Reader},
    settings::Config,
    turn::{CODES, Left, Tools, Turn},
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
    lent: Lent,
}

/// Builds the transport from its settings.
pub(crate) fn build(settings: Settings, services: Services) -> Result<Box<dyn Transport>, Error> {
    let config = Arc::new(Config::read(&settings, &*services.secrets)?);
    Ok(Box::new(Codex {
        config,
        settings,
        lent: Lent {
            clock: services.clock,
            secrets: services.secrets,
        },
    }))
}

impl Codex {
    async fn binary(&self) -> Result<Binary, Error> {
        Binary::find(&self.config.cli, &self.settings, &*self.lent.clock).await
    }
}

#[async_trait]
impl Transport for Codex {
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
        let resumed = |state| process::resumed(state, (NAME, RESUME_VERSION), "thread", &codes::RESUME_VERSION);
        let thread = spec.resume.as_ref().map(resumed).transpose()?;
        let Some(model) = spec.model.clone() else {
            return Err(Error::new(&codes::NO_MODEL, "no model is named"));
        };
        let binary = self.binary().await?;
        // The CLI is told to pass on as much as the tools may give, so nothing is cut for it.
        let bridge = self.lent.bridge(&spec.catalogue, bridge_options(), None).await?;
        let (spec, dir, catalogue) = prepare(spec, model.clone(), self.config.clone()).await?;
        Ok(Box::new(Talk {
            config: self.config.clone(),
            lent: self.lent.clone(),
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
        let home = command::home_of(&spec, &dir);
        private_dir(&home)?;
        link_login(&home, &dir, &config)?;
        let catalogue = command::write_catalogue(&dir, &spec, &model, &config)?;
        Ok((spec, dir, catalogue))
    };
    tokio::task::spawn_blocking(work)
        .await
        .expect("making files does not panic")
}

/// Makes the CLI's credential file a link to where a login is lent: in the run, also where the home is kept, so that no login outlives the
/// run. The CLI follows the link when it writes. Without a lent login there is no such file.
fn link_login(home: &Path, dir: &RunDir, config: &Config) -> Result<(), Error> {
    let file = home.join(login::FORMAT.file);
    let failed = |error: std::io::Error| {
        let message = format!("{} could not be made: {error}", file.display());
        Error::new(&process::codes::RUN_DIR, message).caused_by(error)
    };
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    if config.cli.credential.login() == Login::Subscription {
        let lent = dir.login().join(login::FORMAT.file);
        std::os::unix::fs::symlink(lent, &file).map_err(failed)?;
    }
    Ok(())
}

fn bridge_options() -> BridgeOptions {
    let mut options = BridgeOptions::new("capsule", env!("CARGO_PKG_VERSION"));
    options.call_id_keys = vec!["callId".to_owned()];
    options
}

/// A conversation: one run of the CLI per turn, a bridge over all of them.
struct Talk {
    config: Arc<Config>,
    lent: Lent,
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
    async fn start(&self, io: TurnIo, loan: Option<Loan>) -> Result<Turn, Error> {
        let run = Run {
            binary: &self.binary,
            config: &self.config,
            spec: &self.spec,
            dir: &self.dir,
            catalogue: &self.catalogue,
            bridge: self.bridge.as_ref(),
        };
        let (calls, tools) = self.bridge.as_ref().map(|bridge| self.attach(bridge, &io)).unzip();
        let child = Child::spawn(run.program()).await?;
        let reader = Reader::new(Expected {
            catalogue: self.spec.catalogue.clone(),
            peer: format!("codex {}", self.binary.version),
            resumed: self.thread.is_some(),
            login: self.config.cli.credential.login(),
            requests: self.spec.limits.requests,
            code_mode: self.config.code_mode,
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
        Ok(Turn { run, reader, tools })
    }

    fn attach(&self, bridge: &Bridge, io: &TurnIo) -> (AttachedTurn, Tools) {
        let last = Arc::new(LastCalls::new(io.tools.clone(), self.lent.clock.clone()));
        let tools: Arc<dyn ToolDispatch> = last.clone();
        let exact = self.thread.is_none() && !self.config.code_mode;
        let attached = bridge.attach(&TurnIo { tools, ..io.clone() });
        let tools = Tools {
            listed: bridge.listed(),
            last,
            last_request: exact.then_some(self.spec.limits.requests),
        };
        (attached, tools)
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
        let prompt = text_of(&input, &codes::INPUT)?;
        let length = prompt.chars().count();
        if length > MAX_INPUT {
            let message = format!("the input has {length} characters");
            return Err(Error::new(&codes::INPUT_TOO_LONG, message));
        }
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
        let open = Thread {
            model: &self.model,
            system_prompt: &self.spec.system_prompt,
            work: &self.dir.work(),
            kept: self.spec.state_dir.is_some(),
            resume: self.thread.as_deref(),
            login: self.config.cli.credential.login() == Login::Subscription,
        };
        let open = open.open();
        let turn = self
            .start(io, loan)
            .await
            .inspect_err(|_| self.health = Health::Ready)?;
        let Left {
            outcome,
            thread,
            survivors,
        } = turn.run(open, &prompt).await;
        self.residue.processes.extend(survivors);
        self.keep(thread).await;
        self.health = process::health_after(self.spec.state_dir.is_some());
        process::advised(outcome, &self.config.cli.credential, &login::FORMAT, &codes::AUTH)
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
        process::close(self.bridge, self.dir, self.residue, grace).await
    }
}
