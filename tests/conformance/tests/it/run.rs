//! A capsule from its manifest to the end of a task, as `capsule run` does it, in surroundings of the test's own.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use capsule::{Assembled, Choice, Surroundings, assemble_in, assemble_recorded};
use capsule_api::{Error, Fold, HttpClient, Input, Outcome, Recorder, Tape, TapeEntry};
use capsule_fakes::{Provider, Script};
use capsule_manifest::Override;
use capsule_session::{Entry, Read, Report, RunPlace, Task, What};
use tokio::runtime::Runtime;

/// Runs capsules. State, caches and run directories are in a directory of its own.
pub(crate) struct Bench {
    pub(crate) runtime: Runtime,
    dir: tempfile::TempDir,
}

/// One run, over.
pub(crate) struct Ran {
    pub(crate) report: Report,
    pub(crate) log: Vec<Arc<Entry>>,
}

pub(crate) fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

pub(crate) fn hello() -> Choice {
    Choice::of(workspace("plugins/capsules/hello"))
}

/// The same with these `key=value`s.
pub(crate) fn set<const N: usize>(mut choice: Choice, values: [String; N]) -> Choice {
    choice
        .overrides
        .extend(values.iter().map(|value| Override::parse(value).unwrap()));
    choice
}

/// The drivers that ask a provider: each is a column of the matrix, and held to the kit.
pub(crate) const DRIVERS: [&str; 4] = ["anthropic", "openai", "openai-responses", "ollama"];

/// The capsule `hello` on `http` with the driver `anthropic`, led to this provider.
pub(crate) fn hello_on_http(endpoint: &str) -> Choice {
    hello_on_driver("anthropic", endpoint)
}

/// The same with another driver.
pub(crate) fn hello_on_driver(driver: &str, endpoint: &str) -> Choice {
    set(
        hello(),
        [
            format!("inference.driver={driver}"),
            format!("inference.endpoint={endpoint}"),
            "inference.api_key=sk-ant-dummy-0123456789".to_owned(),
            "inference.retry={max_retries: 2, initial_delay: 1ms, max_delay: 5ms}".to_owned(),
        ],
    )
}

/// The capsule `hello` on the driver that is a component, led to this provider, which has to speak Chat Completions.
pub(crate) fn hello_on_component(endpoint: &str) -> Choice {
    let driver = workspace("plugins/tools/prebuilt/chat-driver.wasm");
    set(
        hello_on_driver("component", &format!("{endpoint}/v1")),
        [format!("inference.component={}", driver.display())],
    )
}

/// The capsule `hello` on this tape.
pub(crate) fn hello_on_tape(tape: &Path) -> Choice {
    set(hello(), [format!("inference.tape={}", tape.display())])
}

/// The capsule `hello` on the real CLI, led to this provider.
pub(crate) fn hello_on_claude(cli: &Path, endpoint: &str) -> Choice {
    let mut choice = set(
        hello(),
        [
            format!("inference.transports.claude.command={}", cli.display()),
            format!("inference.transports.claude.endpoint={endpoint}"),
            "inference.transports.claude.api_key=sk-ant-dummy-0123456789".to_owned(),
        ],
    );
    choice.transport = Some("claude".to_owned());
    choice
}

/// The same on codex.
pub(crate) fn hello_on_codex(cli: &Path, endpoint: &str) -> Choice {
    let mut choice = set(
        hello(),
        [
            format!("inference.transports.codex.command={}", cli.display()),
            format!("inference.transports.codex.endpoint={endpoint}"),
            "inference.transports.codex.api_key=sk-dummy-0123456789".to_owned(),
            "inference.transports.codex.model=gpt-5.5".to_owned(),
        ],
    );
    choice.transport = Some("codex".to_owned());
    choice
}

/// The script that says what the tape of the capsule `hello` says.
pub(crate) fn hello_script() -> Script {
    Script::load(&workspace("tests/fakes/scripts/hello.json")).unwrap()
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for place in ["state", "cache", "runtime"] {
            std::fs::create_dir(dir.path().join(place)).unwrap();
        }
        Self {
            runtime: Runtime::new().unwrap(),
            dir,
        }
    }

    pub(crate) fn provider(&self, script: Script) -> Provider {
        self.runtime.block_on(Provider::start(script)).unwrap()
    }

    pub(crate) fn run(&self, choice: &Choice) -> Ran {
        self.run_in(choice, self.surroundings())
    }

    /// The same, and what was said to the model and by it is a tape afterwards.
    pub(crate) fn run_recorded(&self, choice: &Choice) -> (Ran, PathBuf) {
        let kept = Arc::new(Kept::default());
        let assembled = assemble_recorded(choice, self.surroundings(), kept.clone());
        let ran = self.run_assembled(assembled.unwrap_or_else(|failure| panic!("{failure:?}")));
        let entries = std::mem::take(&mut *kept.0.lock().unwrap());
        let tape = self.dir.path().join("tape.json");
        std::fs::write(&tape, Tape::new("hello", entries).to_text()).unwrap();
        (ran, tape)
    }

    /// The same over another way to the network.
    pub(crate) fn run_over(&self, choice: &Choice, http: Arc<dyn HttpClient>) -> Ran {
        let surroundings = Surroundings {
            http,
            ..self.surroundings()
        };
        self.run_in(choice, surroundings)
    }

    pub(crate) fn surroundings(&self) -> Surroundings {
        let dir = self.dir.path().to_owned();
        let env = move |name: &str| -> Option<OsString> {
            let place = match name {
                "XDG_STATE_HOME" => "state",
                "XDG_CACHE_HOME" => "cache",
                "XDG_RUNTIME_DIR" => "runtime",
                _ => return None,
            };
            Some(dir.join(place).into())
        };
        Surroundings {
            env: Arc::new(env),
            ..Surroundings::process()
        }
    }

    fn run_in(&self, choice: &Choice, surroundings: Surroundings) -> Ran {
        self.run_assembled(assemble_in(choice, surroundings).unwrap_or_else(|failure| panic!("{failure:?}")))
    }

    fn run_assembled(&self, assembled: Assembled) -> Ran {
        let input = Input::text(assembled.loaded.manifest.task.clone().unwrap());
        let task = Task::new(&assembled.agent.services);
        let run_dir = assembled.places.make_run_dir(task.log.task()).unwrap();
        let mut reader = task.log.reader();
        let place = RunPlace { run_dir, context: None };
        let (report, log) = self.runtime.block_on(async {
            let reading = async {
                let mut log = Vec::new();
                while let Some(read) = reader.next().await {
                    match read {
                        Read::Entry(entry) => log.push(entry),
                        Read::Missed(count) => panic!("the reader missed {count} entries"),
                    }
                }
                log
            };
            tokio::join!(assembled.agent.run(&task, input, place), reading)
        });
        assembled.shut_down();
        let left: Vec<_> = std::fs::read_dir(self.dir.path().join("runtime")).unwrap().collect();
        assert!(left.is_empty(), "the run left {left:?}");
        assert!(report.residue.is_empty(), "{:?}", report.residue);
        Ran { report, log }
    }
}

/// Keeps all exchanges.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) Mutex<Vec<TapeEntry>>);

impl Recorder for Kept {
    fn record(&self, entry: TapeEntry) {
        self.0.lock().unwrap().push(entry);
    }
}

impl Ran {
    pub(crate) fn fold(&self) -> Fold {
        let mut fold = Fold::default();
        for entry in &self.log {
            match &entry.what {
                What::Model(event) => fold.event(event),
                What::Run(event) => fold.run(event),
                _ => {}
            }
        }
        fold
    }

    pub(crate) fn outcome(&self) -> &Outcome {
        let outcome = self.report.outcome.as_ref();
        outcome.unwrap_or_else(|error| panic!("the run failed: {error:?}\n{:#?}", self.log))
    }

    pub(crate) fn error(&self) -> &Error {
        self.report.outcome.as_ref().expect_err("the run should have failed")
    }
}
