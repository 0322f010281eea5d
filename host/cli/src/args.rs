//! The command line's words.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::templates::Template;

/// Runs packaged AI agents: a manifest and sandboxed tools, on any transport.
#[derive(Debug, Parser)]
#[command(name = "capsule", version, max_term_width = 100)]
#[command(after_help = "Examples:\n  \
    capsule new my-agent && capsule run my-agent\n  \
    capsule run my-agent -t 'What changed since yesterday?'\n  \
    capsule tool call hello '{\"name\": \"Ada\"}' --capsule my-agent\n\n\
    CAPSULE_LOG=debug shows what the host does; NO_COLOR turns colours off.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one task: the answer on stdout, everything else on stderr
    Run(Box<Run>),
    /// Play a capsule's tapes and say what its tools answer differently
    Test(Test),
    /// List a capsule's tools, or call one without a model
    Tool(Tool),
    /// Serve a capsule's tools to any client of MCP, on standard input and output or on HTTP
    Mcp(Mcp),
    /// Show the transports and drivers of this program, and which could run here
    Transports(Transports),
    /// Say what each tool may do, and which transports could run here
    Doctor(Doctor),
    /// Make a new capsule that runs at once
    New(New),
    /// Build the tools that a capsule names by their sources
    Build(Build),
    /// Print the JSON Schema of capsule.yaml
    #[command(after_help = "Example:\n  capsule schema > capsule.schema.json")]
    Schema,
    /// Say what an error code means and what to do
    Explain(Explain),
    /// Print the completions of a shell
    #[command(after_help = "Examples:\n  \
        source <(capsule completions bash)\n  \
        capsule completions zsh > ~/.zfunc/_capsule\n  \
        capsule completions fish > ~/.config/fish/completions/capsule.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether a program reads what it prints.
    pub(crate) fn as_json(&self) -> bool {
        match self {
            Self::Run(run) => run.json,
            Self::Test(test) => test.json,
            Self::Tool(Tool { command }) => match command {
                ToolCommand::List { json, .. } | ToolCommand::Call { json, .. } => *json,
            },
            Self::Transports(transports) => transports.json,
            Self::Doctor(doctor) => doctor.json,
            Self::Build(build) => build.json,
            Self::Mcp(_) | Self::New(_) | Self::Schema | Self::Explain(_) | Self::Completions { .. } => false,
        }
    }
}

/// Which capsule, and what of its manifest to change for this run.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Run on this transport instead of the manifest's; `process` is whichever command-line agent can run
    #[arg(long, value_name = "NAME")]
    pub(crate) transport: Option<String>,
    /// Ask for this model
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Use this driver: the transport's setting `driver`, wherever the manifest has it
    #[arg(long, value_name = "NAME")]
    pub(crate) driver: Option<String>,
    /// Override a key of the manifest; may be repeated
    #[arg(long = "set", value_name = "KEY.PATH=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    capsule run plugins/capsules/hello\n  \
    capsule run -t 'Summarise notes/today.md'\n  \
    echo 'Summarise notes/today.md' | capsule run my-agent\n  \
    capsule run my-agent --json | jq -r 'select(.kind == \"call_end\").name'\n  \
    capsule run my-agent --continue release -t 'And what is still open?'\n  \
    capsule run my-agent --record my-agent/tapes/notes.json\n\n\
    Exit codes: 0 completed, 1 failed, 2 usage or manifest, 3 no transport could run, 4 cancelled,\n\
    5 a limit was reached, 6 refused or truncated by the model, 130 Ctrl-C, 143 SIGTERM.")]
pub(crate) struct Run {
    /// The capsule's directory or manifest
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) path: PathBuf,
    /// The task; `-` reads it from stdin
    #[arg(short = 't', long = "task", value_name = "TEXT|-")]
    pub(crate) task: Option<String>,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Keep the conversation under this name, and go on with it
    #[arg(long = "continue", value_name = "CONTEXT")]
    pub(crate) context: Option<String>,
    /// Record every exchange with the model on this tape, without keys
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Play this tape in the model's place; the tools really run
    #[arg(long, value_name = "FILE", conflicts_with = "driver")]
    pub(crate) replay: Option<PathBuf>,
    /// Answer a tool's question with this, in the order of the questions; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) answer: Vec<String>,
    /// Print every event as a JSON line on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the trace here instead of beside the run's state
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Say what would run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    capsule test plugins/capsules/hello\n  \
    capsule run my-agent --record my-agent/tapes/notes.json && capsule test my-agent\n\n\
    Plays every tapes/*.json: the model's part comes from the tape, the tools really run, and what\n\
    they answer is compared with what was recorded.\n\
    Exit codes: 0 nothing differs, 1 something does, 2 there is nothing to play.")]
pub(crate) struct Test {
    /// The capsule's directory or manifest
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Answer the next question of a tool, in each tape from the first one on; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) answer: Vec<String>,
    /// Print one JSON object a tape
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    capsule tool list --capsule plugins/capsules/hello\n  \
    capsule tool call hello '{\"name\": \"Ada\"}' --capsule plugins/capsules/hello")]
pub(crate) struct Tool {
    #[command(subcommand)]
    pub(crate) command: ToolCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolCommand {
    /// The catalogue as models see it
    #[command(after_help = "Example:\n  capsule tool list --capsule plugins/capsules/hello")]
    List {
        /// The capsule's directory or manifest
        #[arg(long, value_name = "DIR|FILE", default_value = ".")]
        capsule: PathBuf,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
        /// A capsule where none is taken: told with a way out
        #[arg(hide = true)]
        stray: Option<String>,
    },
    /// One call without a model; a failed tool exits 1
    #[command(
        after_help = "Example:\n  capsule tool call hello '{\"name\": \"Ada\"}' --capsule plugins/capsules/hello"
    )]
    Call {
        /// The tool
        name: String,
        /// Its arguments as a JSON object; `-` reads them from stdin
        #[arg(value_name = "JSON|-", default_value = "{}")]
        arguments: String,
        /// The capsule's directory or manifest
        #[arg(long, value_name = "DIR|FILE", default_value = ".")]
        capsule: PathBuf,
        /// Answer a question of the tool with this, in the order of the questions; may be repeated
        #[arg(long, value_name = "TEXT")]
        answer: Vec<String>,
        /// Print the whole reply as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    capsule mcp plugins/capsules/hello\n  \
    capsule mcp my-agent --http --port 8400\n  \
    capsule mcp my-agent --http --token-file ~/.config/my-agent.token\n\n\
    On standard input and output there is one client, which starts the program itself.\n\
    On HTTP the server listens on 127.0.0.1 and prints its URL, and every request needs the\n\
    token: `Authorization: Bearer ...`.")]
pub(crate) struct Mcp {
    /// The capsule's directory or manifest
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Serve on HTTP, for any number of clients
    #[arg(long)]
    pub(crate) http: bool,
    /// The port on 127.0.0.1; 0 is any free one
    #[arg(long, value_name = "N", default_value_t = 0, requires = "http")]
    pub(crate) port: u16,
    /// The file with the token; it is made where there is none. Without this: `mcp-token` in the capsule's state
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    capsule transports\n  \
    capsule transports --json | jq '.transports[] | select(.family == \"cli\")'\n\n\
    Each transport looks at this machine and says whether it could run, and what is missing.\n\
    Nothing is sent, and the network is not used. Exit code 0, whatever could run.")]
pub(crate) struct Transports {
    /// Print them as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    capsule doctor plugins/capsules/hello\n  \
    capsule doctor --json | jq '.transports[] | select(.usable).name'\n\n\
    Exit codes: 0 the capsule could run here, 2 its manifest, its tools or its transport's settings\n\
    are wrong or incomplete, 3 this machine lacks what its transport needs.")]
pub(crate) struct Doctor {
    /// The capsule's directory or manifest; without one, the transports alone
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    capsule new my-agent && capsule run my-agent\n  \
    capsule new my-tool --template tool-rust && capsule build my-tool && capsule run my-tool")]
pub(crate) struct New {
    /// The capsule's name, and the directory it is made in: lower-case letters, digits and `-`
    pub(crate) name: String,
    /// What to begin with
    #[arg(long, value_enum, default_value_t = Template::Hello)]
    pub(crate) template: Template,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    capsule build my-tool\n  \
    capsule build my-tool --tool word-count --json | jq '.tools[].imports'\n\n\
    Builds each tool whose `component:` names a directory: a Cargo package, built by `cargo` for\n\
    wasm32-wasip2 with its Cargo.lock as it is. The compiler is that of RUSTC, else `rustc`.\n\
    Exit codes: 0 built and fit to load, 1 not built, 2 built and not fit to load, 130 Ctrl-C,\n\
    143 SIGTERM.")]
pub(crate) struct Build {
    /// The capsule's directory or manifest
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Build this tool alone; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Vec<String>,
    /// Let cargo change Cargo.lock, after a change of dependencies
    #[arg(long)]
    pub(crate) unlocked: bool,
    /// Print the tools as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  capsule explain manifest-invalid")]
pub(crate) struct Explain {
    /// The code, as an error shows it
    pub(crate) code: String,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// Columns that help takes at most; what is written by hand is not wrapped where words end.
    const COLUMNS: usize = 100;

    fn check(command: &clap::Command) {
        for line in command
            .get_after_help()
            .into_iter()
            .flat_map(|help| help.to_string().lines().map(str::to_owned).collect::<Vec<_>>())
        {
            assert!(line.chars().count() <= COLUMNS, "{}: {line}", command.get_name());
        }
        command.get_subcommands().for_each(check);
    }

    #[test]
    fn no_help_that_is_wrapped_by_hand_is_wider_than_a_terminal() {
        check(&Cli::command());
    }
}
