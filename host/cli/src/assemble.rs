//! From a manifest to an agent that takes tasks: manifest, tools, transport.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use capsule_api::{
    Caller, Cancel, Catalogue, Clock, Error, HttpClient, Recorder, RunSink, Secrets, Services, SystemClock, Tool,
    ToolDispatch, Transport, TransportDescriptor,
};
use capsule_manifest::{Chosen, EnvSecrets, Loaded, Model, Options, Override};
use capsule_session::{Agent, CapsuleInfo, Places, Prompting, Toolkit};
use capsule_tools::{Bindings, SandboxComponents, ToolSource, Toolbox};

use crate::{
    Failure,
    args::Selection,
    catalog, grants, links,
    not_set_up::NotSetUp,
    rehearsal,
    script::{self, Script},
    select,
};

/// How long guests may take to end when the program does.
const SANDBOX_GRACE: Duration = Duration::from_secs(2);

/// What to run, and what of its manifest to change.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The capsule's directory or manifest.
    pub path: PathBuf,
    /// The transport in place of the manifest's.
    pub transport: Option<String>,
    /// The model in place of the manifest's.
    pub model: Option<String>,
    /// Other keys in place of the manifest's.
    pub overrides: Vec<Override>,
}

impl Choice {
    /// A capsule as its manifest has it.
    pub fn of(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            ..Self::default()
        }
    }

    pub(crate) fn with(path: &Path, selection: &Selection) -> Result<Self, Failure> {
        let mut overrides = selection
            .set
            .iter()
            .map(|set| Override::parse(set))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(driver) = &selection.driver {
            overrides.push(Override::of_flag("--driver", "driver", driver));
        }
        let (transport, model) = (selection.transport.clone(), selection.model.clone());
        Ok(Self {
            path: path.to_owned(),
            transport,
            model,
            overrides,
        })
    }

    pub(crate) fn load(&self) -> Result<Loaded, Failure> {
        self.load_for(None, Model::Whole)
    }

    /// Reads the manifest for a member of the family that it asks for, with no more of `inference` than is needed.
    pub(crate) fn load_for(&self, member: Option<&str>, held_to: Model) -> Result<Loaded, Failure> {
        let transports = catalog::schemas()?;
        if let Some(name) = &self.transport {
            catalog::check_name(&transports, name)?;
        }
        let mut options = Options::new(&transports, links::DEFAULT_TRANSPORT);
        options.transport = self.transport.as_deref();
        options.member = member;
        options.model = self.model.as_deref();
        options.overrides = &self.overrides;
        options.held_to = held_to;
        match capsule_manifest::load(&self.path, &options) {
            Ok(loaded) => Ok(loaded),
            Err(_) if rehearsal::is_tape(&self.path) => Err(rehearsal::no_capsule(&self.path)),
            Err(report) => Err(report.into()),
        }
    }
}

/// Looks up an environment variable.
pub type Environment = dyn Fn(&str) -> Option<OsString> + Send + Sync;

/// What a capsule gets of the machine. [`Surroundings::process`] is what the program uses; a host of its own, or a test, may bring others.
#[derive(Clone)]
pub struct Surroundings {
    /// Says where files go (as [`Places::of`] has it), and which proxy a driver that is a component has (as [`capsule_net::Proxy::of`] has it).
    /// Values of `${NAME}` are not read from here.
    pub env: Arc<Environment>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The way to providers.
    pub http: Arc<dyn HttpClient>,
}

impl Surroundings {
    /// The environment of this process, the system's clock, resolver and root certificates, and the proxy that the environment names.
    pub fn process() -> Self {
        let env: Arc<Environment> = Arc::new(|name| std::env::var_os(name));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Self {
            http: Arc::new(capsule_net::NetClient::with_options(clock.clone(), network(&*env))),
            env,
            clock,
        }
    }
}

/// The system's network, with the proxy that the environment names.
fn network(env: &Environment) -> capsule_net::ClientOptions {
    capsule_net::ClientOptions {
        proxy: capsule_net::Proxy::of(&|name| env(name)),
        ..capsule_net::ClientOptions::default()
    }
}

/// A capsule's tools, loaded, without a transport.
pub(crate) struct Equipped {
    pub(crate) loaded: Loaded,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) places: Places,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A capsule on its transport, ready to take tasks.
pub struct Assembled {
    /// Takes tasks.
    pub agent: Agent,
    /// The manifest.
    pub loaded: Loaded,
    /// Where its runs keep their files.
    pub places: Places,
    /// What was survived on the way here, as code and message.
    pub warnings: Vec<(&'static str, String)>,
    toolbox: Arc<Toolbox>,
}

/// Reads the manifest and loads the tools; what it says of the model is not read. Blocks.
pub(crate) fn equip(choice: &Choice) -> Result<Equipped, Failure> {
    equip_part(choice, |_| true)
}

/// The same with what it says of the model, which may be incomplete.
pub(crate) fn equip_to_look(choice: &Choice) -> Result<Equipped, Failure> {
    equip_in(choice.load_for(None, Model::Keys)?, &Surroundings::process(), |_| true)
}

/// As [`equip`], for a part of the tools: those of the manifest whose name is `wanted`, and the script where `None` is.
pub(crate) fn equip_part(choice: &Choice, wanted: impl Fn(Option<&str>) -> bool) -> Result<Equipped, Failure> {
    equip_in(choice.load_for(None, Model::Unread)?, &Surroundings::process(), wanted)
}

/// The variables of the capsule in this directory. One for the whole capsule: what is protected here is redacted everywhere.
pub(crate) fn secrets_of(base: &Path) -> Arc<dyn Secrets> {
    Arc::new(EnvSecrets::new(base))
}

fn equip_in(
    loaded: Loaded,
    surroundings: &Surroundings,
    wanted: impl Fn(Option<&str>) -> bool,
) -> Result<Equipped, Failure> {
    let places = Places::of(&loaded.manifest.name, &*surroundings.env);
    let clock = surroundings.clock.clone();
    let manifest = &loaded.manifest;
    let tools = manifest.tools.iter().enumerate();
    let tools = tools
        .filter(|(_, entry)| wanted(Some(&entry.name)))
        .map(|(index, entry)| {
            grants::source(&loaded, entry).map_err(|error| loaded.about(&format!("/tools/{index}/component"), error))
        });
    let script = manifest.script.iter().filter(|_| wanted(None));
    let script = script.map(|script| grants::script(&loaded, script).map_err(|error| loaded.about("/script", error)));
    let (mut sources, mut wrong): (Vec<ToolSource>, Vec<Error>) = Default::default();
    for source in tools.chain(script) {
        match source {
            Ok(source) => sources.push(source),
            Err(error) => wrong.push(error),
        }
    }
    let secrets = secrets_of(&loaded.base);
    let options = capsule_tools::Options {
        secrets: Some(secrets.clone()),
        cache_dir: Some(places.component_cache().to_owned()),
        clock: clock.clone(),
        ..capsule_tools::Options::default()
    };
    // The others are loaded all the same, so that everything that is wrong is said at once.
    let toolbox = match Toolbox::load(&sources, &grants::grants(&loaded), &options) {
        Ok(toolbox) if wrong.is_empty() => toolbox,
        Ok(_) => return Err(Failure::Tools(wrong)),
        Err(more) => {
            let more = more.into_iter().map(|error| grants::located(&loaded, error));
            return Err(Failure::Tools(wrong.into_iter().chain(more).collect()));
        }
    };
    Ok(Equipped {
        loaded,
        secrets,
        toolbox: Arc::new(toolbox),
        places,
        clock,
    })
}

/// Reads the manifest, loads the tools, builds the transport. Blocks; call it outside a runtime.
///
/// # Errors
/// What is wrong with the manifest, the tools, or the transport's settings.
pub fn assemble(choice: &Choice) -> Result<Assembled, Failure> {
    assemble_in(choice, Surroundings::process())
}

/// The same in other surroundings.
///
/// # Errors
/// As for [`assemble`].
pub fn assemble_in(choice: &Choice, surroundings: Surroundings) -> Result<Assembled, Failure> {
    assemble_for(choice, surroundings, Purpose::Run(None))
}

/// The same to look at what would run: a transport that cannot be built says so when it is asked.
///
/// # Errors
/// What is wrong with the manifest or the tools, or which transport it would be is not clear.
pub(crate) fn assemble_to_look(choice: &Choice) -> Result<Assembled, Failure> {
    assemble_for(choice, Surroundings::process(), Purpose::Look)
}

/// The same, and every exchange with the model goes to `recorder`, where the transport owns its loop.
///
/// # Errors
/// As for [`assemble`].
pub fn assemble_recorded(
    choice: &Choice,
    surroundings: Surroundings,
    recorder: Arc<dyn Recorder>,
) -> Result<Assembled, Failure> {
    assemble_for(choice, surroundings, Purpose::Run(Some(recorder)))
}

/// What a capsule is put together for.
enum Purpose {
    /// To run, and to be recorded where there is a recorder.
    Run(Option<Arc<dyn Recorder>>),
    /// To be looked at.
    Look,
}

/// What plugins are lent. Components that drivers name are kept, compiled, in `cache`, and reach their provider as other drivers do.
pub(crate) fn services(surroundings: &Surroundings, secrets: Arc<dyn Secrets>, cache: Option<&Path>) -> Services {
    let Surroundings { env, clock, http } = surroundings;
    let components = SandboxComponents::new(capsule_tools::Options {
        cache_dir: cache.map(Path::to_owned),
        clock: clock.clone(),
        net: network(&**env),
        ..capsule_tools::Options::default()
    });
    Services::new(clock.clone(), secrets, http.clone()).with_components(Arc::new(components))
}

fn assemble_for(choice: &Choice, surroundings: Surroundings, purpose: Purpose) -> Result<Assembled, Failure> {
    let Equipped {
        mut loaded,
        secrets,
        toolbox,
        places,
        ..
    } = equip_in(choice.load()?, &surroundings, |_| true)?;
    let mut services = services(&surroundings, secrets, Some(places.component_cache()));
    let look = matches!(purpose, Purpose::Look);
    if let Purpose::Run(recorder) = purpose {
        services.recorder = recorder;
    }
    let peer = match toolbox.script() {
        Some(script) => Peer::script(script),
        None => {
            let chosen_by = settle(choice, &mut loaded, &services)?;
            Peer::model(&loaded, chosen_by, &services, look)?
        }
    };
    let warnings = toolbox
        .warnings()
        .iter()
        .map(|warning| (warning.code, warning.message.clone()))
        .collect();
    let capsule = CapsuleInfo {
        name: loaded.manifest.name.clone(),
        version: loaded.manifest.version.to_string(),
    };
    let toolkit: Arc<dyn Toolkit> = Arc::new(Tools(toolbox.clone()));
    let agent = Agent {
        capsule,
        descriptor: peer.descriptor,
        chosen_by: peer.chosen_by,
        transport: peer.transport,
        toolkit,
        prompting: peer.prompting,
        services,
    };
    Ok(Assembled {
        agent,
        loaded,
        places,
        warnings,
        toolbox,
    })
}

/// Chooses the transport where the capsule asks for a family of them, and reads the manifest for it; returns how, in words.
fn settle(choice: &Choice, loaded: &mut Loaded, services: &Services) -> Result<Option<String>, Failure> {
    let Some(chosen) = select::member(loaded, services)? else {
        return Ok(None);
    };
    *loaded = choice.load_for(Some(chosen.member.name), Model::Whole)?;
    Ok(Some(format!("{}: {}", loaded.asked, chosen.how)))
}

/// Who works on the tasks.
struct Peer {
    descriptor: &'static TransportDescriptor,
    chosen_by: Option<String>,
    transport: Box<dyn Transport>,
    prompting: Prompting,
}

impl Peer {
    fn script(script: Arc<dyn Tool>) -> Self {
        Self {
            descriptor: &script::DESCRIPTOR,
            chosen_by: None,
            transport: Box::new(Script(script)),
            prompting: Prompting::default(),
        }
    }

    /// With `look`, a transport that cannot be built is replaced by one that says why.
    fn model(loaded: &Loaded, chosen_by: Option<String>, services: &Services, look: bool) -> Result<Self, Failure> {
        let transports = catalog::schemas()?;
        let descriptor = transports.registry().get(&loaded.selected)?;
        let chosen = loaded.settings(&transports)?;
        let secrets = &*services.secrets;
        let (prompting, wrong) = prompting(&chosen, secrets);
        let build = || (descriptor.build)(chosen.settings.clone(), services.clone());
        let built = wrong.map_or_else(build, Err);
        let transport = match built.map_err(|error| error.map_text(|text| secrets.redact(text).into_owned())) {
            Ok(transport) => transport,
            Err(why) if look => Box::new(NotSetUp {
                why,
                at_most: descriptor.at_most,
            }),
            Err(why) => return Err(why.into()),
        };
        Ok(Self {
            descriptor,
            chosen_by,
            transport,
            prompting,
        })
    }
}

/// What a model is told and allowed, as far as it can be read, and what of it cannot.
fn prompting(chosen: &Chosen, secrets: &dyn Secrets) -> (Prompting, Option<Error>) {
    let (model, system_prompt) = (chosen.model(secrets), chosen.system_prompt(secrets));
    let wrong = [model.as_ref().err(), system_prompt.as_ref().err()];
    let wrong = wrong.into_iter().flatten().next().cloned();
    let prompting = Prompting {
        model: model.unwrap_or_default(),
        system_prompt: system_prompt.unwrap_or_default(),
        limits: chosen.limits,
    };
    (prompting, wrong)
}

impl Assembled {
    /// The transport's descriptor.
    pub fn descriptor(&self) -> &'static TransportDescriptor {
        self.agent.descriptor
    }

    /// Ends the sandbox. Blocks; call it outside a runtime.
    pub fn shut_down(self) {
        let Self { agent, toolbox, .. } = self;
        drop(agent);
        put_away(toolbox);
    }
}

/// Ends the sandbox, unless a call that outlives its turn still holds it; the process then ends with it.
pub(crate) fn put_away(toolbox: Arc<Toolbox>) {
    if let Some(toolbox) = Arc::into_inner(toolbox) {
        toolbox.shut_down(SANDBOX_GRACE);
    }
}

struct Tools(Arc<Toolbox>);

impl Toolkit for Tools {
    fn catalogue(&self) -> Arc<Catalogue> {
        self.0.catalogue().clone()
    }

    fn bind(&self, sink: Arc<dyn RunSink>, caller: Arc<dyn Caller>, cancel: Cancel) -> Arc<dyn ToolDispatch> {
        self.0.dispatch(Bindings { sink, caller, cancel })
    }
}
