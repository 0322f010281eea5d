//! The transport's own settings.

use std::{net::IpAddr, time::Duration};

use capsule_api::{Error, HumanDuration, Secret, Secrets, Settings};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::codes;

/// The JSON Schema of the settings. It does not depend on them.
pub(crate) fn schema(_: Option<&Value>) -> Value {
    let duration = |description: &str, default: Option<&str>| {
        let mut schema = HumanDuration::schema();
        schema["description"] = description.into();
        if let Some(default) = default {
            schema["default"] = default.into();
        }
        schema
    };
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["api_key"],
        "properties": {
            "command": {
                "type": "string",
                "minLength": 1,
                "default": "codex",
                "description": "The CLI's native binary: a name that is looked up in PATH, or a path (relative ones start at the manifest)."
            },
            "endpoint": {
                "type": "string",
                "default": DEFAULT_ENDPOINT,
                "description": "Base URL of the Responses API; https, or http on loopback. Without a path, `/v1` is added."
            },
            "login": {
                "type": "string",
                "enum": ["api_key"],
                "default": "api_key",
                "description": "Who pays: `api_key`, the key given here."
            },
            "api_key": {
                "type": "string",
                "minLength": 1,
                "writeOnly": true,
                "description": "The key; write it as ${NAME}."
            },
            "idle_timeout": duration("Longest time without a sign of life from the CLI; a running tool call counts as one.", Some("10m")),
            "code_mode": {
                "type": "boolean",
                "default": false,
                "description": "Lets the model call the tools from scripts that the CLI runs in a JavaScript engine, instead of directly."
            },
            "wall_clock": duration("Longest time of a turn, without the time that tools wait for the caller. No limit without it.", None),
        }
    })
}

/// The settings, read.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    #[serde(default = "default_command")]
    pub(crate) command: String,
    #[serde(default = "default_endpoint")]
    pub(crate) endpoint: String,
    #[serde(default)]
    pub(crate) login: Login,
    pub(crate) api_key: Secret,
    #[serde(default = "default_idle")]
    pub(crate) idle_timeout: HumanDuration,
    pub(crate) wall_clock: Option<HumanDuration>,
    #[serde(default)]
    pub(crate) code_mode: bool,
}

/// Who pays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Login {
    /// The key of the settings.
    #[default]
    ApiKey,
}

/// Where the key is sent unless the settings say otherwise.
const DEFAULT_ENDPOINT: &str = "https://api.openai.com/v1";

fn default_endpoint() -> String {
    DEFAULT_ENDPOINT.into()
}

fn default_command() -> String {
    "codex".into()
}

fn default_idle() -> HumanDuration {
    HumanDuration(Duration::from_secs(600))
}

impl Config {
    /// Reads and checks the settings.
    pub(crate) fn read(settings: &Settings, secrets: &dyn Secrets) -> Result<Self, Error> {
        let config: Self = settings.decode(secrets)?;
        check_endpoint(&config.endpoint)?;
        Ok(config)
    }

    /// The provider's base URL as the CLI wants it: the calls' paths are put behind it.
    pub(crate) fn base_url(&self) -> String {
        let endpoint = self.endpoint.trim_end_matches('/');
        let bare = endpoint.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
        let version = if bare { "/v1" } else { "" };
        format!("{endpoint}{version}")
    }
}

fn check_endpoint(endpoint: &str) -> Result<(), Error> {
    // The URL itself is not shown: what makes it wrong may be a password in it.
    let refuse = |why: &str| Err(Error::new(&codes::ENDPOINT, format!("`endpoint` {why}")));
    let Ok(url) = endpoint.parse::<http::Uri>() else {
        return refuse("is not a URL");
    };
    let (Some(scheme), Some(authority)) = (url.scheme_str(), url.authority()) else {
        return refuse("is not an absolute URL");
    };
    if authority.as_str().contains('@') {
        return refuse("has a user name in it");
    }
    match scheme {
        "https" => Ok(()),
        "http" if is_loopback(authority.host()) => Ok(()),
        "http" => refuse("is plain http to another machine"),
        _ => refuse("is neither https nor http"),
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_to_https_or_to_loopback_only() {
        for good in [
            "https://api.example.com",
            "http://127.0.0.1:4000/base",
            "http://[::1]:1",
            "http://localhost",
        ] {
            assert_eq!(
                check_endpoint(good).map_err(|error| error.message.clone()),
                Ok(()),
                "{good}"
            );
        }
        for (wrong, why) in [
            ("http://api.example.com", "is plain http to another machine"),
            ("http://localhost.example.com", "is plain http to another machine"),
            ("https://me:pass@api.example.com", "has a user name in it"),
            ("ftp://127.0.0.1", "is neither https nor http"),
            ("/v1", "is not an absolute URL"),
            ("not a url", "is not a URL"),
        ] {
            let error = check_endpoint(wrong).unwrap_err();
            assert_eq!(
                (error.code, error.message.as_str()),
                ("codex-endpoint", format!("`endpoint` {why}").as_str())
            );
        }
    }

    #[test]
    fn defaults_are_those_of_the_schema() {
        let config: Config = serde_json::from_value(json!({"api_key": "k"})).unwrap();
        let properties = &schema(None)["properties"];
        assert_eq!(properties["command"]["default"], config.command.as_str());
        assert_eq!(properties["endpoint"]["default"], config.endpoint.as_str());
        assert_eq!(properties["code_mode"]["default"], config.code_mode);
        assert_eq!(properties["idle_timeout"]["default"], config.idle_timeout.to_string());
        assert_eq!(
            (properties["login"]["default"].as_str(), config.login),
            (Some("api_key"), Login::ApiKey)
        );
    }

    #[test]
    fn an_endpoint_without_a_path_gets_the_apis_version() {
        for (endpoint, base) in [
            ("http://127.0.0.1:4000", "http://127.0.0.1:4000/v1"),
            ("http://127.0.0.1:4000/", "http://127.0.0.1:4000/v1"),
            (
                "https://gateway.example.com/openai/",
                "https://gateway.example.com/openai",
            ),
            (DEFAULT_ENDPOINT, DEFAULT_ENDPOINT),
        ] {
            let config: Config = serde_json::from_value(json!({"api_key": "k", "endpoint": endpoint})).unwrap();
            assert_eq!(config.base_url(), base);
        }
    }

    #[test]
    fn debug_shows_no_key() {
        let config: Config = serde_json::from_value(json!({"api_key": "sk-secret"})).unwrap();
        assert!(!format!("{config:?}").contains("sk-secret"));
    }
}
