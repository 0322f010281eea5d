//! From prepared tools to the catalogue: names, aliases, descriptions, and the warnings about them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use capsule_api::{Error, Tool, ToolSpec};

use crate::{
    Warning,
    alias::aliases,
    codes,
    dispatch::Entry,
    sandbox::{ComponentTool, Made, Prepared, Sandbox},
    skill::Skill,
    source::{FileKind, ToolSource},
};

/// The longest description, in bytes: the model reads it on every turn.
const LONGEST_DESCRIPTION: usize = 4096;

/// What is wrong with the names of the entries.
pub(crate) fn names(sources: &[ToolSource]) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut seen = BTreeMap::new();
    for source in sources.iter().filter(|source| source.kind != FileKind::Script) {
        if !source.has_usable_name() {
            errors.push(source.error(&codes::NAME, "the name cannot be used"));
        }
        if let Some(first) = seen.insert(&source.name, &source.component) {
            let what = format!("another tool has this name ({})", first.display());
            errors.push(source.error(&codes::DUPLICATE, what));
        }
    }
    errors
}

/// Names that several tools have, though their entries differ: those of a component's functions are made of two parts.
pub(crate) fn duplicates(prepared: &[(&ToolSource, Prepared)]) -> Vec<Error> {
    let mut first: BTreeMap<&str, &(&ToolSource, Prepared)> = BTreeMap::new();
    let mut errors = Vec::new();
    for pair in prepared {
        let (source, tool) = pair;
        let Some((before, other)) = first.get(tool.name.as_str()).copied() else {
            first.insert(&tool.name, pair);
            continue;
        };
        // Entries of one name have been told already.
        if tool.name != source.name || other.name != before.name {
            let what = format!(
                "two tools are called `{}`: {} and {}",
                tool.name, other.origin, tool.origin
            );
            errors.push(source.error(&codes::DUPLICATE, what));
        }
    }
    errors
}

/// Takes the script out of what was prepared.
pub(crate) fn take_script(
    prepared: &mut Vec<(&ToolSource, Prepared)>,
    sandbox: &Arc<Sandbox>,
) -> Option<Arc<dyn Tool>> {
    let at = prepared
        .iter()
        .position(|(source, _)| source.kind == FileKind::Script)?;
    let (_, script) = prepared.remove(at);
    let Made::Program(program) = script.made else {
        return None;
    };
    let spec = ToolSpec {
        alias: script.name.clone(),
        name: script.name,
        description: script.description,
        input_schema: script.schema.shown,
        annotations: script.annotations,
        longest: Duration::MAX,
        largest: script.equipment.grants.limits.output,
    };
    Some(Arc::new(ComponentTool::new(
        spec,
        program,
        script.equipment,
        Arc::clone(sandbox),
    )))
}

/// The tools, with their aliases.
pub(crate) fn entries(
    prepared: Vec<(&ToolSource, Prepared)>,
    sandbox: &Arc<Sandbox>,
    warnings: &mut Vec<Warning>,
) -> Vec<Entry> {
    let names: Vec<&str> = prepared.iter().map(|(_, tool)| tool.name.as_str()).collect();
    let aliases = aliases(&names);
    let mut told = BTreeSet::new();
    let entry = |((_, tool), alias): ((&ToolSource, Prepared), String)| {
        for cure in &tool.schema.cured {
            let message = format!("tool `{}`: its input schema {cure}", tool.name);
            if told.insert(message.clone()) {
                warnings.push(Warning::new(codes::SCHEMA_CURED, message));
            }
        }
        let spec = ToolSpec {
            description: description(&tool.name, tool.description, warnings),
            name: tool.name,
            alias,
            input_schema: tool.schema.shown,
            annotations: tool.annotations,
            longest: tool.equipment.grants.limits.deadline,
            largest: tool.equipment.grants.limits.output,
        };
        let made: Arc<dyn Tool> = match tool.made {
            Made::Program(program) => Arc::new(ComponentTool::new(spec, program, tool.equipment, Arc::clone(sandbox))),
            Made::Text(text) => Arc::new(Skill::new(spec, text)),
        };
        Entry {
            tool: made,
            validator: tool.schema.validator,
        }
    };
    prepared.into_iter().zip(aliases).map(entry).collect()
}

fn description(name: &str, mut text: String, warnings: &mut Vec<Warning>) -> String {
    if text.len() > LONGEST_DESCRIPTION {
        let had = text.len();
        text.truncate(text.floor_char_boundary(LONGEST_DESCRIPTION));
        let message = format!(
            "tool `{name}`: its description has {had} bytes; the model is shown the first {LONGEST_DESCRIPTION}"
        );
        warnings.push(Warning::new(codes::DESCRIPTION_CUT, message));
    }
    text
}
