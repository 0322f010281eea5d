//! Binds a component to the host's interfaces, once.

use capsule_api::Error;
use wasmtime::{
    Engine,
    component::{Component, HasSelf, Linker, types},
};

use super::host::{Guest, ToolWorld, ToolWorldPre};
use crate::{codes, source::ToolSource};

const RUN: &str = "murmur:tool/run@0.1.0";

/// Interfaces that are linked, without version, and the versions that fit.
const OFFERED: &[(&str, &str)] = &[
    ("wasi:cli/", "0.2."),
    ("wasi:clocks/", "0.2."),
    ("wasi:filesystem/", "0.2."),
    ("wasi:io/", "0.2."),
    ("wasi:random/", "0.2."),
    ("wasi:sockets/", "0.2."),
    ("wasi:http/types", "0.2."),
    ("wasi:http/outgoing-handler", "0.2."),
    ("murmur:tool/run", "0.1.0"),
    ("murmur:stream/events", "0.1.0"),
    ("murmur:text/chunks", "0.1.0"),
    ("murmur:task/task", "0.1.0"),
    ("murmur:tool-registry/invoke", "0.1.0"),
];

/// A linker with everything that the host offers.
pub(super) fn linker(engine: &Engine) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    ToolWorld::add_to_linker::<_, HasSelf<_>>(&mut linker, |guest| guest)?;
    Ok(linker)
}

/// Binds the component of this tool.
pub(super) fn bind(
    linker: &Linker<Guest>,
    source: &ToolSource,
    component: &Component,
) -> Result<ToolWorldPre<Guest>, Error> {
    let engine = component.engine();
    let kind = component.component_type();
    let imports: Vec<&str> = kind.imports(engine).map(|(name, _)| name).collect();
    let unmet: Vec<String> = imports.iter().filter_map(|name| unmet(name)).collect();
    if !unmet.is_empty() {
        let what = format!("it imports what this host does not offer: {}", unmet.join("; "));
        return Err(source.error(&codes::IMPORTS, what));
    }
    if kind.get_export(engine, RUN).is_none() {
        return Err(no_run(source, engine, &kind));
    }
    let pre = linker
        .instantiate_pre(component)
        .map_err(|cause| refused(source, &cause))?;
    ToolWorldPre::new(pre).map_err(|cause| {
        let what = format!("its export `{RUN}` has another shape: {}", cause.root_cause());
        source.error(&codes::EXPORT, what)
    })
}

/// Says what would meet this import, unless it is met.
fn unmet(import: &str) -> Option<String> {
    let (name, version) = import.split_once('@').unwrap_or((import, ""));
    let offered = OFFERED.iter().find(|(known, _)| {
        if known.ends_with('/') {
            name.starts_with(known)
        } else {
            name == *known
        }
    });
    match offered {
        Some((_, fits)) if version.starts_with(fits) => None,
        Some((_, "0.2.")) => Some(format!("`{import}` (WASI 0.2 would meet it)")),
        Some((known, fits)) => Some(format!("`{import}` (`{known}@{fits}` would meet it)")),
        None => Some(format!("`{import}` (nothing here would meet it)")),
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

fn no_run(source: &ToolSource, engine: &Engine, kind: &types::Component) -> Error {
    let exports: Vec<String> = kind.exports(engine).map(|(name, _)| format!("`{name}`")).collect();
    let what = if exports.is_empty() {
        format!("it does not export `{RUN}`, nor anything else")
    } else {
        format!("it does not export `{RUN}`; it exports {}", exports.join(", "))
    };
    source.error(&codes::EXPORT, what)
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
}
