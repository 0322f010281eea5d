//! The settings of both drivers.

use capsule_api::{
    Billing, BuiltDriver, Bytes, Error, Secret, Services, Settings,
    http::{self, HeaderValue, Uri, header, uri::Scheme},
    serde_json::{Value, json},
};
use serde::Deserialize;

use crate::{chat::Chat, codes, responses::Responses};

pub(crate) const CHAT_EXAMPLE: &str = "\
transport: http
driver: openai
model: gpt-4.1-mini
api_key: ${OPENAI_API_KEY}
";

pub(crate) const RESPONSES_EXAMPLE: &str = "\
transport: http
driver: openai-responses
model: gpt-5-mini
api_key: ${OPENAI_API_KEY}
";

const DEFAULT_ENDPOINT: &str = "https://api.openai.com/v1";
/// Where a key is required, and where the limit of output tokens has its newer name.
const OWN_HOST: &str = "api.openai.com";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    endpoint: Option<String>,
    api_key: Option<Secret>,
    #[serde(default)]
    output_limit: Option<OutputLimit>,
}

/// The name under which Chat Completions takes the limit of output tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputLimit {
    /// What compatible endpoints know.
    MaxTokens,
    /// What OpenAI's reasoning models insist on.
    MaxCompletionTokens,
}

impl OutputLimit {
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// JSON Schema of the settings of `openai`.
pub(crate) fn chat_schema() -> Value {
    let mut schema = responses_schema();
    schema["properties"]["output_limit"] = json!({
        "type": "string", "enum": ["max_tokens", "max_completion_tokens"],
        "description": "The request's key for the limit of output tokens: by default `max_completion_tokens` at \
                        api.openai.com and `max_tokens` elsewhere."
    });
    schema
}

/// JSON Schema of the settings of `openai-responses`.
pub(crate) fn responses_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "endpoint": {
                "type": "string", "default": DEFAULT_ENDPOINT,
                "description": "Base URL of the API: https, or http on loopback. Without a path, `/v1` is added."
            },
            "api_key": {
                "type": "string", "writeOnly": true,
                "description": "The API key; write `${OPENAI_API_KEY}`, not the key itself. Required at api.openai.com; \
                                other endpoints may do without."
            }
        },
        "additionalProperties": false
    })
}

/// Builds the wire of `openai`. No I/O.
pub(crate) fn build_chat(settings: Settings, services: &Services) -> Result<BuiltDriver, Error> {
    let own: Own = settings.decode(services.secrets.as_ref())?;
    let endpoint = uri_of(own.endpoint.as_deref(), "chat/completions")?;
    let by_default = if is_own(&endpoint) {
        OutputLimit::MaxCompletionTokens
    } else {
        OutputLimit::MaxTokens
    };
    let key = authorization(own.api_key.as_ref(), &endpoint)?;
    let limit = own.output_limit.unwrap_or(by_default);
    Ok(BuiltDriver::Wire(Box::new(Chat::new(endpoint, key, limit))))
}

/// Builds the wire of `openai-responses`. No I/O.
pub(crate) fn build_responses(settings: Settings, services: &Services) -> Result<BuiltDriver, Error> {
    let own: Own = settings.decode(services.secrets.as_ref())?;
    let endpoint = uri_of(own.endpoint.as_deref(), "responses")?;
    let key = authorization(own.api_key.as_ref(), &endpoint)?;
    Ok(BuiltDriver::Wire(Box::new(Responses::new(endpoint, key))))
}

/// The value of the header `authorization`; none where there is no key and none is needed.
fn authorization(key: Option<&Secret>, endpoint: &Uri) -> Result<Option<HeaderValue>, Error> {
    let missing = |message: &str| Error::new(&codes::KEY_MISSING, message);
    let key = key.map(|key| key.expose().trim()).filter(|key| !key.is_empty());
    let Some(key) = key else {
        return if is_own(endpoint) {
            Err(missing("`api_key`: there is no key for the OpenAI API"))
        } else {
            Ok(None)
        };
    };
    // A key with a line break or the like cannot be sent; the value is not shown.
    let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
        missing("`api_key`: the key has characters that no key has")
            .hint("Look for a line break or a quotation mark around the key.")
    })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// The request of either API.
pub(crate) fn post(endpoint: &Uri, authorization: Option<&HeaderValue>, body: &Value) -> http::Request<Bytes> {
    let mut request = http::Request::new(Bytes::from(body.to_string()));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = endpoint.clone();
    let headers = request.headers_mut();
    if let Some(authorization) = authorization {
        headers.insert(header::AUTHORIZATION, authorization.clone());
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
    request
}

/// Who pays: the key; without one nobody at a server of this machine, and elsewhere whoever the server thinks of.
pub(crate) fn billing(endpoint: &Uri, authorization: Option<&HeaderValue>) -> Billing {
    match authorization {
        Some(_) => Billing::ApiKey,
        None if endpoint.host().is_some_and(is_loopback) => Billing::Free,
        None => Billing::Unknown,
    }
}

fn is_own(endpoint: &Uri) -> bool {
    endpoint.host().is_some_and(|host| host.eq_ignore_ascii_case(OWN_HOST))
}

/// The address of an API call below this base. A base without a path gets the usual one.
fn uri_of(base: Option<&str>, call: &str) -> Result<Uri, Error> {
    let wrong = |why: &str| Error::new(&codes::ENDPOINT, format!("`endpoint`: {why}"));
    let base = base.unwrap_or(DEFAULT_ENDPOINT).trim().trim_end_matches('/');
    let root: Uri = base.parse().map_err(|_| wrong("this is not a URL"))?;
    let version = if root.path().trim_matches('/').is_empty() {
        "/v1"
    } else {
        ""
    };
    if root.query().is_some() || base.contains('#') {
        return Err(wrong("the base URL may have no query and no fragment"));
    }
    let uri: Uri = format!("{base}{version}/{call}")
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
#[path = "settings_tests.rs"]
mod tests;
