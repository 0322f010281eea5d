//! `capsule explain`: an error code in words.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use capsule_api::{Code, nearest};

use crate::{Failure, args::Explain, catalog, failure};

pub(crate) fn explain(args: &Explain) -> Result<ExitCode, Failure> {
    let codes = catalog::codes()?;
    let Some((owner, code)) = codes.iter().find(|(_, code)| code.id == args.code) else {
        let near = near(&args.code, &codes).map_or(String::new(), |near| format!("{near} "));
        let hint = format!("{near}The table in docs/errors.md has all codes.");
        return Err(Failure::usage(format!("there is no error code `{}`", args.code), hint));
    };
    let owner = catalog::raised_by(owner, code)?;
    let (kind, meaning, remedy) = (code.kind.as_str(), code.meaning, code.remedy);
    let text = format!("{} ({owner}, {kind})\n\n{meaning}\n\nWhat to do: {remedy}\n", code.id);
    write!(io::stdout().lock(), "{text}").map_err(|error| failure::output(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// What was most likely meant: a code, or a plugin, whose codes are then listed.
fn near(wanted: &str, codes: &[(String, &'static Code)]) -> Option<String> {
    let of_plugins = codes.iter().filter_map(|(owner, _)| owner.split_once(' '));
    let plugin = nearest(wanted, of_plugins.map(|(_, name)| name));
    let code = nearest(wanted, codes.iter().map(|(_, code)| code.id));
    let Some(name) = plugin.filter(|name| *name == wanted || code.is_none()) else {
        return code.map(|code| format!("Did you mean `{code}`?"));
    };
    let of_plugin = |owner: &str| owner.split_once(' ').is_some_and(|(_, of)| of == name);
    let own = codes.iter().filter(|(owner, _)| of_plugin(owner));
    let ids: Vec<_> = own.clone().map(|(_, code)| code.id).collect();
    let (owner, _) = own.clone().next()?;
    Some(format!("The codes of the {owner} are: {}.", ids.join(", ")))
}
