//! `capsule transports`: what is registered, and what could run here.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use anstyle::Style;
use serde_json::{Value, json};

use crate::{Failure, args::Transports, catalog, failure};

pub(crate) fn transports(args: &Transports) -> Result<ExitCode, Failure> {
    let (transports, drivers) = (catalog::transports()?, catalog::drivers()?);
    let written = if args.json {
        let transports: Vec<_> = transports.iter().map(describe).collect();
        let drivers: Vec<_> = drivers
            .iter()
            .map(|driver| json!({"name": driver.name, "crate": driver.crate_name, "summary": driver.summary, "example": driver.example}))
            .collect();
        writeln!(
            io::stdout().lock(),
            "{:#}",
            json!({"transports": transports, "drivers": drivers})
        )
    } else {
        let transports = transports.iter().map(|t| (t.name, t.summary, t.crate_name));
        let drivers = drivers.iter().map(|d| (d.name, d.summary, d.crate_name));
        table("Transports", transports).and_then(|()| table("\nDrivers of the transport http", drivers))
    };
    written.map_err(|error| failure::output(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn table<'a>(title: &str, rows: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    writeln!(out, "{bold}{title}{bold:#}")?;
    let rows: Vec<_> = rows.collect();
    let width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or_default();
    for (name, summary, from) in rows {
        writeln!(out, "  {name:<width$}  {summary} {dim}[{from}]{dim:#}")?;
    }
    Ok(())
}

fn describe(transport: &capsule_api::TransportDescriptor) -> Value {
    let most = transport.at_most;
    json!({
        "name": transport.name,
        "crate": transport.crate_name,
        "family": transport.family,
        "summary": transport.summary,
        "at_most": {
            "streams": most.streams,
            "thinking": most.thinking,
            "usage": most.usage,
            "resumes": most.resumes,
            "parallel_tools": most.parallel_tools,
            "interrupts": most.interrupts,
            "host_owns_loop": most.host_owns_loop,
        },
        "example": transport.example,
    })
}
