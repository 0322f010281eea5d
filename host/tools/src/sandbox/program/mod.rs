//! What a bound component is, and how a call runs it.

mod command;
mod function;
mod script;

use serde_json::Value;
use wasmtime::{Engine, Store, component::Val};

use super::host::{Guest, Status, ToolInput, ToolResult, ToolWorldPre};
pub(super) use command::Command;
pub(super) use function::{BadArguments, Function};
pub(super) use script::Script;

/// Something that a call can run.
#[derive(Clone)]
pub(crate) enum Program {
    /// `murmur:tool/run`.
    Tool(ToolWorldPre<Guest>),
    /// A function on plain values.
    Function(Function),
    /// `wasi:cli/run`.
    Command(Command),
    /// `murmur:capsule/run`.
    Script(Script),
}

impl Program {
    /// The engine that it was compiled for.
    pub(super) fn engine(&self) -> &Engine {
        match self {
            Self::Tool(pre) => pre.engine(),
            Self::Function(function) => function.engine(),
            Self::Command(command) => command.engine(),
            Self::Script(script) => script.engine(),
        }
    }

    /// Whether it is a whole capsule: then it is no call of a model's, and no deadline of a call holds for it.
    pub(super) fn is_script(&self) -> bool {
        matches!(self, Self::Script(_))
    }

    /// The command, if it is one: it gets its arguments with the store.
    pub(super) fn command(&self) -> Option<&Command> {
        match self {
            Self::Command(command) => Some(command),
            _ => None,
        }
    }

    /// Runs it in a store that was made for this call.
    pub(super) async fn run(&self, store: &mut Store<Guest>, arguments: &Value) -> wasmtime::Result<ToolResult> {
        match self {
            Self::Tool(pre) => {
                let instance = pre.instantiate_async(&mut *store).await?;
                let input = ToolInput {
                    data: Some(arguments.to_string()),
                    log_path: None,
                };
                instance.murmur_tool_run().call_run(store, &input).await
            }
            Self::Function(function) => function.run(store, arguments).await,
            Self::Command(command) => command.run(store).await,
            Self::Script(script) => script.run(store).await,
        }
    }
}

/// A result that is no more than a status and a text.
fn result(status: Status, data: Option<String>) -> ToolResult {
    ToolResult {
        status,
        summary: None,
        data,
        data_path: None,
        truncated: false,
        metadata: Vec::new(),
    }
}

/// A place for a returned value.
const UNSET: Val = Val::Bool(false);
