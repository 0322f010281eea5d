//! From the manifest's tools and grants to those of the sandbox.

use std::path::Path;

use capsule_api::Error;
use capsule_manifest::{Loaded, ToolEntry, ToolFile, ToolGrants};
use capsule_tools::{
    ClockGrant, CommandInput, Grants, Limits, Mode, NarrowedLimits, Narrowing, Preopen, RandomGrant, SecretGrant,
    ToolSource, codes,
};

use crate::sources;

/// A tool of the manifest.
///
/// # Errors
/// It is named by its sources, and their component is not there or not theirs.
pub(crate) fn source(loaded: &Loaded, entry: &ToolEntry) -> Result<ToolSource, Error> {
    let path = loaded.path(entry.file.path());
    let mut source = match entry.file {
        ToolFile::Skill(_) => ToolSource::skill(&entry.name, path),
        ToolFile::Component { input, .. } => ToolSource {
            input: match input {
                capsule_manifest::CommandInput::Stdin => CommandInput::Stdin,
                capsule_manifest::CommandInput::Argv => CommandInput::Argv,
            },
            ..ToolSource::new(&entry.name, sources::resolve(path, &format!("tool `{}`", entry.name))?)
        },
    };
    source.description.clone_from(&entry.description);
    source.input_schema.clone_from(&entry.input_schema);
    source.annotations = entry.annotations;
    source.config.clone_from(&entry.config);
    source.capabilities = entry.capabilities.as_ref().map(|own| narrowing(loaded, own));
    Ok(source)
}

/// The program of a script capsule.
///
/// # Errors
/// As for [`source`].
pub(crate) fn script(loaded: &Loaded, script: &Path) -> Result<ToolSource, Error> {
    let component = sources::resolve(loaded.path(script), "the script")?;
    Ok(ToolSource::script(component))
}

/// An error of the tools or of their grants, with the place in the manifest of what it speaks of where that is known.
pub(crate) fn located(loaded: &Loaded, error: Error) -> Error {
    match pointer(loaded, &error) {
        Some(pointer) => loaded.about(&pointer, error),
        None => error,
    }
}

/// Which value of the manifest an error of the tools speaks of, as a JSON Pointer.
fn pointer(loaded: &Loaded, error: &Error) -> Option<String> {
    let fact = |name| {
        let mut facts = error.context.iter();
        facts.find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    };
    let granted = &loaded.manifest.capabilities;
    let at = |list: &[String], wanted: &str| list.iter().position(|one| one == wanted);
    match error.code {
        code if code == codes::GRANT_DIRECTORY.id => {
            let path = Path::new(fact("path")?);
            let is_it = |grant: &capsule_manifest::DirectoryGrant| {
                let declared = loaded.path(&grant.path);
                declared == path || declared.canonicalize().is_ok_and(|found| found == path)
            };
            let index = granted.filesystem.iter().position(is_it)?;
            Some(format!("/capabilities/filesystem/{index}/path"))
        }
        code if code == codes::GRANT_NETWORK.id => {
            let index = at(&granted.network.allow, fact("host")?)?;
            Some(format!("/capabilities/network/allow/{index}"))
        }
        code if code == codes::GRANT_ENV.id => {
            let index = at(&granted.env.allow, fact("variable")?)?;
            Some(format!("/capabilities/env/allow/{index}"))
        }
        code if code == codes::GRANT_SECRET.id => Some(format!("/capabilities/secrets/{}", escaped(fact("secret")?))),
        code if code == codes::LIMITS.id => Some(format!("/capabilities/limits/{}", fact("limit")?)),
        code => of_tool(loaded, code, fact("tool")?, error),
    }
}

/// The same for what an error says of one tool, or of the script.
fn of_tool(loaded: &Loaded, code: &str, name: &str, error: &Error) -> Option<String> {
    let tools = &loaded.manifest.tools;
    let script = loaded.manifest.script.is_some() && error.message.starts_with("the script");
    let Some(index) = tools.iter().position(|tool| tool.name == name).filter(|_| !script) else {
        return script.then(|| "/script".to_owned());
    };
    let key = match (code, &tools[index].file) {
        (code, _) if code == codes::NAME.id || code == codes::DUPLICATE.id => "name",
        (code, _) if code == codes::GRANT_WIDER.id => "capabilities",
        (_, ToolFile::Skill(_)) => "skill",
        (_, ToolFile::Component { .. }) => "component",
    };
    Some(format!("/tools/{index}/{key}"))
}

/// A key as a part of a JSON Pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// What the capsule is granted.
pub(crate) fn grants(loaded: &Loaded) -> Grants {
    let declared = &loaded.manifest.capabilities;
    let limits = declared.limits;
    let secret = |(name, secret): (&String, &capsule_manifest::SecretGrant)| SecretGrant {
        name: name.clone(),
        hosts: secret.hosts.clone(),
        header: secret.header.clone(),
    };
    Grants {
        filesystem: directories(loaded, &declared.filesystem),
        network: declared.network.allow.clone(),
        env: declared.env.allow.clone(),
        secrets: declared.secrets.iter().map(secret).collect(),
        limits: Limits {
            memory: limits.memory.0,
            deadline: limits.deadline.0,
            output: limits.output.0,
            table_elements: limits.table_elements,
            instances: limits.instances,
            http_body: limits.http_body.0,
            concurrent_calls: limits.concurrent_calls,
            registry_depth: limits.registry_depth,
        },
        clock: declared.clock.map_or(ClockGrant::System, ClockGrant::Fixed),
        random: declared.random.seed.map_or(RandomGrant::System, RandomGrant::Seeded),
    }
}

fn narrowing(loaded: &Loaded, own: &ToolGrants) -> Narrowing {
    let limits = own.limits;
    Narrowing {
        filesystem: directories(loaded, &own.filesystem),
        network: own.network.allow.clone(),
        env: own.env.allow.clone(),
        secrets: own.secrets.clone(),
        limits: NarrowedLimits {
            memory: limits.memory.map(|size| size.0),
            table_elements: limits.table_elements,
            instances: limits.instances,
            deadline: limits.deadline.map(|time| time.0),
            output: limits.output.map(|size| size.0),
            http_body: limits.http_body.map(|size| size.0),
        },
    }
}

fn directories(loaded: &Loaded, declared: &[capsule_manifest::DirectoryGrant]) -> Vec<Preopen> {
    let preopen = |grant: &capsule_manifest::DirectoryGrant| Preopen {
        host: loaded.path(&grant.path),
        guest: grant.at.clone(),
        mode: match grant.mode {
            capsule_manifest::Mode::ReadOnly => Mode::Ro,
            capsule_manifest::Mode::ReadWrite => Mode::Rw,
        },
    };
    declared.iter().map(preopen).collect()
}
