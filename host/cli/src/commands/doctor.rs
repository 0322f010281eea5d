//! `capsule doctor`: what each tool may do, what could run here and why not, and the versions of both.

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
};

use anstyle::Style;
use capsule_api::{Error, ErrorKind, Services};
use capsule_manifest::{Loaded, Model};
use capsule_tools::{Profile, ToolReport};
use serde_json::{Value, json};

use super::{on_runtime, transports::stand};
use crate::{
    Choice, Failure, Surroundings,
    args::Doctor,
    assemble::{self, Equipped},
    candidates::{self, Tried},
    catalog, exit, failure,
    select::{self, Chosen},
    view::plain,
};

pub(crate) fn doctor(args: &Doctor) -> Result<ExitCode, Failure> {
    let surroundings = Surroundings::process();
    let outside = args.path.as_os_str() == "." && !args.path.join(capsule_manifest::FILE_NAME).exists();
    let choice = Choice::of(&args.path);
    // Outside a capsule it says what this program could run.
    let mut equipped = match outside {
        true => None,
        false => Some(assemble::equip_to_look(&choice)?),
    };
    let secrets = match &equipped {
        Some(equipped) => Arc::clone(&equipped.secrets),
        None => assemble::secrets_of(std::path::Path::new(".")),
    };
    let cache = equipped.as_ref().map(|equipped| equipped.places.component_cache());
    let services = assemble::services(&surroundings, secrets, cache);
    // A script runs on no transport.
    let script = equipped
        .as_ref()
        .is_some_and(|equipped| equipped.toolbox.script().is_some());
    let chosen = match &mut equipped {
        Some(equipped) if !script => choose(&choice, &mut equipped.loaded, &services)?,
        _ => None,
    };
    let schemas = catalog::schemas()?;
    let loaded = equipped.as_ref().map(|equipped| &equipped.loaded);
    let report = Report {
        tools: equipped.as_ref().map(|equipped| equipped.toolbox.reports().to_vec()),
        warnings: equipped.as_ref().map(warnings).unwrap_or_default(),
        script,
        asked: loaded.map(|loaded| loaded.asked.clone()),
        chosen,
        transports: on_runtime(candidates::tried(
            schemas.registry().iter(),
            &schemas,
            loaded,
            &services,
        ))?,
    };
    let written = if args.json { report.json() } else { report.text() };
    if let Some(equipped) = equipped {
        assemble::put_away(equipped.toolbox);
    }
    written.map_err(|error| failure::output(&error))?;
    Ok(report.exit_code())
}

fn warnings(equipped: &Equipped) -> Vec<(&'static str, String)> {
    let all = equipped.toolbox.warnings().iter();
    all.map(|warning| (warning.code, warning.message.clone())).collect()
}

/// The member that would run of the family that the capsule asks for, if it asks for one. The manifest is then read for that member.
fn choose(choice: &Choice, loaded: &mut Loaded, services: &Services) -> Result<Option<Result<Chosen, Error>>, Failure> {
    match select::member(loaded, services) {
        Ok(None) => Ok(None),
        Ok(Some(chosen)) => {
            *loaded = choice.load_for(Some(chosen.member.name), Model::Keys)?;
            Ok(Some(Ok(chosen)))
        }
        Err(Failure::Error(error)) => Ok(Some(Err(error))),
        Err(other) => Err(other),
    }
}

/// All that the doctor found.
struct Report {
    tools: Option<Vec<ToolReport>>,
    warnings: Vec<(&'static str, String)>,
    script: bool,
    /// The transport, or the family of them, that the capsule asks for.
    asked: Option<String>,
    /// Which of the family would run, if it asks for one.
    chosen: Option<Result<Chosen, Error>>,
    transports: Vec<Tried>,
}

impl Report {
    /// Whether the capsule's transport could run; without a capsule, whether any could.
    fn could_run(&self) -> bool {
        let usable = |tried: &Tried| tried.error().is_none();
        match (&self.asked, self.selected()) {
            _ if self.script => true,
            (None, _) => self.transports.iter().any(usable),
            (Some(_), selected) => {
                let mut tried = self.transports.iter();
                tried.any(|tried| Some(tried.descriptor.name) == selected && usable(tried))
            }
        }
    }

    /// What a run would end with before it begins: settings that are wrong or missing are the manifest's, all else the machine's.
    fn exit_code(&self) -> ExitCode {
        if self.could_run() {
            return ExitCode::SUCCESS;
        }
        let of_selected = || {
            let selected = self.selected()?;
            let tried = self.transports.iter().find(|tried| tried.descriptor.name == selected)?;
            tried.error()
        };
        let error = match (&self.asked, &self.chosen) {
            (_, Some(Err(error))) => Some(error),
            (Some(_), _) => of_selected(),
            (None, _) => None,
        };
        ExitCode::from(match error.map(|error| error.kind) {
            Some(ErrorKind::Settings) => exit::USAGE,
            _ => exit::NO_TRANSPORT,
        })
    }

    /// The transport that the capsule would run on; `None` where it asks for a family and none of it can be chosen.
    fn selected(&self) -> Option<&str> {
        match &self.chosen {
            Some(chosen) => chosen.as_ref().ok().map(|chosen| chosen.member.name),
            None => self.asked.as_deref(),
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
            let name = tried.descriptor.name;
            let mark = match !self.script && self.selected() == Some(name) {
                true => " (this capsule's)",
                false => "",
            };
            writeln!(out, "  {bold}{name}{bold:#}{mark}")?;
            stand(tried, 4, &mut out)?;
        }
        self.family(&mut out)?;
        writeln!(out, "\ncapsule {}", env!("CARGO_PKG_VERSION"))
    }

    /// What the family that the capsule asks for comes to.
    fn family(&self, out: &mut dyn Write) -> io::Result<()> {
        let (Some(asked), Some(chosen)) = (&self.asked, &self.chosen) else {
            return Ok(());
        };
        let bold = Style::new().bold();
        writeln!(out, "  {bold}{asked}{bold:#} (what this capsule asks for)")?;
        match chosen {
            Ok(Chosen { member, how }) => writeln!(out, "    runs on {}: {}", member.name, plain(how)),
            Err(error) => {
                writeln!(out, "    could not run: {}", plain(&error.message))?;
                writeln!(out, "    {}", plain(&error.hint))
            }
        }
    }

    fn json(&self) -> io::Result<()> {
        let chosen = self.chosen.as_ref();
        let how = chosen.and_then(|chosen| chosen.as_ref().ok()).map(|chosen| &chosen.how);
        let unclear = chosen.and_then(|chosen| chosen.as_ref().err());
        let shown = json!({
            "capsule": env!("CARGO_PKG_VERSION"),
            "could_run": self.could_run(),
            "asked": self.asked,
            "transport": self.selected(),
            "chosen_by": how,
            "error": unclear.map(candidates::error),
            "tools": self.tools.as_ref().map(|tools| tools.iter().map(tool).collect::<Vec<_>>()),
            "warnings": self.warnings.iter().map(|(code, message)| json!({"code": code, "message": message})).collect::<Vec<_>>(),
            "transports": self.transports.iter().map(Tried::json).collect::<Vec<_>>(),
        });
        writeln!(io::stdout().lock(), "{shown:#}")
    }
}

/// A tool in words: what it may do, what is granted or asked for in vain, its limits.
pub(super) fn words(tool: &ToolReport) -> Vec<String> {
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

pub(super) fn tool(tool: &ToolReport) -> Value {
    json!({
        "name": tool.name,
        "profile": tool.profile.as_str(),
        "imports": tool.imports,
        "may": tool.may,
        "notes": tool.notes,
        "limits": tool.limits,
    })
}
