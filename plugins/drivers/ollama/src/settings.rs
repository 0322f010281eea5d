//! The driver's settings.

use capsule_api::{
    BuiltDriver, Error, Services, Settings,
    http::Uri,
    serde_json::{Value, json},
};
use serde::Deserialize;

use crate::{codes, encode::Ollama};

pub(crate) const EXAMPLE: &str = "\
transport: http
driver: ollama
model: qwen3
";

const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:11434";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    endpoint: Option<String>,
}

/// JSON Schema of the settings.
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "endpoint": {
                "type": "string", "default": DEFAULT_ENDPOINT,
                "description": "Base URL of the server, without `/api/chat`: https, or http on loopback."
            }
        },
        "additionalProperties": false
    })
}

/// Builds the wire. No I/O.
pub(crate) fn build(settings: Settings, services: &Services) -> Result<BuiltDriver, Error> {
    let own: Own = settings.decode(services.secrets.as_ref())?;
    let endpoint = chat_uri(own.endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT))?;
    Ok(BuiltDriver::Wire(Box::new(Ollama::new(endpoint))))
}

/// The address of the chat API below this base.
fn chat_uri(base: &str) -> Result<Uri, Error> {
    let wrong = |why: &str| Error::new(&codes::ENDPOINT, format!("`endpoint`: {why}"));
    let base = base.trim().trim_end_matches('/');
    let uri: Uri = format!("{base}/api/chat")
        .parse()
        .map_err(|_| wrong("this is not a URL"))?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(wrong("this is not a whole URL"));
    };
    if authority.as_str().contains('@') {
        return Err(wrong("a URL with a user name or password is not accepted"));
    }
    if uri.query().is_some() || base.contains('#') {
        return Err(wrong("the base URL may have no query and no fragment"));
    }
    match scheme {
        "https" => Ok(uri),
        "http" if is_loopback(authority.host()) => Ok(uri),
        "http" => Err(wrong(
            "plain http is accepted on loopback only, because the conversation would be readable on the way",
        )),
        other => Err(wrong(&format!("the scheme `{other}` is neither https nor http"))),
    }
}

pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use capsule_api::{Billing, Wire};

    use super::*;

    fn uri(base: &str) -> Result<String, String> {
        let made = chat_uri(base);
        made.map(|uri| uri.to_string()).map_err(|error| error.message.clone())
    }

    #[test]
    fn a_base_url_is_joined_with_the_path() {
        let expected = |base: &str| Ok(format!("{base}/api/chat"));
        assert_eq!(uri(DEFAULT_ENDPOINT), expected("http://127.0.0.1:11434"));
        assert_eq!(uri("http://localhost:1//"), expected("http://localhost:1"));
        assert_eq!(uri("https://x.example/ollama/"), expected("https://x.example/ollama"));
    }

    #[test]
    fn a_server_of_this_machine_is_free_and_of_another_one_nobody_knows() {
        let billing = |base| Wire::billing(&Ollama::new(chat_uri(base).unwrap()));
        let found = [DEFAULT_ENDPOINT, "http://[::1]:11434", "https://x.example"].map(billing);
        assert_eq!(found, [Billing::Free, Billing::Free, Billing::Unknown]);
    }

    #[test]
    fn an_endpoint_that_is_none_or_readable_on_the_way_is_refused() {
        assert!(uri("http://10.0.0.1:11434").unwrap_err().contains("on loopback only"));
        for base in [
            "",
            "x.example",
            "ftp://x.example",
            "https://u:p@x.example",
            "https://x.example/?a=b",
        ] {
            assert!(uri(base).is_err(), "{base}");
        }
    }
}
