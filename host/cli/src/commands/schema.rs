//! `capsule schema`: the JSON Schema of `capsule.yaml` with the settings of every linked transport.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use crate::{Failure, catalog, failure, links};

pub(crate) fn schema() -> Result<ExitCode, Failure> {
    let schema = capsule_manifest::schema(&catalog::schemas()?, links::DEFAULT_TRANSPORT);
    writeln!(io::stdout().lock(), "{schema:#}").map_err(|error| failure::output(&error))?;
    Ok(ExitCode::SUCCESS)
}
