//! The tools of a capsule, from loading to shutdown.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use capsule_api::{Catalogue, Clock, Error, Secrets, SystemClock, Tool, ToolDispatch};
use capsule_net::ClientOptions;
use tokio::sync::RwLock;

use crate::{
    catalogue,
    dispatch::{Bindings, Dispatch, Entry, Stack, Tools},
    grants::{Checked, Grants},
    report::ToolReport,
    sandbox::{Sandbox, prepare_all},
    source::ToolSource,
};

/// Something that was survived while tools were loaded, for a person to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Stable, kebab-case: one of the `&str` constants of [`crate::codes`].
    pub code: &'static str,
    /// What happened.
    pub message: String,
}

impl Warning {
    pub(crate) fn new(code: &'static str, message: String) -> Self {
        Self { code, message }
    }
}

/// Looks up an environment variable.
pub type EnvLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Where loading gets what is not in the manifest.
#[derive(Clone)]
pub struct Options {
    /// Where compiled components are kept; made with mode 0700 where it is missing. `None` compiles each time.
    pub cache_dir: Option<PathBuf>,
    /// Time, for deadlines and durations.
    pub clock: Arc<dyn Clock>,
    /// Looks up an environment variable that is granted.
    pub env: EnvLookup,
    /// Where the values of granted secrets come from, and who keeps them out of the trace. Without it, a granted secret is an error.
    pub secrets: Option<Arc<dyn Secrets>>,
    /// How tools reach the network that they are granted.
    pub net: ClientOptions,
}

impl Default for Options {
    /// No cache, the real clock, the variables of this process.
    fn default() -> Self {
        Self {
            cache_dir: None,
            clock: Arc::new(SystemClock),
            env: Arc::new(|name| std::env::var(name).ok()),
            secrets: None,
            net: ClientOptions::default(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("cache_dir", &self.cache_dir)
            .finish_non_exhaustive()
    }
}

/// The tools of a capsule, loaded. It owns the sandbox: engine, pool, threads.
pub struct Toolbox {
    tools: Arc<Tools>,
    sandbox: Option<Arc<Sandbox>>,
    script: Option<Arc<dyn Tool>>,
    warnings: Vec<Warning>,
    reports: Vec<ToolReport>,
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox")
            .field("catalogue", &self.tools.catalogue)
            .finish_non_exhaustive()
    }
}

impl Toolbox {
    /// Reads, checks, compiles and binds every tool, several at once. Blocks: components that are not in the cache take from
    /// milliseconds to seconds. Without tools, no sandbox is set up.
    ///
    /// # Errors
    /// Everything that is wrong, not only the first: an error for each bad grant, limit and name, and one for each tool that cannot be
    /// loaded, naming the tool and its file.
    pub fn load(sources: &[ToolSource], grants: &Grants, options: &Options) -> Result<Self, Vec<Error>> {
        let mut warnings = Vec::new();
        let mut errors = catalogue::names(sources);
        let Some(checked) = checked(grants, options, &mut warnings, &mut errors) else {
            return Err(errors);
        };
        if sources.is_empty() && errors.is_empty() {
            return Ok(Self {
                tools: Arc::new(tools(
                    Vec::new(),
                    Arc::clone(&options.clock),
                    grants.limits.registry_depth,
                )),
                sandbox: None,
                script: None,
                warnings,
                reports: Vec::new(),
            });
        }
        let sandbox = match Sandbox::new(checked, options, &mut warnings) {
            Ok(sandbox) => Arc::new(sandbox),
            Err(error) => {
                errors.push(error);
                return Err(errors);
            }
        };
        let mut prepared = Vec::new();
        for (source, tools) in sources.iter().zip(prepare_all(
            &sandbox,
            sources,
            options.cache_dir.as_deref(),
            &mut warnings,
        )) {
            match tools {
                Ok(tools) => prepared.extend(tools.into_iter().map(|tool| (source, tool))),
                Err(more) => errors.extend(more),
            }
        }
        let reports = prepared.iter().map(|(_, tool)| tool.report()).collect();
        let script = catalogue::take_script(&mut prepared, &sandbox);
        errors.extend(catalogue::duplicates(&prepared));
        if !errors.is_empty() {
            return Err(errors);
        }
        let entries = catalogue::entries(prepared, &sandbox, &mut warnings);
        Ok(Self {
            tools: Arc::new(tools(entries, Arc::clone(&options.clock), grants.limits.registry_depth)),
            sandbox: Some(sandbox),
            script,
            warnings,
            reports,
        })
    }

    /// What the model is offered, in the order of the sources.
    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.tools.catalogue
    }

    /// The program of a script capsule, if one of the sources is it. Its context's `tools` is a dispatch of this toolbox; no deadline of a
    /// call holds for it.
    pub fn script(&self) -> Option<Arc<dyn Tool>> {
        self.script.clone()
    }

    /// What each tool may do, and what its component asks for; in the order of the sources, the script among them.
    pub fn reports(&self) -> &[ToolReport] {
        &self.reports
    }

    /// What was survived while the tools were loaded.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The tools bound to one turn. Any number of dispatches share the sandbox, its pool and the order of exclusive calls.
    pub fn dispatch(&self, bindings: Bindings) -> Arc<dyn ToolDispatch> {
        Arc::new(Dispatch {
            tools: Arc::clone(&self.tools),
            bindings,
            stack: Stack::default(),
        })
    }

    /// Ends the sandbox: calls in flight end as cancelled, and so do later ones that would wait; its threads are waited for, but no longer than `grace` (one that is stuck in a
    /// hung file system cannot be ended). Blocks; not to be called on a thread of an async runtime.
    pub fn shut_down(&self, grace: Duration) {
        if let Some(sandbox) = &self.sandbox {
            sandbox.shut_down(grace);
        }
    }
}

/// The grants, checked against this machine; what is wrong is put to `errors`. `None` without usable limits: then there is no sandbox to check
/// the tools with.
fn checked(
    grants: &Grants,
    options: &Options,
    warnings: &mut Vec<Warning>,
    errors: &mut Vec<Error>,
) -> Option<Checked> {
    let checked = match grants.check(&*options.env, options.secrets.as_deref(), warnings) {
        Ok(checked) => checked,
        Err(more) => {
            errors.extend(more);
            if !grants.limits.check().is_empty() {
                return None;
            }
            Checked::nothing(grants.limits)
        }
    };
    errors.extend(options.cache_dir.iter().flat_map(|cache| checked.over_the_cache(cache)));
    Some(checked)
}

pub(crate) fn tools(entries: Vec<Entry>, clock: Arc<dyn Clock>, deepest: u32) -> Tools {
    let specs = entries.iter().map(|entry| Tool::spec(&*entry.tool).clone());
    Tools {
        catalogue: Arc::new(Catalogue { tools: specs.collect() }),
        entries,
        gate: RwLock::new(()),
        clock,
        deepest,
    }
}
