//! What this program has linked: transports, drivers, and every error code there is.

mod warnings;

use capsule_api::{Code, DriverDescriptor, Error, Registry, TransportDescriptor, nearest};
use capsule_manifest::{TransportSchemas as _, Transports};

use crate::links;

/// The linked transports.
///
/// # Errors
/// None is linked, or two share a name.
pub fn transports() -> Result<Registry<TransportDescriptor>, Error> {
    Registry::linked()
}

/// The linked transports, and the name that stands for a family of them.
///
/// # Errors
/// As for [`transports`].
pub(crate) fn schemas() -> Result<Transports, Error> {
    let (name, family) = links::FAMILY;
    Ok(Transports::new(transports()?, name, family))
}

/// Whether there is a transport, or a family, of this name.
///
/// # Errors
/// There is none; the message lists what there is, the hint has the nearest spelling.
pub(crate) fn check_name(schemas: &Transports, name: &str) -> Result<(), Error> {
    let names = schemas.names();
    if names.iter().any(|known| known == name) {
        return Ok(());
    }
    let message = format!("no transport is called `{name}`; there are: {}", names.join(", "));
    let error = Error::new(&capsule_api::registry_codes::UNKNOWN, message);
    Err(match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => error.hint(format!("Did you mean `{near}`?")),
        None => error,
    })
}

/// The linked drivers.
pub(crate) fn drivers() -> Result<Registry<DriverDescriptor>, Error> {
    Registry::linked()
}

/// Every code that this program may show, by owner: the host's own crates first, then each plugin.
pub(crate) fn codes() -> Result<Vec<(String, &'static Code)>, Error> {
    let own: [(&str, &[&'static Code]); 9] = [
        ("command line", crate::failure::codes::ALL),
        ("registry", capsule_api::registry_codes::ALL),
        ("settings", capsule_api::settings_codes::ALL),
        ("manifest", capsule_manifest::codes::ALL),
        ("tools", capsule_tools::codes::ALL),
        ("tools", warnings::TOOLS),
        ("session", capsule_session::codes::ALL),
        ("session", warnings::SESSION),
        ("network", capsule_net::codes::ALL),
    ];
    let mut all: Vec<(String, &'static Code)> = Vec::new();
    let mut add = |owner: String, codes: &[&'static Code]| {
        for code in codes {
            // Plugins of one crate, or on one library, share codes; the first owner has the row.
            if !all.iter().any(|(_, known)| known == code) {
                all.push((owner.clone(), code));
            }
        }
    };
    for (owner, codes) in own {
        add(owner.to_owned(), codes);
    }
    for transport in transports()?.iter() {
        add(format!("transport {}", transport.name), transport.codes);
    }
    for driver in drivers()?.iter() {
        add(format!("driver {}", driver.name), driver.codes);
    }
    Ok(all)
}

/// Who may raise this code, in words: its owner, or all of the plugins that share it.
///
/// # Errors
/// As for [`transports`].
pub(crate) fn raised_by(owner: &str, code: &'static Code) -> Result<String, Error> {
    let Some((kind, first)) = owner
        .split_once(' ')
        .filter(|(kind, _)| matches!(*kind, "transport" | "driver"))
    else {
        return Ok(owner.to_owned());
    };
    let has = |codes: &[&'static Code]| codes.contains(&code);
    let transports = transports()?;
    let drivers = drivers()?;
    let names: Vec<&str> = match kind {
        "transport" => transports
            .iter()
            .filter(|one| has(one.codes))
            .map(|one| one.name)
            .collect(),
        _ => drivers
            .iter()
            .filter(|one| has(one.codes))
            .map(|one| one.name)
            .collect(),
    };
    Ok(match names.as_slice() {
        [] | [_] => format!("{kind} {first}"),
        several => format!("{kind}s {}", several.join(", ")),
    })
}

/// The table of `docs/errors.md`.
///
/// # Errors
/// As for [`transports`].
pub fn error_table() -> Result<String, Error> {
    let mut table = String::new();
    let mut last = String::new();
    for (owner, code) in codes()? {
        if owner != last {
            table.push_str(&format!(
                "\n## {owner}\n\n| code | kind | what happened | what to do |\n|---|---|---|---|\n"
            ));
            last = owner;
        }
        let escape = |text: &str| text.replace('|', "\\|");
        let (meaning, remedy) = (escape(code.meaning), escape(code.remedy));
        table.push_str(&format!(
            "| `{}` | {} | {meaning} | {remedy} |\n",
            code.id,
            code.kind.as_str()
        ));
    }
    Ok(table)
}
