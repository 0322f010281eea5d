//! Commands of `wasi:cli`: arguments in, standard output out.

use serde_json::Value;
use wasmtime::{
    Engine, Store,
    component::{ComponentExportIndex, InstancePre},
};
use wasmtime_wasi::I32Exit;

use super::result;
use crate::{
    sandbox::host::{Guest, Status, ToolResult},
    source::CommandInput,
};

/// A bound component that is a command.
#[derive(Clone)]
pub(crate) struct Command {
    pub(in crate::sandbox) pre: InstancePre<Guest>,
    pub(in crate::sandbox) run: ComponentExportIndex,
    pub(in crate::sandbox) input: CommandInput,
}

/// What `wasi:cli/run` returns.
type Ended = (Result<(), ()>,);

impl Command {
    pub(super) fn engine(&self) -> &Engine {
        self.pre.engine()
    }

    /// What the command reads on standard input.
    pub(in crate::sandbox) fn stdin(&self, arguments: &Value) -> Vec<u8> {
        match self.input {
            CommandInput::Stdin => arguments.to_string().into_bytes(),
            CommandInput::Argv => Vec::new(),
        }
    }

    /// Its command line, after its name.
    pub(in crate::sandbox) fn argv(&self, arguments: &Value) -> Vec<String> {
        match self.input {
            CommandInput::Stdin => Vec::new(),
            CommandInput::Argv => options(arguments),
        }
    }

    pub(super) async fn run(&self, store: &mut Store<Guest>) -> wasmtime::Result<ToolResult> {
        let instance = self.pre.instantiate_async(&mut *store).await?;
        let run = instance.get_typed_func::<(), Ended>(&mut *store, self.run)?;
        let code = match run.call_async(&mut *store, ()).await {
            Ok((Ok(()),)) => 0,
            Ok((Err(()),)) => 1,
            Err(cause) => match cause.downcast_ref::<I32Exit>() {
                Some(I32Exit(code)) => *code,
                None => return Err(cause),
            },
        };
        let record = &store.data().record;
        let printed = record.printed();
        if code == 0 {
            return Ok(result(Status::Passed, (!printed.is_empty()).then_some(printed)));
        }
        let mut why = format!("it exited with code {code}");
        let stderr = record.stderr_tail();
        for (name, text) in [("standard error", stderr), ("standard output", printed)] {
            if !text.is_empty() {
                why.push_str(&format!("\nend of its {name}:\n{}", tail(&text)));
            }
        }
        Ok(result(Status::Failed, Some(why)))
    }
}

/// The last part of a text that explains a failure.
fn tail(text: &str) -> &str {
    const MOST: usize = 8 << 10;
    let from = text.ceil_char_boundary(text.len().saturating_sub(MOST));
    text[from..].trim_end()
}

/// An object as options: `--key value`; `--key` for true, nothing for false and null; one option for each item of an array; objects as JSON.
///
/// A key of one letter has one dash. A value never becomes an option of its own: it is joined with `=` where it begins with a dash.
fn options(arguments: &Value) -> Vec<String> {
    let mut line = Vec::new();
    for (key, value) in arguments.as_object().into_iter().flatten() {
        let option = match key.chars().count() {
            1 => format!("-{key}"),
            _ => format!("--{key}"),
        };
        match value {
            Value::Array(items) => items.iter().for_each(|item| push(&mut line, &option, item)),
            value => push(&mut line, &option, value),
        }
    }
    line
}

fn push(line: &mut Vec<String>, option: &str, value: &Value) {
    let text = match value {
        Value::Null | Value::Bool(false) => return,
        Value::Bool(true) => return line.push(option.to_owned()),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.starts_with('-') {
        line.push(format!("{option}={text}"));
    } else {
        line.extend([option.to_owned(), text]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_become_options_and_never_options_of_their_own() {
        let arguments = json!({
            "name": "Ada", "n": 3, "all": true, "none": false, "nil": null, "tag": ["a", "b"], "at": {"x": 1}, "text": "--force",
        });
        let line = [
            "--name",
            "Ada",
            "-n",
            "3",
            "--all",
            "--tag",
            "a",
            "--tag",
            "b",
            "--at",
            "{\"x\":1}",
            "--text=--force",
        ];
        assert_eq!(options(&arguments), line);
    }
}
