//! The transport's own settings. They are those that all CLIs have.

use capsule_api::{Error, Secrets, Settings};
use capsule_transport_process::{CliSettings, Login, SettingsOf};
use serde_json::Value;

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
    COMMON.schema()
}

/// Reads and checks the settings.
pub(crate) fn read(settings: &Settings, secrets: &dyn Secrets) -> Result<CliSettings, Error> {
    COMMON.read(settings, secrets)
}
