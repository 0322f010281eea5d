//! `capsule explain`: an error code in words.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use capsule_api::nearest;

use crate::{Failure, args::Explain, catalog, failure};

pub(crate) fn explain(args: &Explain) -> Result<ExitCode, Failure> {
    let codes = catalog::codes()?;
    let Some((owner, code)) = codes.iter().find(|(_, code)| code.id == args.code) else {
        let near = nearest(&args.code, codes.iter().map(|(_, code)| code.id));
        let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return Err(Failure::usage(format!("there is no error code `{}`{near}", args.code)));
    };
    let (kind, meaning, remedy) = (code.kind.as_str(), code.meaning, code.remedy);
    let text = format!("{} ({owner}, {kind})\n\n{meaning}\n\nWhat to do: {remedy}\n", code.id);
    write!(io::stdout().lock(), "{text}").map_err(|error| failure::output(&error))?;
    Ok(ExitCode::SUCCESS)
}
