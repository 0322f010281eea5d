//! `capsule transports`: what is registered, and what could run here.

use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use anstyle::Style;
use capsule_api::{DriverDescriptor, Registry, Services, TransportDescriptor};
use capsule_manifest::{TransportSchemas as _, Transports};
use serde_json::{Value, json};

use super::on_runtime;
use crate::{
    Failure, Surroundings,
    args::Transports as Args,
    assemble,
    candidates::{self, Tried},
    catalog, failure,
    view::plain,
};

pub(crate) fn transports(args: &Args) -> Result<ExitCode, Failure> {
    let surroundings = Surroundings::process();
    let secrets = assemble::secrets_of(Path::new("."));
    let services = Services::new(surroundings.clock, secrets, surroundings.http);
    let schemas = catalog::schemas()?;
    let tried = on_runtime(candidates::tried(schemas.registry().iter(), &schemas, None, &services))?;
    let listed = Listed {
        tried,
        schemas,
        drivers: catalog::drivers()?,
    };
    let written = match args.json {
        true => writeln!(io::stdout().lock(), "{:#}", listed.json()),
        false => listed.text(&mut anstream::stdout().lock()),
    };
    written.map_err(|error| failure::output(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// All that is linked.
struct Listed {
    tried: Vec<Tried>,
    schemas: Transports,
    drivers: Registry<DriverDescriptor>,
}

impl Listed {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        let names = self.schemas.names();
        let width = names.iter().map(String::len).max().unwrap_or_default();
        writeln!(out, "{bold}Transports{bold:#}")?;
        for tried in &self.tried {
            let TransportDescriptor {
                name,
                summary,
                crate_name,
                ..
            } = tried.descriptor;
            writeln!(out, "  {name:<width$}  {summary} {dim}[{crate_name}]{dim:#}")?;
            stand(tried, width + 4, out)?;
        }
        if let Some((name, members)) = self.family() {
            let members = members.join(", ");
            writeln!(
                out,
                "  {name:<width$}  The first of {members} that could run here, or the one that `inference.command` is for."
            )?;
            let now = self
                .first()
                .map_or("none could run here", |first| first.descriptor.name);
            writeln!(out, "{:1$}now: {now}", "", width + 4)?;
        }
        writeln!(out, "\n{bold}Drivers of the transport http{bold:#}")?;
        let width = self.drivers.names().map(str::len).max().unwrap_or_default();
        for driver in self.drivers.iter() {
            let DriverDescriptor {
                name,
                summary,
                crate_name,
                ..
            } = driver;
            writeln!(out, "  {name:<width$}  {summary} {dim}[{crate_name}]{dim:#}")?;
        }
        Ok(())
    }

    fn family(&self) -> Option<(&'static str, Vec<String>)> {
        let name = self.schemas.name();
        let members = self.schemas.members(name);
        (!members.is_empty()).then_some((name, members))
    }

    /// The member that a capsule would run on that names the family and no program.
    fn first(&self) -> Option<&Tried> {
        let members = self.schemas.members(self.schemas.name());
        let is_member = |tried: &&Tried| members.iter().any(|member| member == tried.descriptor.name);
        self.tried
            .iter()
            .filter(is_member)
            .find(|tried| tried.error().is_none())
    }

    fn json(&self) -> Value {
        let drivers: Vec<_> = self
            .drivers
            .iter()
            .map(|driver| json!({"name": driver.name, "crate": driver.crate_name, "summary": driver.summary, "example": driver.example}))
            .collect();
        let families: Vec<_> = self
            .family()
            .into_iter()
            .map(|(name, members)| json!({"name": name, "members": members, "first": self.first().map(|first| first.descriptor.name)}))
            .collect();
        json!({
            "transports": self.tried.iter().map(describe).collect::<Vec<_>>(),
            "families": families,
            "drivers": drivers,
        })
    }
}

/// How a transport stands on this machine, below its own line.
pub(super) fn stand(tried: &Tried, indent: usize, out: &mut dyn Write) -> io::Result<()> {
    let dim = Style::new().dimmed();
    writeln!(out, "{:indent$}{}", "", plain(&tried.state()))?;
    // What keeps it from running is said above.
    let said = |value: &str| tried.error().is_some_and(|error| value.contains(&error.message));
    for (name, value) in tried.facts().iter().filter(|(_, value)| !said(value)) {
        writeln!(out, "{:indent$}{}: {}", "", plain(name), plain(value))?;
    }
    match tried.hint() {
        Some(hint) => writeln!(out, "{:indent$}{dim}{}{dim:#}", "", plain(hint)),
        None => Ok(()),
    }
}

fn describe(tried: &Tried) -> Value {
    let transport = tried.descriptor;
    let most = transport.at_most;
    let mut shown = tried.json();
    shown["crate"] = transport.crate_name.into();
    shown["at_most"] = json!({
        "streams": most.streams,
        "thinking": most.thinking,
        "usage": most.usage,
        "resumes": most.resumes,
        "parallel_tools": most.parallel_tools,
        "interrupts": most.interrupts,
        "host_owns_loop": most.host_owns_loop,
    });
    shown["example"] = transport.example.into();
    shown
}

#[cfg(test)]
mod tests {
    use capsule_api::{Error, Probe};

    use super::*;

    #[test]
    fn what_keeps_a_transport_from_running_is_said_once() {
        let mut probe = Probe::usable();
        let why = "`agent` is not logged in";
        probe.usable = Err(Error::new(&failure::codes::NEEDS_SETTINGS, why).hint("Log in."));
        probe.facts = vec![
            ("version".to_owned(), "1.2".to_owned()),
            ("login".to_owned(), format!("missing: {why}")),
        ];
        let tried = Tried {
            descriptor: &crate::script::DESCRIPTOR,
            probe: Ok(probe),
        };
        let mut out = Vec::new();
        stand(&tried, 2, &mut out).unwrap();
        let text = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        assert_eq!(text, format!("  could not run: {why}\n  version: 1.2\n  Log in.\n"));
    }
}
