//! `capsule doctor`: what each tool may do, what could run here and why not, and the versions of both.

use std::{
    io::{self, Write as _},
    process::ExitCode,
    sync::Arc,
};

use anstyle::Style;
use capsule_api::{Error, Probe, Services, TransportDescriptor};
use capsule_manifest::Loaded;
use capsule_tools::{Profile, ToolReport};
use serde_json::{Value, json};

use super::on_runtime;
use crate::{
    Choice, Failure, Surroundings,
    args::Doctor,
    assemble::{self, Equipped},
    catalog, exit, failure,
    view::plain,
};

pub(crate) fn doctor(args: &Doctor) -> Result<ExitCode, Failure> {
    let surroundings = Surroundings::process();
    let outside = args.path.as_os_str() == "." && !args.path.join(capsule_manifest::FILE_NAME).exists();
    // Outside a capsule it says what this program could run.
    let equipped = match outside {
        true => None,
        false => Some(assemble::equip(&Choice::of(&args.path))?),
    };
    let transports = transports(equipped.as_ref(), surroundings)?;
    let report = Report {
        tools: equipped.as_ref().map(|equipped| equipped.toolbox.reports().to_vec()),
        warnings: equipped.as_ref().map(warnings).unwrap_or_default(),
        // A script runs on no transport.
        script: equipped
            .as_ref()
            .is_some_and(|equipped| equipped.toolbox.script().is_some()),
        selected: equipped.as_ref().map(|equipped| equipped.loaded.selected.clone()),
        transports,
    };
    let written = if args.json { report.json() } else { report.text() };
    if let Some(equipped) = equipped {
        assemble::put_away(equipped.toolbox);
    }
    written.map_err(|error| failure::output(&error))?;
    Ok(match report.could_run() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(exit::NO_TRANSPORT),
    })
}

fn warnings(equipped: &Equipped) -> Vec<(&'static str, String)> {
    let all = equipped.toolbox.warnings().iter();
    all.map(|warning| (warning.code, warning.message.clone())).collect()
}

/// A transport, tried.
struct Tried {
    name: &'static str,
    summary: &'static str,
    /// `Err` where the manifest has no settings for it that hold.
    probe: Result<Probe, Error>,
}

/// Each transport with what it says about this machine; nothing is sent.
fn transports(equipped: Option<&Equipped>, surroundings: Surroundings) -> Result<Vec<Tried>, Failure> {
    let registry = catalog::transports()?;
    let secrets = match equipped {
        Some(equipped) => Arc::clone(&equipped.secrets),
        None => assemble::secrets_of(std::path::Path::new(".")),
    };
    let services = Services::new(surroundings.clock, secrets, surroundings.http);
    let loaded = equipped.map(|equipped| &equipped.loaded);
    let tried = registry.iter().map(|descriptor| {
        let transport = build(descriptor, loaded, &services);
        let probe = match transport {
            Ok(transport) => on_runtime(async move { transport.probe(false).await }).map_err(unwrapped),
            Err(error) => Err(error),
        };
        Tried {
            name: descriptor.name,
            summary: descriptor.summary,
            probe: probe.map_err(|error| error.map_text(|text| services.secrets.redact(text).into_owned())),
        }
    });
    Ok(tried.collect())
}

fn unwrapped(failure: Failure) -> Error {
    match failure {
        Failure::Error(error) => error,
        other => Error::new(&failure::codes::INTERNAL, format!("{other:?}")),
    }
}

/// The transport with the manifest's settings for it, or with none.
fn build(
    descriptor: &'static TransportDescriptor,
    loaded: Option<&Loaded>,
    services: &Services,
) -> Result<Box<dyn capsule_api::Transport>, Error> {
    let settings = match loaded {
        Some(loaded) => loaded.settings_for(descriptor.name, &catalog::transports()?)?.settings,
        None => {
            let schema = (descriptor.settings_schema)(None);
            capsule_api::Settings::new(serde_json::Map::new(), &schema, std::path::PathBuf::from("."))
        }
    };
    (descriptor.build)(settings, services.clone())
}

/// All that the doctor found.
struct Report {
    tools: Option<Vec<ToolReport>>,
    warnings: Vec<(&'static str, String)>,
    script: bool,
    selected: Option<String>,
    transports: Vec<Tried>,
}

impl Report {
    /// Whether the capsule's transport could run; without a capsule, whether any could.
    fn could_run(&self) -> bool {
        let usable = |tried: &Tried| matches!(&tried.probe, Ok(probe) if probe.usable.is_ok());
        match &self.selected {
            _ if self.script => true,
            Some(name) => self.transports.iter().any(|tried| tried.name == name && usable(tried)),
            None => self.transports.iter().any(usable),
        }
    }

    fn text(&self) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        for tool in self.tools.iter().flatten() {
            writeln!(
                out,
                "{bold}{}{bold:#} {dim}[{}]{dim:#}",
                plain(&tool.name),
                tool.profile.as_str()
            )?;
            words(tool)
                .iter()
                .try_for_each(|line| writeln!(out, "  {}", plain(line)))?;
        }
        for (code, message) in &self.warnings {
            writeln!(out, "warning: {} ({code})", plain(message))?;
        }
        if self.tools.is_some() {
            writeln!(out)?;
        }
        writeln!(out, "{bold}Transports{bold:#}")?;
        for tried in &self.transports {
            let mark = match !self.script && self.selected.as_deref() == Some(tried.name) {
                true => " (this capsule's)",
                false => "",
            };
            writeln!(out, "  {:<10} {}{mark}", tried.name, state(tried).0)?;
            facts(tried)
                .iter()
                .try_for_each(|(name, value)| writeln!(out, "    {name}: {}", plain(value)))?;
            if let Some(hint) = state(tried).1 {
                writeln!(out, "    {dim}{}{dim:#}", plain(&hint))?;
            }
        }
        writeln!(out, "\ncapsule {}", env!("CARGO_PKG_VERSION"))
    }

    fn json(&self) -> io::Result<()> {
        let shown = json!({
            "capsule": env!("CARGO_PKG_VERSION"),
            "could_run": self.could_run(),
            "transport": self.selected,
            "tools": self.tools.as_ref().map(|tools| tools.iter().map(tool).collect::<Vec<_>>()),
            "warnings": self.warnings.iter().map(|(code, message)| json!({"code": code, "message": message})).collect::<Vec<_>>(),
            "transports": self.transports.iter().map(transport).collect::<Vec<_>>(),
        });
        writeln!(io::stdout().lock(), "{shown:#}")
    }
}

/// A tool in words: what it may do, what is granted or asked for in vain, its limits.
fn words(tool: &ToolReport) -> Vec<String> {
    let mut lines = Vec::new();
    if tool.profile == Profile::Text {
        return vec!["returns a text; runs no code".to_owned()];
    }
    match tool.may.as_slice() {
        [] => lines.push("may touch nothing: no file, no host, no variable".to_owned()),
        may => lines.extend(may.iter().map(|what| format!("may {what}"))),
    }
    if tool.profile == Profile::Pure {
        lines.push("imports nothing but the capsule's own interfaces".to_owned());
    }
    lines.extend(tool.notes.iter().map(|note| format!("note: {note}")));
    lines.push(tool.limits.clone());
    lines
}

/// How a transport stands, and what to do.
fn state(tried: &Tried) -> (String, Option<String>) {
    match &tried.probe {
        Ok(Probe { usable: Ok(()), .. }) => ("could run".to_owned(), None),
        Ok(Probe { usable: Err(error), .. }) => (format!("could not run: {}", error.message), hint(error)),
        Err(error) => (format!("not set up: {}", error.message), hint(error)),
    }
}

fn hint(error: &Error) -> Option<String> {
    (!error.hint.is_empty()).then(|| error.hint.to_string())
}

fn facts(tried: &Tried) -> &[(String, String)] {
    tried.probe.as_ref().map_or(&[], |probe| &probe.facts)
}

fn tool(tool: &ToolReport) -> Value {
    json!({
        "name": tool.name,
        "profile": tool.profile.as_str(),
        "imports": tool.imports,
        "may": tool.may,
        "notes": tool.notes,
        "limits": tool.limits,
    })
}

fn transport(tried: &Tried) -> Value {
    let facts: serde_json::Map<String, Value> = facts(tried)
        .iter()
        .cloned()
        .map(|(name, value)| (name, value.into()))
        .collect();
    let error = match &tried.probe {
        Ok(probe) => probe.usable.as_ref().err(),
        Err(error) => Some(error),
    };
    json!({
        "name": tried.name,
        "summary": tried.summary,
        "usable": error.is_none(),
        "facts": facts,
        "error": error.map(|error| json!({"code": error.code, "message": error.message, "hint": error.hint})),
    })
}
