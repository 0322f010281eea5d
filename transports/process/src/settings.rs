//! The settings that the transports of CLIs have in common: their schema, and what they are once read.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use capsule_api::{Code, Error, HumanDuration, Secret, Secrets, Settings};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Proxies, codes,
    login::{Credential, Format, Login},
};

/// What tells one CLI's settings from another's.
#[derive(Debug)]
pub struct SettingsOf {
    /// The default of `command`.
    pub command: &'static str,
    /// What `endpoint` is the base of, and its default, in words.
    pub endpoint: &'static str,
    /// The values of `login`, the default first.
    pub logins: &'static [Login],
    /// The CLI's credential file.
    pub credentials: &'static Format,
    /// Raised for an address that a credential may not be sent to.
    pub endpoint_code: &'static Code,
}

/// The common settings, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct CliSettings {
    /// The CLI: a name that is looked up in `PATH`, or a path.
    pub command: String,
    /// Base URL of the provider's API, where it is not the CLI's own.
    pub endpoint: Option<String>,
    /// Who pays.
    pub credential: Credential,
    /// The longest time without a sign of life.
    pub idle: Duration,
    /// The longest time of a turn.
    pub wall: Option<Duration>,
    /// The proxies that the CLI is told of; none unless `pass_proxy` says so.
    pub proxies: Proxies,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    command: Option<String>,
    endpoint: Option<String>,
    login: Option<Login>,
    login_home: Option<PathBuf>,
    api_key: Option<Secret>,
    token: Option<Secret>,
    idle_timeout: Option<HumanDuration>,
    wall_clock: Option<HumanDuration>,
    #[serde(default)]
    pass_proxy: bool,
}

const DEFAULT_IDLE: Duration = Duration::from_secs(600);

impl SettingsOf {
    /// The JSON Schema of the common settings; a transport adds its own properties.
    pub fn schema(&self) -> Value {
        let duration = |description: &str, default: Option<Duration>| {
            let mut schema = HumanDuration::schema();
            schema["description"] = description.into();
            if let Some(default) = default {
                schema["default"] = HumanDuration(default).to_string().into();
            }
            schema
        };
        let secret = |description: &str| json!({"type": "string", "minLength": 1, "writeOnly": true, "description": description});
        let mut schema = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "command": {
                    "type": "string",
                    "minLength": 1,
                    "default": self.command,
                    "description": "The CLI: a name that is looked up in PATH, or a path (relative ones start at the manifest)."
                },
                "endpoint": {
                    "type": "string",
                    "description": format!("{} https, or http on loopback; with a subscription loopback only.", self.endpoint)
                },
                "login": {
                    "type": "string",
                    "enum": self.logins.iter().map(|login| login.as_str()).collect::<Vec<_>>(),
                    "description": format!(
                        "Who pays. Without it: the key that is given here, else `{}`, the login that `{}` has on this machine.",
                        self.logins[0].as_str(),
                        self.credentials.program,
                    )
                },
                "login_home": {
                    "type": "string",
                    "minLength": 1,
                    "description": format!(
                        "With `login: subscription`: the directory of `{}`. Without it the CLI's own: `{}`, else `~/{}`.",
                        self.credentials.file, self.credentials.variable, self.credentials.directory,
                    )
                },
                "api_key": secret("The key of the provider's API; write it as ${NAME}."),
                "idle_timeout": duration(
                    "Longest time without a sign of life from the CLI; a running tool call counts as one.",
                    Some(DEFAULT_IDLE),
                ),
                "wall_clock": duration(
                    "Longest time of a turn, without the time that tools wait for the caller. No limit without it.",
                    None,
                ),
                "pass_proxy": pass_proxy()
            }
        });
        if self.logins.contains(&Login::Token) {
            schema["properties"]["token"] = secret("The long-lived token of a subscription; write it as ${NAME}.");
        }
        schema
    }

    /// Reads the common settings, and the host's proxies where they are to be passed on; a password in one of those is protected.
    ///
    /// # Errors
    /// What [`Settings::decode`] says; [`codes::LOGIN_SETTINGS`]; [`codes::LOGIN_ENDPOINT`]; the descriptor's code for the endpoint.
    pub fn read(&self, settings: &Settings, secrets: &dyn Secrets) -> Result<CliSettings, Error> {
        let raw: Raw = settings.only(&self.schema()).decode(secrets)?;
        let credential = self.credential(&raw, settings)?;
        if let Some(endpoint) = &raw.endpoint {
            let loopback = self.check_endpoint(endpoint)?;
            if credential.login() == Login::Subscription && !loopback {
                let message = "`endpoint` is set, and the login of a subscription would be sent there";
                return Err(Error::new(&codes::LOGIN_ENDPOINT, message));
            }
        }
        Ok(CliSettings {
            command: raw.command.unwrap_or_else(|| self.command.to_owned()),
            endpoint: raw.endpoint,
            credential,
            idle: raw.idle_timeout.map_or(DEFAULT_IDLE, |idle| idle.0),
            wall: raw.wall_clock.map(|wall| wall.0),
            proxies: match raw.pass_proxy {
                true => host_proxies(secrets),
                false => Proxies::default(),
            },
        })
    }

    /// The one credential that the settings ask for. What they give beside it would lie unused, so it is refused.
    fn credential(&self, raw: &Raw, settings: &Settings) -> Result<Credential, Error> {
        let login = raw.login.unwrap_or(match (&raw.api_key, &raw.token) {
            (Some(_), _) => Login::ApiKey,
            (None, Some(_)) => Login::Token,
            (None, None) => self.logins[0],
        });
        let given = [
            ("api_key", raw.api_key.is_some(), Login::ApiKey),
            ("token", raw.token.is_some(), Login::Token),
            ("login_home", raw.login_home.is_some(), Login::Subscription),
        ];
        let refuse = |message: String| Err(Error::new(&codes::LOGIN_SETTINGS, message));
        if let Some((key, ..)) = given.iter().find(|(_, given, of)| *given && *of != login) {
            return refuse(format!(
                "`{key}` is given, and `login: {}` does not use it",
                login.as_str()
            ));
        }
        match (login, &raw.api_key, &raw.token) {
            (Login::Subscription, ..) => {
                let home = raw.login_home.as_deref().map(|home| settings.path("login_home", home));
                Ok(Credential::Subscription(home.transpose()?))
            }
            (Login::ApiKey, Some(key), _) => Ok(Credential::ApiKey(key.clone())),
            (Login::Token, _, Some(token)) => Ok(Credential::Token(token.clone())),
            (Login::ApiKey | Login::Token, ..) => refuse(format!("`login: {0}` needs `{0}`", login.as_str())),
        }
    }

    /// Whether the endpoint is on this machine.
    fn check_endpoint(&self, endpoint: &str) -> Result<bool, Error> {
        // The URL itself is not shown: what makes it wrong may be a password in it.
        let refuse = |why: &str| Err(Error::new(self.endpoint_code, format!("`endpoint` {why}")));
        let Ok(url) = endpoint.parse::<http::Uri>() else {
            return refuse("is not a URL");
        };
        let (Some(scheme), Some(authority)) = (url.scheme_str(), url.authority()) else {
            return refuse("is not an absolute URL");
        };
        if authority.as_str().contains('@') {
            return refuse("has a user name in it");
        }
        let loopback = is_loopback(authority.host());
        match scheme {
            "https" => Ok(loopback),
            "http" if loopback => Ok(true),
            "http" => refuse("is plain http to another machine"),
            _ => refuse("is neither https nor http"),
        }
    }
}

impl CliSettings {
    /// The command as a path, where it is one.
    ///
    /// # Errors
    /// As [`Settings::path`].
    pub fn command_path(&self, settings: &Settings) -> Result<Option<PathBuf>, Error> {
        let is_path = self.command.contains('/');
        is_path
            .then(|| settings.path("command", Path::new(&self.command)))
            .transpose()
    }
}

fn pass_proxy() -> Value {
    json!({
        "type": "boolean",
        "default": false,
        "description": "Tells the CLI of the proxy that this process has: HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, with the exceptions of NO_PROXY. \
                        Loopback is never reached through it."
    })
}

fn host_proxies(secrets: &dyn Secrets) -> Proxies {
    let proxies = Proxies::of(|name| std::env::var_os(name));
    proxies.protect(secrets);
    proxies
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests;
