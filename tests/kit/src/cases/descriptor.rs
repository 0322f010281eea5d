//! What a transport says about itself.

use std::collections::HashSet;

use capsule_api::Capabilities;

use super::{ensure, same};
use crate::{Failure, Fixture, Script, Stand};

/// `[a-z0-9-]`, and not empty.
fn kebab(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(allowed)
}

fn named(capabilities: &Capabilities) -> [(&'static str, bool); 7] {
    let Capabilities {
        streams,
        thinking,
        usage,
        resumes,
        parallel_tools,
        interrupts,
        host_owns_loop,
    } = *capabilities;
    [
        ("streams", streams),
        ("thinking", thinking),
        ("usage", usage),
        ("resumes", resumes),
        ("parallel_tools", parallel_tools),
        ("interrupts", interrupts),
        ("host_owns_loop", host_owns_loop),
    ]
}

pub(super) async fn the_descriptor_is_sane(fixture: &dyn Fixture) -> Result<(), Failure> {
    let stand = Stand::new(fixture, Script::default()).await?;
    let descriptor = stand.descriptor;
    ensure(kebab(descriptor.name), || {
        format!("the name `{}` is not [a-z0-9-]+", descriptor.name)
    })?;
    ensure(kebab(descriptor.family), || {
        format!("the family `{}` is not [a-z0-9-]+", descriptor.family)
    })?;
    let one_line = !descriptor.summary.trim().is_empty() && !descriptor.summary.contains('\n');
    ensure(one_line, || "the summary is not one line".to_owned())?;
    ensure(descriptor.example.contains("transport:"), || {
        "the example does not name the transport".to_owned()
    })?;
    ensure(!descriptor.stops_within.is_zero(), || {
        "`stops_within` is zero".to_owned()
    })?;
    same(
        "the type of the most general settings schema",
        &(descriptor.settings_schema)(None)["type"],
        &"object".into(),
    )?;
    // The general schema may leave room, for a driver's keys say; the one for given settings may not.
    let settings = stand.stage.settings.raw().clone().into();
    let schema = (descriptor.settings_schema)(Some(&settings));
    same("the type of the settings schema", &schema["type"], &"object".into())?;
    let strict = schema["additionalProperties"] == false || schema["unevaluatedProperties"] == false;
    ensure(strict, || {
        "the settings schema for given settings lets unknown keys pass".to_owned()
    })?;
    let mut ids = HashSet::new();
    for code in descriptor.codes {
        let own = code.id.split('-').next().is_some_and(|owner| !owner.is_empty()) && kebab(code.id);
        ensure(own && code.id.contains('-'), || {
            format!("the code `{}` has no owner before a dash", code.id)
        })?;
        ensure(ids.insert(code.id), || {
            format!("the code `{}` is listed twice", code.id)
        })?;
        let told = !code.meaning.is_empty() && !code.remedy.is_empty();
        ensure(told, || {
            format!("the code `{}` does not say what happened and what to do", code.id)
        })?;
    }
    for ((name, most), (_, this)) in named(&descriptor.at_most).into_iter().zip(named(&stand.capabilities())) {
        ensure(most || !this, || {
            format!("the instance declares `{name}`, the descriptor's `at_most` does not")
        })?;
    }
    Ok(())
}

pub(super) async fn the_probe_finds_the_staged_peer_usable(fixture: &dyn Fixture) -> Result<(), Failure> {
    let stand = Stand::new(fixture, Script::default()).await?;
    let probe = stand.transport.probe(false).await;
    probe
        .usable
        .map_err(|error| Failure::new(format!("the probe says: {error} ({})", error.code)))
}
