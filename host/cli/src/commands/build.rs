//! `capsule build`: components of the tools that the manifest names by their sources.

mod cargo;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anstyle::Style;
use capsule_api::{Cancel, Error, nearest};
use capsule_manifest::{Loaded, Model, ToolFile};
use serde_json::json;

use self::cargo::Cargo;
use super::{doctor, on_runtime};
use crate::{
    Choice, Failure, Surroundings,
    args::Build,
    assemble,
    failure::{self, codes},
    signals::{Signal, Signals},
    sources,
    view::{self, plain},
};

/// A part of the capsule that has sources.
struct Part {
    /// The tool's name; `None` for the script.
    tool: Option<String>,
    /// The directory of the sources.
    dir: PathBuf,
}

pub(crate) fn build(args: &Build) -> Result<ExitCode, Failure> {
    let choice = Choice::of(&args.path);
    // What it says of the model is not read.
    let loaded = choice.load_for(None, Model::Unread)?;
    let parts = parts(&loaded, &args.tool)?;
    if parts.is_empty() {
        let told = match args.json {
            true => writeln!(io::stdout().lock(), "{:#}", json!({ "tools": [] })),
            false => writeln!(
                io::stdout().lock(),
                "nothing to build: every tool of this capsule is a component already"
            ),
        };
        told.map_err(|error| failure::output(&error))?;
        return Ok(ExitCode::SUCCESS);
    }
    let surroundings = Surroundings::process();
    if let Some(signal) = on_runtime(all(&parts, args, &surroundings)).and_then(|built| built)? {
        return Ok(ExitCode::from(signal.exit_code()));
    }
    let equipped = assemble::equip_part(&choice, |tool| parts.iter().any(|part| part.tool.as_deref() == tool))?;
    let written = match args.json {
        true => show_json(&equipped, &parts),
        false => show_text(&equipped, &parts),
    };
    assemble::put_away(equipped.toolbox);
    written.map_err(|error| failure::output(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// What has sources: all of it, or the tools of these names.
fn parts(loaded: &Loaded, names: &[String]) -> Result<Vec<Part>, Failure> {
    let manifest = &loaded.manifest;
    let of_source = |file: &ToolFile| match file {
        ToolFile::Component { path, .. } => Some(loaded.path(path)).filter(|path| path.is_dir()),
        ToolFile::Skill(_) => None,
    };
    for name in names {
        let Some(entry) = manifest.tools.iter().find(|entry| entry.name == *name) else {
            let near = nearest(name, manifest.tools.iter().map(|entry| entry.name.as_str()));
            let near = near.map_or("`capsule tool list` shows its tools.".to_owned(), |near| {
                format!("Did you mean `{near}`?")
            });
            return Err(Failure::usage(format!("this capsule has no tool `{name}`"), near));
        };
        if of_source(&entry.file).is_none() {
            let message = format!("the tool `{name}` has no sources: its entry names a file, not a directory");
            let hint = "Only a tool whose `component` is the directory of its sources is built; this one is ready.";
            return Err(Failure::usage(message, hint));
        }
    }
    let wanted = |name: &String| names.is_empty() || names.contains(name);
    let tools = manifest.tools.iter().filter(|entry| wanted(&entry.name));
    let mut parts: Vec<_> = tools
        .filter_map(|entry| {
            let dir = of_source(&entry.file)?;
            let tool = Some(entry.name.clone());
            Some(Part { tool, dir })
        })
        .collect();
    let script = manifest.script.iter().filter(|_| names.is_empty());
    let script = script.map(|path| loaded.path(path)).filter(|path| path.is_dir());
    parts.extend(script.map(|dir| Part { tool: None, dir }));
    Ok(parts)
}

/// Builds each directory once, in the manifest's order, until one fails or a signal comes.
async fn all(parts: &[Part], args: &Build, surroundings: &Surroundings) -> Result<Option<Signal>, Failure> {
    let cancel = Cancel::new();
    let signals = Signals::cancel(cancel.clone())?;
    let cargo = Cargo {
        env: &*surroundings.env,
        clock: &*surroundings.clock,
        cancel: &cancel,
        unlocked: args.unlocked,
    };
    let mut done: Vec<&Path> = Vec::new();
    for Part { tool, dir } in parts {
        if done.contains(&dir.as_path()) {
            continue;
        }
        let name = tool.as_deref().unwrap_or("the script");
        // Without standard error there is nobody to tell; the build goes on.
        let _ = writeln!(io::stderr().lock(), "building {} in {}", plain(name), dir.display());
        let built = one(&cargo, dir).await;
        if let Some(signal) = signals.seen() {
            return Ok(Some(signal));
        }
        built?;
        done.push(dir);
    }
    Ok(None)
}

async fn one(cargo: &Cargo<'_>, dir: &Path) -> Result<(), Error> {
    if !dir.join("Cargo.toml").is_file() {
        return Err(not_cargo(dir));
    }
    cargo.check_compiler(dir).await?;
    let built = cargo.build(dir).await?;
    let (to, from) = (dir.to_owned(), built);
    let installed = tokio::task::spawn_blocking(move || sources::install(&to, &from.component, &from.files));
    let installed = installed.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
    installed.map(drop).map_err(|error| {
        let message = format!(
            "the component of {} could not be put in its place: {error}",
            dir.display()
        );
        Error::new(&codes::BUILD, message)
    })
}

/// Sources in a language whose tools this command does not call.
fn not_cargo(dir: &Path) -> Error {
    let message = format!(
        "{} has no Cargo.toml, and `capsule build` builds Cargo packages",
        dir.display()
    );
    let signs = [
        ("package.json", "JavaScript"),
        ("pyproject.toml", "Python"),
        ("requirements.txt", "Python"),
    ];
    let error = Error::new(&codes::BUILD_SOURCES, message);
    match signs.iter().find(|(file, _)| dir.join(file).is_file()) {
        Some((_, language)) => error.hint(format!(
            "Build a component of the {language} sources with that language's own tools, and let `component:` name the .wasm file."
        )),
        None => error,
    }
}

fn show_text(equipped: &assemble::Equipped, parts: &[Part]) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    for part in parts {
        let component = sources::component_of(&part.dir);
        let size = view::size(component.metadata()?.len());
        for tool in reports(equipped, part) {
            let (name, profile) = (plain(&tool.name), tool.profile.as_str());
            writeln!(out, "{bold}{name}{bold:#} {dim}[{profile}]{dim:#}")?;
            writeln!(out, "  {}, {size}", component.display())?;
            let imports = match tool.imports.is_empty() {
                true => "nothing".to_owned(),
                false => tool.imports.join(", "),
            };
            writeln!(out, "  imports {}", plain(&imports))?;
            doctor::words(tool)
                .iter()
                .try_for_each(|line| writeln!(out, "  {}", plain(line)))?;
        }
    }
    Ok(())
}

fn show_json(equipped: &assemble::Equipped, parts: &[Part]) -> io::Result<()> {
    let mut tools = Vec::new();
    for part in parts {
        let component = sources::component_of(&part.dir);
        let bytes = component.metadata()?.len();
        for report in reports(equipped, part) {
            let mut tool = doctor::tool(report);
            tool["component"] = json!(component);
            tool["bytes"] = json!(bytes);
            tools.push(tool);
        }
    }
    writeln!(io::stdout().lock(), "{:#}", json!({ "tools": tools }))
}

/// The reports on what the part's component became: one tool, or one for each of its functions.
fn reports<'a>(
    equipped: &'a assemble::Equipped,
    part: &'a Part,
) -> impl Iterator<Item = &'a capsule_tools::ToolReport> {
    let name = part.tool.as_deref().unwrap_or("script");
    let of_function = move |tool: &str| tool.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'));
    let taken = move |tool: &str| equipped.loaded.manifest.tools.iter().any(|entry| entry.name == tool);
    let all = equipped.toolbox.reports().iter();
    all.filter(move |report| report.name == name || (of_function(&report.name) && !taken(&report.name)))
}
