//! The credential gateway: values that the host puts into requests, and no tool ever holds.

use std::fmt;

use capsule_api::{Error, Secret, Secrets};
use http::{HeaderName, HeaderValue};

use super::network::{Pattern, Target};
use crate::codes;

/// A credential that the host attaches to the requests of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretGrant {
    /// The variable that holds the value.
    pub name: String,
    /// Where it is sent: entries as of `network.allow`, no wildcards, `https` or this machine.
    pub hosts: Vec<String>,
    /// The header, `Name: value`; `{}` in the value stands for the secret and is there once.
    pub header: String,
}

/// A credential, ready to be attached. `Debug` shows no value.
#[derive(Clone)]
pub(crate) struct Gateway {
    pub(crate) name: String,
    pub(crate) header: HeaderName,
    pub(crate) hosts: Vec<Pattern>,
    /// Whether a guest may set the header itself; its own value then stays.
    pub(crate) yields: bool,
    pub(crate) value: HeaderValue,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("name", &self.name)
            .field("header", &self.header)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

impl Gateway {
    /// Whether requests to this origin carry the credential.
    pub(crate) fn serves(&self, target: &Target) -> bool {
        self.hosts.iter().any(|host| host.admits(target))
    }

    /// The header's value; marked as sensitive.
    pub(crate) fn value(&self) -> HeaderValue {
        self.value.clone()
    }
}

impl SecretGrant {
    /// Looks the value up and protects it. `allowed` is what the network grants cover.
    pub(super) fn check(&self, allowed: &[Pattern], secrets: Option<&dyn Secrets>) -> Result<Gateway, Vec<Error>> {
        let error = |what: String| {
            let message = format!("the secret `{}`: {what}", self.name);
            Error::new(&codes::GRANT_SECRET, message).with("secret", self.name.clone())
        };
        let mut errors = Vec::new();
        let mut hosts = Vec::new();
        for text in &self.hosts {
            match self.host(text, allowed) {
                Ok(host) => hosts.push(host),
                Err(why) => errors.push(error(format!("its host `{text}`: {why}"))),
            }
        }
        if self.hosts.is_empty() {
            errors.push(error("it names no host to send it to".into()));
        }
        let made = self.header().and_then(|(header, template)| {
            let value = self.value(&template, secrets)?;
            Ok((header, value))
        });
        match made {
            Ok((header, value)) if errors.is_empty() => Ok(Gateway {
                name: self.name.clone(),
                header,
                hosts,
                yields: false,
                value,
            }),
            Ok(_) => Err(errors),
            Err(why) => {
                errors.push(error(why));
                Err(errors)
            }
        }
    }

    fn host(&self, text: &str, allowed: &[Pattern]) -> Result<Pattern, String> {
        let host = Pattern::parse(text)?;
        if host.is_wildcard() {
            return Err("a secret is sent to hosts that are spelled out, not to all below a name".into());
        }
        if !host.is_private() {
            return Err("a secret is sent over `https`, or to this machine".into());
        }
        if !allowed.iter().any(|grant| grant.covers(&host)) {
            return Err(format!(
                "no entry of `network.allow` covers it, so no request could carry it; add `{host}` there"
            ));
        }
        Ok(host)
    }

    /// The header's name, and its value with `{}` in it.
    fn header(&self) -> Result<(HeaderName, String), String> {
        let (name, template) = self
            .header
            .split_once(':')
            .ok_or("its `header` is not `Name: value` with `{}` in the value")?;
        let template = template.trim();
        if template.matches("{}").count() != 1 {
            return Err("the value of its `header` has `{}` exactly once, where the secret goes".into());
        }
        let name = HeaderName::try_from(name.trim()).map_err(|_| "the name of its `header` is not one".to_owned())?;
        let own = [
            http::header::HOST,
            http::header::CONTENT_LENGTH,
            http::header::TRANSFER_ENCODING,
        ];
        if own.contains(&name) {
            return Err(format!("the header `{name}` is the connection's own"));
        }
        Ok((name, template.to_owned()))
    }

    fn value(&self, template: &str, secrets: Option<&dyn Secrets>) -> Result<HeaderValue, String> {
        if !super::is_variable(&self.name) {
            return Err("its name is not that of a variable: letters, digits and `_`, no digit first".into());
        }
        let secrets = secrets.ok_or("this host has no place where secrets come from")?;
        let value = secrets
            .expand(&format!("${{{}}}", self.name))
            .map_err(|error| error.message.clone())?;
        if value.is_empty() {
            return Err("the variable is empty".into());
        }
        secrets.protect(&Secret::new(value.clone()));
        let whole = template.replace("{}", &value);
        // Not shown: the message would hold the value.
        let mut header = HeaderValue::try_from(whole).map_err(|_| {
            "its value does not fit a header: it has a line break or another control character".to_owned()
        })?;
        header.set_sensitive(true);
        Ok(header)
    }
}

/// Secrets that tools would see all the same, as a variable of their environment.
pub(super) fn shown(secrets: &[SecretGrant], env: &[String]) -> Vec<Error> {
    let shown = secrets.iter().filter(|secret| env.contains(&secret.name));
    let error = |secret: &SecretGrant| {
        let name = &secret.name;
        let message =
            format!("the secret `{name}` is granted as an environment variable, too, where every tool reads it");
        Error::new(&codes::GRANT_SECRET, message).with("secret", name.clone())
    };
    shown.map(error).collect()
}

/// Secrets of which two would set the same header of one request.
pub(super) fn clashes(gateways: &[Gateway]) -> Vec<Error> {
    let mut errors = Vec::new();
    for (at, one) in gateways.iter().enumerate() {
        for other in &gateways[at + 1..] {
            let shared = one.hosts.iter().find(|host| other.hosts.contains(host));
            if let (true, Some(host)) = (one.header == other.header, shared) {
                let message = format!(
                    "the secrets `{}` and `{}` both set the header `{}` of requests to {host}",
                    one.name, other.name, one.header
                );
                errors.push(Error::new(&codes::GRANT_SECRET, message).with("secret", other.name.clone()));
            }
        }
    }
    errors
}
