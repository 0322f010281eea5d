//! `capsule tool`: the catalogue, and one call without a model.

use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    path::Path,
    process::ExitCode,
    sync::Arc,
};

use anstyle::Style;
use capsule_api::{Annotations, CallId, Cancel, Content, RunEvent, RunSink, ToolCall, ToolReply};
use capsule_tools::Bindings;
use serde_json::{Value, json};

use super::on_runtime;
use crate::{
    Choice, Failure,
    args::ToolCommand,
    asking::{self, Shown},
    assemble::{self, Equipped},
    exit, failure,
    signals::Signals,
    view::{self, plain},
};

/// The most that arguments on standard input may have, in bytes.
const MOST_ARGUMENTS: u64 = 16 << 20;

/// How arguments are written.
const AS_JSON: &str = "Write one JSON object in single quotes, `'{\"name\": \"Ada\"}'`, or `-` and the object on standard input; `capsule tool list` shows \
                       what each tool takes.";

pub(crate) fn tool(command: ToolCommand) -> Result<ExitCode, Failure> {
    match command {
        ToolCommand::List {
            capsule,
            json,
            stray: None,
        } => list(&capsule, json),
        ToolCommand::List { stray: Some(stray), .. } => {
            let message = format!("`tool list` does not take `{stray}`: the capsule is named by a flag");
            Err(Failure::usage(
                message,
                format!("Write `capsule tool list --capsule {stray}`."),
            ))
        }
        ToolCommand::Call {
            name,
            arguments,
            capsule,
            answer,
            json,
        } => call(&capsule, (&name, &arguments), &answer, json),
    }
}

fn list(capsule: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    let equipped = assemble::equip(&Choice::of(capsule))?;
    let written = if as_json {
        list_json(&equipped)
    } else {
        list_text(&equipped)
    };
    assemble::put_away(equipped.toolbox);
    written.map_err(|error| failure::output(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn list_json(equipped: &Equipped) -> io::Result<()> {
    let tools = equipped.toolbox.catalogue().tools.iter().map(|tool| {
        let Annotations { read_only, exclusive } = tool.annotations;
        json!({
            "name": tool.name,
            "alias": tool.alias,
            "description": tool.description,
            "input_schema": tool.input_schema,
            "annotations": {"read_only": read_only, "exclusive": exclusive},
        })
    });
    let tools: Vec<_> = tools.collect();
    writeln!(io::stdout().lock(), "{:#}", json!({ "tools": tools }))
}

fn list_text(equipped: &Equipped) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    for tool in &equipped.toolbox.catalogue().tools {
        writeln!(out, "{bold}{}{bold:#}", plain(&tool.name))?;
        writeln!(out, "  {}", plain(&tool.description))?;
        writeln!(out, "  {dim}{}{dim:#}", plain(&tool.input_schema.to_string()))?;
    }
    Ok(())
}

fn call(
    capsule: &Path,
    (name, arguments): (&str, &str),
    answers: &[String],
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let arguments = read_arguments(arguments)?;
    let equipped = assemble::equip(&Choice::of(capsule))?;
    let warnings = equipped.toolbox.warnings().iter();
    view::warnings(warnings.map(|warning| (warning.code, warning.message.as_str())));
    let done = on_runtime(one_call(&equipped, name, arguments, answers));
    assemble::put_away(equipped.toolbox);
    let (reply, signal) = done??;
    let written = if as_json { show_json(&reply) } else { show_text(&reply) };
    written.map_err(|error| failure::output(&error))?;
    Ok(match signal {
        Some(signal) => ExitCode::from(signal.exit_code()),
        None if reply.is_error() => ExitCode::from(exit::FAILED),
        None => ExitCode::SUCCESS,
    })
}

type Called = (ToolReply, Option<crate::signals::Signal>);

async fn one_call(equipped: &Equipped, name: &str, arguments: Value, answers: &[String]) -> Result<Called, Failure> {
    let within = equipped.loaded.manifest.lifecycle.input_timeout.0;
    let patience = (equipped.clock.clone(), within);
    let cancel = Cancel::new();
    let signals = Signals::cancel(cancel.clone())?;
    let sink: Arc<dyn RunSink> = Arc::new(ToStderr);
    let dispatch = equipped.toolbox.dispatch(Bindings {
        sink,
        caller: asking::caller(answers, Shown::Directly, equipped.secrets.clone(), patience),
        cancel,
    });
    let reply = dispatch
        .call(ToolCall::new(CallId::new("call-1"), name, arguments))
        .await;
    Ok((reply, signals.seen()))
}

fn read_arguments(arguments: &str) -> Result<Value, Failure> {
    let mut text = arguments.to_owned();
    if arguments == "-" {
        text.clear();
        let read = io::stdin().lock().take(MOST_ARGUMENTS + 1).read_to_string(&mut text);
        read.map_err(|error| {
            let message = format!("the arguments on standard input cannot be read: {error}");
            Failure::usage(message, AS_JSON)
        })?;
        if text.len() as u64 > MOST_ARGUMENTS {
            let hint = "Put what is long into a file that the tool may read.";
            return Err(Failure::usage(
                "the arguments on standard input are longer than 16 MiB",
                hint,
            ));
        }
    }
    let parsed = serde_json::from_str(&text);
    parsed.map_err(|error| Failure::usage(format!("the arguments are not JSON: {error}"), AS_JSON))
}

fn show_text(reply: &ToolReply) -> io::Result<()> {
    let stdout = io::stdout();
    // A file gets the bytes as they are; a terminal would obey them.
    let terminal = stdout.is_terminal();
    let mut out = stdout.lock();
    for piece in &reply.content {
        match piece {
            Content::Text(text) => {
                let text = if terminal { plain(text) } else { text.clone() };
                let end = if text.ends_with('\n') { "" } else { "\n" };
                write!(out, "{text}{end}")?;
            }
            Content::Image { media_type, data } | Content::Audio { media_type, data } => {
                writeln!(out, "[{media_type}, {} bytes]", data.len())?;
            }
            Content::Resource(value) => writeln!(out, "{value}")?,
            _ => {}
        }
    }
    Ok(())
}

fn show_json(reply: &ToolReply) -> io::Result<()> {
    let metadata: serde_json::Map<_, _> = reply
        .metadata
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into()))
        .collect();
    let shown = json!({
        "status": reply.status.as_str(),
        "text": reply.joined_text(),
        "structured": reply.structured,
        "full_bytes": reply.full_bytes,
        "metadata": metadata,
    });
    writeln!(io::stdout().lock(), "{shown:#}")
}

/// Text that the tool streams, and warnings: shown, not part of the result.
pub(super) struct ToStderr;

impl RunSink for ToStderr {
    fn record(&self, event: RunEvent) {
        let mut err = anstream::stderr().lock();
        // Without standard error there is nobody to show it to; the call goes on.
        let _ = match event {
            RunEvent::Chunk { text, .. } => write!(err, "{}", plain(&text)),
            RunEvent::Warning { code, message } => writeln!(err, "warning: {message} ({code})"),
            _ => Ok(()),
        };
    }
}
