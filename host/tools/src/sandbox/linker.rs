//! Binds a component to the host's interfaces, once.

use capsule_api::Error;
use wasmtime::{
    Engine,
    component::{Component, HasSelf, InstancePre, Linker},
};

use super::{
    config,
    exports::RUN,
    host::{Guest, ToolWorld, ToolWorldPre},
};
use crate::{codes, source::ToolSource};

/// Interfaces that are linked, without version, and the versions that fit: within these, a component may be built against any, and the
/// linker binds it to the nearest. Another version of an interface is another row, and is linked beside.
const OFFERED: &[(&str, &str)] = &[
    ("wasi:cli/", "0.2."),
    ("wasi:clocks/", "0.2."),
    ("wasi:filesystem/", "0.2."),
    ("wasi:io/", "0.2."),
    ("wasi:random/", "0.2."),
    ("wasi:sockets/", "0.2."),
    ("wasi:http/types", "0.2."),
    ("wasi:http/outgoing-handler", "0.2."),
    ("wasi:config/store", "0.2.0-rc.1"),
    ("murmur:tool/run", "0.1."),
    ("murmur:stream/events", "0.1."),
    ("murmur:text/chunks", "0.1."),
    ("murmur:task/task", "0.1."),
    ("murmur:tool-registry/invoke", "0.1."),
];

/// A linker with everything that the host offers.
pub(super) fn linker(engine: &Engine) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    ToolWorld::add_to_linker::<_, HasSelf<_>>(&mut linker, |guest| guest)?;
    config::add_to_linker::<_, HasSelf<_>>(&mut linker, |guest| guest)?;
    Ok(linker)
}

/// Binds the imports of this tool's component.
pub(super) fn bind(
    linker: &Linker<Guest>,
    source: &ToolSource,
    component: &Component,
) -> Result<InstancePre<Guest>, Error> {
    let kind = component.component_type();
    let imports = kind.imports(component.engine());
    let unmet: Vec<String> = imports.filter_map(|(name, _)| unmet(name)).collect();
    if !unmet.is_empty() {
        let what = format!("it imports what this host does not offer: {}", unmet.join("; "));
        return Err(source.error(&codes::IMPORTS, what));
    }
    linker
        .instantiate_pre(component)
        .map_err(|cause| refused(source, &cause))
}

/// The names of what a component imports.
pub(super) fn imports(component: &Component) -> Vec<String> {
    let kind = component.component_type();
    let imports = kind.imports(component.engine());
    imports.map(|(name, _)| name.to_owned()).collect()
}

/// A bound component as one of the tool interface.
pub(super) fn as_tool(source: &ToolSource, pre: InstancePre<Guest>) -> Result<ToolWorldPre<Guest>, Error> {
    ToolWorldPre::new(pre).map_err(|cause| {
        let what = format!("its export `{RUN}` has another shape: {}", cause.root_cause());
        source.error(&codes::EXPORT, what)
    })
}

/// Says what would meet this import, unless it is met.
fn unmet(import: &str) -> Option<String> {
    let (name, version) = import.split_once('@').unwrap_or((import, ""));
    let offered = OFFERED.iter().filter(|(known, _)| {
        if known.ends_with('/') {
            name.starts_with(known)
        } else {
            name == *known
        }
    });
    let mut would_meet = Vec::new();
    for (known, fits) in offered {
        if version.starts_with(fits) {
            return None;
        }
        would_meet.push(match *fits {
            "0.2." => "WASI 0.2".to_owned(),
            whole if whole.contains('-') => format!("`{known}@{whole}`"),
            fits => format!("`{known}@{fits}0`"),
        });
    }
    match would_meet.is_empty() {
        true => Some(format!("`{import}` (nothing here would meet it)")),
        false => Some(format!("`{import}` ({} would meet it)", would_meet.join(" or "))),
    }
}

/// Every import has a known name, so what fails here is an interface of another shape.
fn refused(source: &ToolSource, cause: &wasmtime::Error) -> Error {
    let chain: Vec<String> = cause.chain().map(ToString::to_string).collect();
    source.error(
        &codes::IMPORTS,
        format!(
            "an import has another shape than this host offers: {}",
            chain.join(": ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_met_or_says_what_would_meet_it() {
        for met in [
            "wasi:cli/environment@0.2.6",
            "wasi:http/types@0.2.0",
            "murmur:task/task@0.1.0",
            "murmur:task/task@0.1.7",
        ] {
            assert_eq!(unmet(met), None, "{met}");
        }
        for (import, why) in [
            (
                "wasi:cli/environment@0.3.0",
                "`wasi:cli/environment@0.3.0` (WASI 0.2 would meet it)",
            ),
            (
                "murmur:task/task@0.2.0",
                "`murmur:task/task@0.2.0` (`murmur:task/task@0.1.0` would meet it)",
            ),
            (
                "acme:db/query@1.0.0",
                "`acme:db/query@1.0.0` (nothing here would meet it)",
            ),
            ("log", "`log` (nothing here would meet it)"),
        ] {
            assert_eq!(unmet(import).as_deref(), Some(why));
        }
    }

    /// A host that offers a later version of an interface beside the one that there is: each component gets what it imports.
    #[test]
    fn several_versions_of_an_interface_are_bound_side_by_side() {
        let engine = super::super::engine::on_demand().unwrap();
        let mut linker = linker(&engine).unwrap();
        let mut later = linker.instance("murmur:task/task@0.2.0").unwrap();
        later
            .func_wrap("request-input", |_, (prompt, _choices): (String, Vec<String>)| {
                Ok((prompt,))
            })
            .unwrap();
        let component = |version: &str, params: &str| {
            let wat = format!(
                r#"(component (import "murmur:task/task@{version}"
                     (instance (export "request-input" (func {params} (result string))))))"#
            );
            Component::new(&engine, wat::parse_str(wat).unwrap()).unwrap()
        };
        let (old, new) = (
            r#"(param "prompt" string)"#,
            r#"(param "prompt" string) (param "choices" (list string))"#,
        );
        for (version, params) in [("0.1.0", old), ("0.1.9", old), ("0.2.0", new), ("0.2.4", new)] {
            linker.instantiate_pre(&component(version, params)).unwrap();
        }
        for (version, params) in [("0.1.0", new), ("0.2.0", old), ("0.3.0", new)] {
            assert!(
                linker.instantiate_pre(&component(version, params)).is_err(),
                "{version}"
            );
        }
    }
}
