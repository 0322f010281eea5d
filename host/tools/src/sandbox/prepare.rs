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

use capsule_api::{Error, ToolSpec};
use wasmtime::component::Component;

use super::{
    Sandbox,
    cache::{Cache, Key},
    call::ComponentTool,
    linker,
};
use crate::{
    Warning, codes,
    schema::{InputSchema, input_schema},
    section::{Binary, Kind, NotWasm, Section},
    source::ToolSource,
};

/// The largest component that is read; the largest known (a Python runtime) has 18 MB.
const LARGEST_COMPONENT: u64 = 256 << 20;

/// A tool that is ready, and the schema that its arguments are held against.
pub(crate) struct Prepared {
    pub(crate) tool: ComponentTool,
    pub(crate) schema: InputSchema,
}

/// Prepares every tool, several at once; in the order of `sources`, each with its own error.
pub(crate) fn prepare_all(
    sandbox: &Arc<Sandbox>,
    sources: &[ToolSource],
    cache_dir: Option<&Path>,
    warnings: &mut Vec<Warning>,
) -> Vec<Result<Prepared, Error>> {
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
            done.push((at, prepare(sandbox, source, cache.as_ref(), &say)));
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

fn prepare(
    sandbox: &Arc<Sandbox>,
    source: &ToolSource,
    cache: Option<&Cache>,
    say: &(dyn Fn(String) + Sync),
) -> Result<Prepared, Error> {
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
    let schema = source.input_schema.as_ref().or(section.input_schema.as_ref());
    let schema = input_schema(schema).map_err(|why| source.error(&codes::SCHEMA, why))?;
    let component = component(sandbox, source, &bytes, cache, say)?;
    let pre = linker::bind(&sandbox.linker, source, &component)?;
    let spec = ToolSpec {
        name: source.name.clone(),
        alias: source.name.clone(),
        description: source
            .description
            .clone()
            .or_else(|| section.description.clone())
            .unwrap_or_default(),
        input_schema: schema.shown.clone(),
        annotations: source.annotations.unwrap_or_else(|| section.annotations()),
        longest: sandbox.grants.limits.deadline,
    };
    let tool = ComponentTool::new(spec, pre, Arc::clone(sandbox));
    Ok(Prepared { tool, schema })
}

fn read(source: &ToolSource) -> Result<Vec<u8>, Error> {
    let failed = |what: String| source.error(&codes::FILE, what);
    // Asked first: opening a FIFO would wait for its writer.
    let found =
        fs::metadata(&source.component).map_err(|cause| failed(format!("the component cannot be read: {cause}")))?;
    if !found.is_file() {
        return Err(failed("the component is not a file".into()));
    }
    if found.len() > LARGEST_COMPONENT {
        return Err(failed(format!(
            "the component has {} bytes; at most {LARGEST_COMPONENT} are read",
            found.len()
        )));
    }
    fs::read(&source.component).map_err(|cause| failed(format!("the component cannot be read: {cause}")))
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

fn component(
    sandbox: &Sandbox,
    source: &ToolSource,
    bytes: &[u8],
    cache: Option<&Cache>,
    say: &(dyn Fn(String) + Sync),
) -> Result<Component, Error> {
    let engine = &sandbox.engine;
    let cache = cache.map(|cache| (cache, Key::new(engine, bytes)));
    if let Some((cache, key)) = &cache {
        match cache.load(engine, key) {
            Ok(Some(component)) => return Ok(component),
            Ok(None) => {}
            Err(why) => say(why),
        }
    }
    let component = Component::from_binary(engine, bytes).map_err(|cause| not_compiled(source, &cause))?;
    if let Some((cache, key)) = &cache {
        cache.store(key, &component).unwrap_or_else(say);
    }
    Ok(component)
}

/// The engine checks a component against the pool while it makes it; what it says then speaks of a limit.
fn not_compiled(source: &ToolSource, cause: &wasmtime::Error) -> Error {
    let chain: Vec<String> = cause.chain().map(ToString::to_string).collect();
    let what = chain.join(": ");
    let too_large = what.contains("exceeds the limit")
        || what.contains("exceeds the configured")
        || what.contains("per-instance limit");
    if too_large {
        return source.error(&codes::POOL, format!("it does not fit a place in the pool: {what}"));
    }
    source.error(&codes::COMPILE, format!("it does not compile: {what}"))
}
