//! From files to tools that can be called: read, check, compile or take from the cache, bind.

use std::{
    fs,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use capsule_api::{Annotations, ByteSize, Error};
use serde_json::Value;
use wasmtime::component::{Component, InstancePre};

use super::{
    Bench, Equipment, Sandbox,
    cache::{Cache, Key},
    exports::{self, Exported, Kind as Exports},
    host::Guest,
    linker,
    program::{Command, Function, Program, Script},
};
use crate::{
    Limits, Warning, codes,
    report::ToolReport,
    schema::{InputSchema, input_schema},
    section::{Binary, Kind, NotWasm, Section},
    skill,
    source::{FileKind, ToolSource},
    values::arguments_schema,
};

/// The largest component that is read; the largest known (a Python runtime) has 18 MB.
const LARGEST_COMPONENT: u64 = 256 << 20;
/// Bytes in a page of WebAssembly.
const PAGE: u64 = 64 << 10;

const OUTSIDE_POOL: &str =
    "it needs more than a place in the pool has: each call takes its memory from the system, which makes it slower";

/// A tool that is ready, before it gets its alias.
pub(crate) struct Prepared {
    /// The declared name.
    pub(crate) name: String,
    /// Where it comes from, to tell two of one name apart.
    pub(crate) origin: String,
    pub(crate) description: String,
    pub(crate) annotations: Annotations,
    pub(crate) schema: InputSchema,
    pub(crate) equipment: Equipment,
    /// Interfaces that the component imports.
    pub(crate) imports: Vec<String>,
    /// Whether there is a pool and the component does not fit it.
    outside_pool: bool,
    pub(crate) made: Made,
}

impl Prepared {
    /// What it may do.
    pub(crate) fn report(&self) -> ToolReport {
        let Equipment { grants, config } = &self.equipment;
        match self.made {
            Made::Text(_) => ToolReport::of_text(&self.name, grants),
            Made::Program(_) => {
                let mut report = ToolReport::of_component(&self.name, self.imports.clone(), grants, !config.is_empty());
                report.notes.extend(self.outside_pool.then(|| OUTSIDE_POOL.to_owned()));
                report
            }
        }
    }
}

/// What a tool is made of.
pub(crate) enum Made {
    Program(Program),
    Text(Arc<str>),
}

/// Prepares the tools of every source, several at once; in the order of `sources`, each with its own error.
pub(crate) fn prepare_all(
    sandbox: &Sandbox,
    sources: &[ToolSource],
    cache_dir: Option<&Path>,
    warnings: &mut Vec<Warning>,
) -> Vec<Result<Vec<Prepared>, Vec<Error>>> {
    let said = Mutex::new(Vec::new());
    let say = |message: String| {
        let warning = Warning::new(
            codes::CACHE_UNUSED,
            format!("the compile cache was not used: {message}"),
        );
        said.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    };
    let cache = cache_dir.and_then(|dir| Cache::open(dir).map_err(say).ok());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(source) = sources.get(at) else {
                return done;
            };
            let prepared = equipment(sandbox, source).and_then(|equipment| {
                let prepared = prepare(sandbox, source, &equipment, cache.as_ref(), &say);
                prepared.map_err(|error| vec![error])
            });
            done.push((at, prepared));
        }
    };
    let threads = thread::available_parallelism().map_or(1, Into::into).min(sources.len());
    let mut all = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended = running.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Vec<_>>()
    });
    all.sort_by_key(|(at, _)| *at);
    warnings.extend(said.into_inner().unwrap_or_else(PoisonError::into_inner));
    all.into_iter().map(|(_, prepared)| prepared).collect()
}

/// What the tools of this entry are given: all that the capsule is granted, or its own part of it.
fn equipment(sandbox: &Sandbox, source: &ToolSource) -> Result<Equipment, Vec<Error>> {
    let grants = match &source.capabilities {
        None => Arc::clone(&sandbox.grants),
        Some(own) => Arc::new(own.of(&sandbox.grants).map_err(|wrong| {
            let error = |what: String| source.error(&codes::GRANT_WIDER, what);
            wrong.into_iter().map(error).collect::<Vec<_>>()
        })?),
    };
    Ok(Equipment {
        grants,
        config: Arc::new(source.config.clone()),
    })
}

fn prepare(
    sandbox: &Sandbox,
    source: &ToolSource,
    equipment: &Equipment,
    cache: Option<&Cache>,
    say: &(dyn Fn(String) + Sync),
) -> Result<Vec<Prepared>, Error> {
    if source.kind == FileKind::Skill {
        return prepare_skill(source, equipment).map(|skill| vec![skill]);
    }
    let bytes = read(source)?;
    let section = {
        let binary = Binary::parse(&bytes).map_err(|why| not_wasm(source, why))?;
        if binary.kind == Kind::Module {
            return Err(source.error(&codes::NOT_A_COMPONENT, "it is a core module, not a component"));
        }
        Section::of(&binary)
            .map_err(|why| source.error(&codes::SECTION, why))?
            .unwrap_or_default()
    };
    let declared = source.input_schema.as_ref().or(section.input_schema.as_ref());
    let schema = schema_of(source, declared)?;
    let (component, bench) = component(sandbox, source, &bytes, cache, say)?;
    fits(source, &equipment.grants.limits, &component)?;
    let pre = linker::bind(&bench.linker, source, &component)?;
    let entry = Entry {
        source,
        section,
        equipment,
        imports: linker::imports(&component),
        outside_pool: sandbox.pooled.is_some() && std::ptr::eq(bench, &sandbox.on_demand),
        pre,
    };
    let kind = exports::kind(source, &component)?;
    let fits = match source.kind {
        FileKind::Script => matches!(kind, Exports::Script(_)),
        FileKind::Driver => matches!(kind, Exports::Tool),
        _ => !matches!(kind, Exports::Script(_)),
    };
    if !fits {
        let what = match source.kind {
            FileKind::Script => "it does not export `murmur:capsule/run@0.1.0`, as a script does",
            FileKind::Driver => "it does not export `murmur:tool/run@0.1.0`, as a driver does",
            _ => "it is a script: it runs as a whole capsule, named by the manifest's `script`, and not as a tool",
        };
        return Err(source.error(&codes::EXPORT, what));
    }
    match kind {
        Exports::Script(run) => {
            let pre = entry.pre.clone();
            Ok(vec![entry.only(schema, Program::Script(Script { pre, run }))])
        }
        Exports::Tool => {
            let program = Program::Tool(linker::as_tool(source, entry.pre.clone())?);
            Ok(vec![entry.only(schema, program)])
        }
        Exports::Command(run) => {
            let (pre, input) = (entry.pre.clone(), source.input);
            Ok(vec![entry.only(schema, Program::Command(Command { pre, run, input }))])
        }
        Exports::Functions(functions) => entry.functions(functions),
    }
}

fn prepare_skill(source: &ToolSource, equipment: &Equipment) -> Result<Prepared, Error> {
    let text = skill::read(source)?;
    Ok(Prepared {
        name: source.name.clone(),
        origin: source.component.display().to_string(),
        description: source.description.clone().unwrap_or_else(|| skill::description(&text)),
        annotations: source.annotations.unwrap_or(Annotations {
            read_only: true,
            exclusive: false,
        }),
        schema: schema_of(source, source.input_schema.as_ref())?,
        equipment: equipment.clone(),
        imports: Vec::new(),
        outside_pool: false,
        made: Made::Text(text),
    })
}

fn schema_of(source: &ToolSource, schema: Option<&Value>) -> Result<InputSchema, Error> {
    input_schema(schema).map_err(|why| source.error(&codes::SCHEMA, why))
}

/// A component with what was said about it.
struct Entry<'a> {
    source: &'a ToolSource,
    section: Section,
    equipment: &'a Equipment,
    imports: Vec<String>,
    outside_pool: bool,
    pre: InstancePre<Guest>,
}

impl Entry<'_> {
    fn described(&self) -> String {
        let own = || self.section.description.clone();
        self.source.description.clone().or_else(own).unwrap_or_default()
    }

    fn annotations(&self) -> Annotations {
        self.source.annotations.unwrap_or_else(|| self.section.annotations())
    }

    /// The one tool of a component.
    fn only(&self, schema: InputSchema, program: Program) -> Prepared {
        Prepared {
            name: self.source.name.clone(),
            origin: self.source.component.display().to_string(),
            description: self.described(),
            annotations: self.annotations(),
            schema,
            equipment: self.equipment.clone(),
            imports: self.imports.clone(),
            outside_pool: self.outside_pool,
            made: Made::Program(program),
        }
    }

    /// A tool for each function.
    fn functions(&self, functions: Vec<Exported>) -> Result<Vec<Prepared>, Error> {
        let several = functions.len() > 1;
        if several && self.source.input_schema.is_some() {
            let names: Vec<String> = functions.iter().map(Exported::path).collect();
            let what = format!(
                "the entry gives one input schema for several functions: {}",
                names.join(", ")
            );
            return Err(self.source.error(&codes::SCHEMA, what));
        }
        functions
            .into_iter()
            .map(|function| self.function(function, several))
            .collect()
    }

    fn function(&self, function: Exported, several: bool) -> Result<Prepared, Error> {
        let derived = arguments_schema(&function.signature);
        let own = self.source.input_schema.as_ref().or(self.section.input_schema.as_ref());
        let schema = schema_of(self.source, Some(own.filter(|_| !several).unwrap_or(&derived)))?;
        let path = function.path();
        let program = Program::Function(Function {
            pre: self.pre.clone(),
            export: function.index,
            signature: Arc::new(function.signature),
        });
        let only = self.only(schema, program);
        if !several {
            return Ok(only);
        }
        Ok(Prepared {
            name: format!("{}_{}", self.source.name, function.name),
            origin: format!("{}, function `{path}`", only.origin),
            description: format!("{} Function `{path}`.", only.description)
                .trim_start()
                .to_owned(),
            ..only
        })
    }
}

fn read(source: &ToolSource) -> Result<Vec<u8>, Error> {
    let failed = |what: String| source.error(&codes::FILE, what);
    // Asked first: opening a FIFO would wait for its writer.
    let unreadable = |cause: std::io::Error| source.unreadable("the component", &cause);
    let found = fs::metadata(&source.component).map_err(unreadable)?;
    if !found.is_file() {
        return Err(failed("the component is not a file".into()));
    }
    if found.len() > LARGEST_COMPONENT {
        return Err(failed(format!(
            "the component has {} bytes; at most {LARGEST_COMPONENT} are read",
            found.len()
        )));
    }
    fs::read(&source.component).map_err(unreadable)
}

fn not_wasm(source: &ToolSource, why: NotWasm) -> Error {
    let what = match why {
        NotWasm::Empty => "the file is empty",
        NotWasm::OtherFormat => "it is not WebAssembly (text or another format)",
        NotWasm::UnknownVersion => "it is WebAssembly of a version that this host does not know",
        NotWasm::Truncated => "the file is cut off in the middle",
    };
    source.error(&codes::NOT_A_COMPONENT, what)
}

/// The compiled component, with the engine that it fits: the pool's if it can be.
fn component<'a>(
    sandbox: &'a Sandbox,
    source: &ToolSource,
    bytes: &[u8],
    cache: Option<&Cache>,
    say: &(dyn Fn(String) + Sync),
) -> Result<(Component, &'a Bench), Error> {
    // Both engines run the same code, so it has one place in the cache.
    let cache = cache.map(|cache| (cache, Key::new(&sandbox.on_demand.engine, bytes)));
    if let Some((cache, key)) = &cache {
        match cached(sandbox, cache, key) {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            Err(why) => say(why),
        }
    }
    let (component, bench) = compiled(sandbox, source, bytes)?;
    if let Some((cache, key)) = &cache {
        cache.store(key, &component).unwrap_or_else(say);
    }
    Ok((component, bench))
}

fn cached<'a>(sandbox: &'a Sandbox, cache: &Cache, key: &Key) -> Result<Option<(Component, &'a Bench)>, String> {
    let mut benches = sandbox.benches();
    let mut load = |bench: &'a Bench| Ok(cache.load(&bench.engine, key)?.map(|component| (component, bench)));
    let first = benches.next().map_or(Ok(None), &mut load);
    match (first, benches.next()) {
        // Either it does not fit the pool, or the file is no good; then the other engine says so too.
        (Err(_), Some(bench)) => load(bench),
        (first, _) => first,
    }
}

fn compiled<'a>(sandbox: &'a Sandbox, source: &ToolSource, bytes: &[u8]) -> Result<(Component, &'a Bench), Error> {
    let failed =
        |cause: &wasmtime::Error| source.error(&codes::COMPILE, format!("it does not compile: {}", chain(cause)));
    let on_demand = &sandbox.on_demand;
    if let Some(pooled) = &sandbox.pooled {
        match Component::from_binary(&pooled.engine, bytes) {
            Ok(component) => return Ok((component, pooled)),
            Err(cause) if exceeds_the_pool(&cause) => {}
            Err(cause) => return Err(failed(&cause)),
        }
    }
    let component = Component::from_binary(&on_demand.engine, bytes).map_err(|cause| failed(&cause))?;
    Ok((component, on_demand))
}

/// The engine checks a component against the pool while it makes it; what it says then speaks of a limit.
fn exceeds_the_pool(cause: &wasmtime::Error) -> bool {
    let what = chain(cause);
    ["exceeds the limit", "exceeds the configured", "per-instance limit"]
        .iter()
        .any(|sign| what.contains(sign))
}

fn chain(cause: &wasmtime::Error) -> String {
    cause.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Refuses a component that no call could even begin with.
fn fits(source: &ToolSource, limits: &Limits, component: &Component) -> Result<(), Error> {
    let Some(needs) = component.resources_required() else {
        return Ok(());
    };
    let memory = needs.max_initial_memory_size.unwrap_or(0).saturating_mul(PAGE);
    let limit = limits.memory;
    if memory > limit {
        let (memory, limit) = (ByteSize(memory), ByteSize(limit));
        let what = format!("it begins with {memory} of memory; a call may have {limit} (`limits.memory`)");
        return Err(source.error(&codes::POOL, what));
    }
    if needs.max_initial_table_size.unwrap_or(0) > limits.table_elements.into() {
        let most = limits.table_elements;
        let what = format!("it begins with a table of more than {most} elements (`limits.table_elements`)");
        return Err(source.error(&codes::POOL, what));
    }
    Ok(())
}
