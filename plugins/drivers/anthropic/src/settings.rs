//! The driver's settings.

use capsule_api::{
    BuiltDriver, Error, Secret, Services, Settings,
    http::{HeaderValue, Uri, uri::Scheme},
    serde_json::{Value, json},
};
use serde::Deserialize;

use crate::{codes, encode::Messages};

pub(crate) const EXAMPLE: &str = "\
transport: http
driver: anthropic
model: claude-sonnet-4-5
api_key: ${ANTHROPIC_API_KEY}
";

const DEFAULT_ENDPOINT: &str = "https://api.anthropic.com";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    endpoint: Option<String>,
    api_key: Option<Secret>,
    #[serde(default = "yes")]
    cache: bool,
}

fn yes() -> bool {
    true
}

/// JSON Schema of the settings.
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["api_key"],
        "properties": {
            "endpoint": {
                "type": "string", "default": DEFAULT_ENDPOINT,
                "description": "Base URL of the API, without `/v1/messages`: https, or http on loopback."
            },
            "api_key": {
                "type": "string", "writeOnly": true,
                "description": "The API key; write `${ANTHROPIC_API_KEY}`, not the key itself."
            },
            "cache": {
                "type": "boolean", "default": true,
                "description": "Ask the API to cache what the requests of a conversation have in common. Reading from the cache costs less, writing to it a little more."
            }
        },
        "additionalProperties": false
    })
}

/// Builds the wire. No I/O.
pub(crate) fn build(settings: Settings, services: &Services) -> Result<BuiltDriver, Error> {
    let own: Own = settings.decode(services.secrets.as_ref())?;
    let endpoint = messages_uri(own.endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT))?;
    let missing = || Error::new(&codes::KEY_MISSING, "`api_key`: there is no key for the Anthropic API");
    let key = own
        .api_key
        .filter(|key| !key.expose().trim().is_empty())
        .ok_or_else(missing)?;
    // A key with a line break or the like cannot be sent; the value is not shown.
    let key = HeaderValue::from_str(key.expose().trim()).map_err(|_| {
        missing()
            .reworded("`api_key`: the key has characters that no key has")
            .hint("Look for a line break or a quotation mark around the key.")
    })?;
    Ok(BuiltDriver::Wire(Box::new(Messages::new(endpoint, key, own.cache))))
}

/// The address of the Messages API below this base.
fn messages_uri(base: &str) -> Result<Uri, Error> {
    let wrong = |why: &str| Error::new(&codes::ENDPOINT, format!("`endpoint`: {why}"));
    let base = base.trim().trim_end_matches('/');
    let uri: Uri = format!("{base}/v1/messages")
        .parse()
        .map_err(|_| wrong("this is not a URL"))?;
    let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
        return Err(wrong("this is not a whole URL"));
    };
    if authority.as_str().contains('@') {
        return Err(wrong(
            "a URL with a user name or password is not accepted; the key goes into `api_key`",
        ));
    }
    if uri.query().is_some() || base.contains('#') {
        return Err(wrong("the base URL may have no query and no fragment"));
    }
    match scheme.as_str() {
        "https" => Ok(uri),
        "http" if *scheme == Scheme::HTTP && is_loopback(authority.host()) => Ok(uri),
        "http" => Err(wrong(
            "plain http is accepted on loopback only, because the key would be readable on the way",
        )),
        other => Err(wrong(&format!("the scheme `{other}` is neither https nor http"))),
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(base: &str) -> Result<String, String> {
        let made = messages_uri(base);
        made.map(|uri| uri.to_string()).map_err(|error| error.message.clone())
    }

    #[test]
    fn a_base_url_is_joined_with_the_path_whether_or_not_it_ends_in_a_slash() {
        let messages = |base: &str| format!("{base}/v1/messages");
        assert_eq!(uri(DEFAULT_ENDPOINT), Ok(messages("https://api.anthropic.com")));
        assert_eq!(
            uri("https://gateway.example/anthropic/"),
            Ok(messages("https://gateway.example/anthropic"))
        );
        assert_eq!(uri("http://127.0.0.1:8080//"), Ok(messages("http://127.0.0.1:8080")));
        assert_eq!(uri("http://[::1]:8080"), Ok(messages("http://[::1]:8080")));
        assert_eq!(uri("http://localhost:1"), Ok(messages("http://localhost:1")));
    }

    #[test]
    fn an_endpoint_that_would_show_the_key_is_refused() {
        for base in [
            "http://api.anthropic.com",
            "http://127.0.0.1.evil.example",
            "http://10.0.0.1",
        ] {
            assert!(uri(base).unwrap_err().contains("on loopback only"), "{base}");
        }
        for base in [
            "",
            "api.anthropic.com",
            "ftp://x.example",
            "https://u:p@x.example",
            "https://x.example/?a=b",
        ] {
            assert!(uri(base).is_err(), "{base}");
        }
    }
}
