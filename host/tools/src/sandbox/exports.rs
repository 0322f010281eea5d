//! What a component offers to be called: its kind, and the functions of one that exports plain values.

use capsule_api::Error;
use wasmtime::{
    Engine,
    component::{
        Component, ComponentExportIndex,
        types::{self, ComponentFunc, ComponentItem},
    },
};

use crate::{codes, source::ToolSource, values::Signature};

/// The tool interface.
pub(super) const RUN: &str = "murmur:tool/run@0.1.0";
/// The interface of commands; any 0.2 has the same shape.
const COMMAND: &str = "wasi:cli/run@0.2.0";
/// The interface of scripts.
const SCRIPT: &str = "murmur:capsule/run@0.1.0";

/// What builders leave among the exports of a component: the function by which they made it ready before it was written to its file. Its
/// author did not write it, and no host is meant to call it. By interface, name and the names of the parameters.
const LEFT_BY_BUILDERS: [(Option<&str>, &str, &[&str]); 2] = [
    // componentize-py
    (Some("exports"), "init", &["app-name", "symbols", "stub-wasi"]),
    // componentize-qjs, the QuickJS backend of jco
    (None, "init", &["shim", "script", "entry-path", "disable-gc"]),
];

/// What a component is. The first that fits counts.
pub(super) enum Kind {
    Tool,
    Command(ComponentExportIndex),
    Script(ComponentExportIndex),
    Functions(Vec<Exported>),
}

/// A function that can be a tool.
pub(super) struct Exported {
    /// Its interface, where it is not exported by itself.
    pub(super) interface: Option<String>,
    pub(super) name: String,
    pub(super) index: ComponentExportIndex,
    pub(super) signature: Signature,
}

impl Exported {
    /// How the component calls it.
    pub(super) fn path(&self) -> String {
        path(self.interface.as_deref(), &self.name)
    }
}

fn path(interface: Option<&str>, name: &str) -> String {
    match interface {
        Some(interface) => format!("{interface}#{name}"),
        None => name.to_owned(),
    }
}

/// What this component is.
pub(super) fn kind(source: &ToolSource, component: &Component) -> Result<Kind, Error> {
    let engine = component.engine();
    let exports = component.component_type();
    if exports.get_export(engine, RUN).is_some() {
        return Ok(Kind::Tool);
    }
    let command = component.get_export_index(None, COMMAND);
    if let Some(run) = command.and_then(|run| component.get_export_index(Some(&run), "run")) {
        return Ok(Kind::Command(run));
    }
    let script = component.get_export_index(None, SCRIPT);
    if let Some(run) = script.and_then(|script| component.get_export_index(Some(&script), "run")) {
        return Ok(Kind::Script(run));
    }
    let functions = functions(source, component)?;
    if functions.is_empty() {
        return Err(nothing(source, engine, &exports));
    }
    Ok(Kind::Functions(functions))
}

/// Every exported function. One that cannot be a tool is an error, not left out in silence.
fn functions(source: &ToolSource, component: &Component) -> Result<Vec<Exported>, Error> {
    let engine = component.engine();
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    let mut take = |interface: Option<&str>, name: &str, function: &ComponentFunc| {
        if left_by_builder(interface, name, function) {
            return;
        }
        let parent = interface.and_then(|interface| component.get_export_index(None, interface));
        let index = component.get_export_index(parent.as_ref(), name);
        match (signature(name, function), index) {
            (Ok(signature), Some(index)) => found.push(Exported {
                interface: interface.map(str::to_owned),
                name: name.to_owned(),
                index,
                signature,
            }),
            (Err(why), _) => refused.push(format!("`{}`: {why}", path(interface, name))),
            (Ok(_), None) => {}
        }
    };
    for (name, item) in component.component_type().exports(engine) {
        match &item.ty {
            ComponentItem::ComponentFunc(function) => take(None, name, function),
            ComponentItem::ComponentInstance(instance) => {
                for (function, item) in instance.exports(engine) {
                    if let ComponentItem::ComponentFunc(kind) = &item.ty {
                        take(Some(name), function, kind);
                    }
                }
            }
            _ => {}
        }
    }
    if refused.is_empty() {
        return Ok(found);
    }
    let what = format!("these functions cannot be tools: {}", refused.join("; "));
    Err(source.error(&codes::FUNCTION, what))
}

fn left_by_builder(interface: Option<&str>, name: &str, function: &ComponentFunc) -> bool {
    LEFT_BY_BUILDERS.iter().any(|(its_interface, its_name, parameters)| {
        (*its_interface, *its_name) == (interface, name)
            && function.params().map(|(name, _)| name).eq(parameters.iter().copied())
    })
}

fn signature(name: &str, function: &ComponentFunc) -> Result<Signature, String> {
    // `[constructor]r`, `[method]r.f`, `[static]r.f`.
    if name.starts_with('[') {
        return Err("it belongs to a resource, which ends with the call".into());
    }
    Signature::of(function)
}

fn nothing(source: &ToolSource, engine: &Engine, exports: &types::Component) -> Error {
    let names: Vec<String> = exports.exports(engine).map(|(name, _)| format!("`{name}`")).collect();
    let what = if names.is_empty() {
        "it exports nothing".to_owned()
    } else {
        format!("it exports no function; it exports {}", names.join(", "))
    };
    source.error(&codes::EXPORT, what)
}
