//! The transport's own settings: those that all CLIs have, and one more.

use capsule_api::{Error, Secrets, Settings};
use capsule_transport_process::{CliSettings, Login, SettingsOf};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{codes, login};

const COMMON: SettingsOf = SettingsOf {
    command: "claude",
    endpoint: "Base URL of the Messages API (default: the CLI's own);",
    logins: &[Login::Subscription, Login::Token, Login::ApiKey],
    credentials: &login::FORMAT,
    endpoint_code: &codes::ENDPOINT,
};

/// The JSON Schema of the settings. It does not depend on them.
pub(crate) fn schema(_: Option<&Value>) -> Value {
    let mut schema = COMMON.schema();
    schema["properties"]["max_budget_usd"] = json!({
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "What a turn may cost in US dollars, by the CLI's own estimate; a turn that reaches it ends with the limit `cost`. \
                        No limit without it."
    });
    schema
}

/// The settings, read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) cli: CliSettings,
    pub(crate) max_budget_usd: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    max_budget_usd: Option<f64>,
}

impl Config {
    /// Reads and checks the settings.
    pub(crate) fn read(settings: &Settings, secrets: &dyn Secrets) -> Result<Self, Error> {
        let own: Own = settings.without(&COMMON.schema()).decode(secrets)?;
        Ok(Self {
            cli: COMMON.read(settings, secrets)?,
            max_budget_usd: own.max_budget_usd,
        })
    }
}
