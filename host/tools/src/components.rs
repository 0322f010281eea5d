//! The sandbox for drivers that are components: each in a sandbox of its own, with its endpoint for all that it may reach.

use std::{path::Path, sync::Arc};

use capsule_api::{
    Cancel, Component, ComponentLimits, ComponentSpec, Components, Credential, Error, NobodyThere, RunEvent, RunSink,
    ToolDispatch,
};

use crate::{
    Bindings, Limits, Options, codes,
    dispatch::{Dispatch, Stack},
    grants::{
        Checked, Gateway,
        network::{Pattern, Target},
    },
    sandbox::{DriverComponent, Made, Prepared, Sandbox, prepare_all},
    source::ToolSource,
    toolbox::tools,
};

const HTTP: &str = "wasi:http/outgoing-handler";
const ENV: &str = "wasi:cli/environment";

/// Loads drivers that are components. No sandbox is set up before one is loaded.
#[derive(Clone, Debug)]
pub struct SandboxComponents {
    options: Options,
}

impl SandboxComponents {
    /// With the same clock, compile cache and network as tools have. `env` and `secrets` of the options are not used: a driver brings its own.
    pub fn new(options: Options) -> Self {
        Self { options }
    }
}

impl Components for SandboxComponents {
    fn load(&self, spec: ComponentSpec) -> Result<Arc<dyn Component>, Error> {
        let source = ToolSource::driver(&spec.file);
        let grants = grants(&source, &spec)?;
        let mut warnings = Vec::new();
        let sandbox = Arc::new(Sandbox::new(grants, &self.options, &mut warnings)?);
        let cache = self.options.cache_dir.as_deref();
        let prepared = prepare_all(&sandbox, std::slice::from_ref(&source), cache, &mut warnings);
        let prepared = prepared.into_iter().next().unwrap_or_else(|| Ok(Vec::new()));
        let first = |errors: Vec<Error>| errors.into_iter().next();
        let missing = || source.error(&codes::EXPORT, "it holds no driver");
        let tools = prepared.map_err(|errors| first(errors).unwrap_or_else(missing))?;
        let Some(Prepared {
            equipment,
            imports,
            made: Made::Program(program),
            ..
        }) = tools.into_iter().next()
        else {
            return Err(missing());
        };
        let mut facts = facts(&spec.file, &imports, &equipment.grants);
        let survived = warnings
            .into_iter()
            .map(|warning| ("warning".to_owned(), warning.message));
        facts.extend(survived);
        let nothing = self.no_tools();
        Ok(Arc::new(DriverComponent::new(
            program, equipment, sandbox, facts, nothing,
        )))
    }
}

impl SandboxComponents {
    /// A driver calls no tools: `invoke` says that there are none.
    fn no_tools(&self) -> Arc<dyn ToolDispatch> {
        let bindings = Bindings {
            sink: Arc::new(Nobody),
            caller: Arc::new(NobodyThere),
            cancel: Cancel::new(),
        };
        Arc::new(Dispatch {
            tools: Arc::new(tools(Vec::new(), Arc::clone(&self.options.clock), 1)),
            bindings,
            stack: Stack::default(),
        })
    }
}

struct Nobody;

impl RunSink for Nobody {
    fn record(&self, _: RunEvent) {}
}

/// The endpoint, the key that goes there, and the limits; nothing else.
fn grants(source: &ToolSource, spec: &ComponentSpec) -> Result<Checked, Error> {
    let limits = limits(&spec.limits);
    if let Some(error) = limits.check().into_iter().next() {
        return Err(source.error(&codes::LIMITS, &*error.message));
    }
    let refused = |why: &str| {
        let what = format!("its endpoint cannot be granted: {why}");
        source
            .error(&codes::GRANT_NETWORK, what)
            .hint("Name an endpoint with `https`, or with `http` on this machine's loopback.")
    };
    let target = Target::of(&spec.endpoint).ok_or_else(|| refused("it is not a whole URL"))?;
    let host = Pattern::parse(&target.to_string()).map_err(|why| refused(&why))?;
    if !host.is_private() {
        return Err(refused("plain `http` is for this machine alone"));
    }
    let gateway = |credential: &Credential| Gateway {
        name: "api_key".to_owned(),
        header: credential.header.clone(),
        hosts: vec![host.clone()],
        yields: credential.yields,
        value: credential.value.clone(),
    };
    Ok(Checked {
        secrets: spec.credential.iter().map(gateway).collect(),
        network: vec![host],
        ..Checked::nothing(limits)
    })
}

fn limits(limits: &ComponentLimits) -> Limits {
    Limits {
        memory: limits.memory.0,
        deadline: limits.deadline,
        output: limits.output.0,
        http_body: limits.http_body.0,
        concurrent_calls: limits.concurrent_calls,
        // A driver calls no tools.
        registry_depth: 1,
        ..Limits::default()
    }
}

/// What it may do, for people.
fn facts(file: &Path, imports: &[String], grants: &Checked) -> Vec<(String, String)> {
    let uses = |what: &str| imports.iter().any(|import| import.starts_with(what));
    let mut may = match uses(HTTP) {
        true => grants.words(),
        false => vec![format!("reach no host: it does not import {HTTP}")],
    };
    if uses(ENV) {
        may.push("see the settings of its request as environment variables".to_owned());
    }
    vec![
        ("component".to_owned(), file.display().to_string()),
        ("may".to_owned(), may.join("; ")),
        ("limits".to_owned(), grants.limits_in_words()),
    ]
}
