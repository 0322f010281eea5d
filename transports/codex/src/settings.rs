//! The transport's own settings: those that all CLIs have, and one more.

use capsule_api::{Error, Secrets, Settings};
use capsule_transport_process::{CliSettings, Login, SettingsOf};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{codes, login};

const COMMON: SettingsOf = SettingsOf {
    command: "codex",
    endpoint: "Base URL of the Responses API (default: https://api.openai.com/v1, with a subscription the one of ChatGPT). Without a \
               path, `/v1` is added;",
    logins: &[Login::Subscription, Login::ApiKey],
    credentials: &login::FORMAT,
    endpoint_code: &codes::ENDPOINT,
};

/// Where a key is sent unless the settings say otherwise.
const API: &str = "https://api.openai.com/v1";
/// Where the login of a subscription is sent.
const SUBSCRIPTION: &str = "https://chatgpt.com/backend-api/codex";

/// The JSON Schema of the settings. It does not depend on them.
pub(crate) fn schema(_: Option<&Value>) -> Value {
    let mut schema = COMMON.schema();
    schema["properties"]["code_mode"] = json!({
        "type": "boolean",
        "default": false,
        "description": "Lets the model call the tools from scripts that the CLI runs in a JavaScript engine, instead of directly."
    });
    schema
}

/// The settings, read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) cli: CliSettings,
    pub(crate) code_mode: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    #[serde(default)]
    code_mode: bool,
}

impl Config {
    /// Reads and checks the settings.
    pub(crate) fn read(settings: &Settings, secrets: &dyn Secrets) -> Result<Self, Error> {
        let own: Own = settings.without(&COMMON.schema()).decode(secrets)?;
        Ok(Self {
            cli: COMMON.read(settings, secrets)?,
            code_mode: own.code_mode,
        })
    }

    /// The provider's base URL as the CLI wants it: the calls' paths are put behind it.
    pub(crate) fn base_url(&self) -> String {
        let Some(endpoint) = &self.cli.endpoint else {
            let own = match self.cli.credential.login() {
                Login::Subscription => SUBSCRIPTION,
                Login::Token | Login::ApiKey => API,
            };
            return own.to_owned();
        };
        let endpoint = endpoint.trim_end_matches('/');
        let bare = endpoint.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
        let version = if bare { "/v1" } else { "" };
        format!("{endpoint}{version}")
    }
}

#[cfg(test)]
mod tests {
    use capsule_transport_kit::NoSecrets;

    use super::*;

    fn read(values: Value) -> Result<Config, Error> {
        let values = values.as_object().unwrap().clone();
        Config::read(&Settings::new(values, &schema(None), "."), &NoSecrets)
    }

    #[test]
    fn what_pays_decides_where_it_is_sent_and_an_endpoint_without_a_path_gets_the_apis_version() {
        for (values, base) in [
            (json!({}), "https://chatgpt.com/backend-api/codex"),
            (json!({"api_key": "k"}), "https://api.openai.com/v1"),
            (json!({"endpoint": "http://127.0.0.1:4000"}), "http://127.0.0.1:4000/v1"),
            (
                json!({"api_key": "k", "endpoint": "http://127.0.0.1:4000/"}),
                "http://127.0.0.1:4000/v1",
            ),
            (
                json!({"api_key": "k", "endpoint": "https://gateway.example.com/openai/"}),
                "https://gateway.example.com/openai",
            ),
        ] {
            assert_eq!(read(values).unwrap().base_url(), base);
        }
    }

    #[test]
    fn the_default_of_the_schema_is_the_setting_s() {
        let default = schema(None)["properties"]["code_mode"]["default"].clone();
        assert_eq!(default, read(json!({})).unwrap().code_mode);
        assert!(read(json!({"code_mod": true})).is_err());
        assert_eq!(read(json!({"token": "t"})).unwrap_err().code, "settings-unreadable");
    }
}
