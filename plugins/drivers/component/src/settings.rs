//! The driver's settings.

use std::path::{Path, PathBuf};

use capsule_api::{
    BuiltDriver, ByteSize, ComponentLimits, ComponentSpec, Credential, Error, HumanDuration, Secret, Services,
    Settings,
    http::{HeaderName, HeaderValue, Uri, header, uri::Scheme},
    serde_json::{Map, Value, json},
};
use serde::Deserialize;

use crate::{codes, driver::ComponentDriver};

pub(crate) const EXAMPLE: &str = "\
transport: http
driver: component
component: drivers/my-provider.wasm
endpoint: https://api.example.com/v1
model: example-1
api_key: ${EXAMPLE_API_KEY}
";

const DEFAULT_AUTH: &str = "Authorization: Bearer {}";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    component: PathBuf,
    endpoint: String,
    api_key: Option<Secret>,
    auth: Option<String>,
    #[serde(default)]
    driver_sees_key: bool,
    driver_name: Option<String>,
    #[serde(default)]
    driver_config: Map<String, Value>,
    #[serde(default)]
    component_limits: LimitSettings,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LimitSettings {
    deadline: Option<HumanDuration>,
    memory: Option<ByteSize>,
    output: Option<ByteSize>,
    http_body: Option<ByteSize>,
    concurrent_calls: Option<u32>,
}

impl LimitSettings {
    fn limits(&self) -> ComponentLimits {
        let mut limits = ComponentLimits::default();
        limits.deadline = self.deadline.map_or(limits.deadline, |deadline| deadline.0);
        limits.memory = self.memory.unwrap_or(limits.memory);
        limits.output = self.output.unwrap_or(limits.output);
        limits.http_body = self.http_body.unwrap_or(limits.http_body);
        limits.concurrent_calls = self.concurrent_calls.unwrap_or(limits.concurrent_calls);
        limits
    }
}

fn described(mut schema: Value, default: impl Into<Value>, description: &str) -> Value {
    schema["default"] = default.into();
    schema["description"] = description.into();
    schema
}

fn limits_schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "description": "Limits of each request of the component.",
        "properties": {
            "deadline": described(HumanDuration::schema(), "10m", "Wall-clock time of one request."),
            "memory": described(ByteSize::schema(), "256MiB", "Linear memory of one request; 64 KiB to 4 GiB."),
            "output": described(ByteSize::schema(), "16MiB", "What one answer, and the text that is streamed, may take; 1 KiB to 1 GiB."),
            "http_body": described(ByteSize::schema(), "64MiB", "The body of one HTTP request, and of one response; up to 1 GiB."),
            "concurrent_calls": {
                "type": "integer", "minimum": 1, "maximum": 1024, "default": 16,
                "description": "Requests that may run at once; others wait."
            }
        }
    })
}

/// JSON Schema of the settings.
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["component", "endpoint"],
        "properties": {
            "component": {
                "type": "string", "minLength": 1,
                "description": "The WebAssembly component, which exports `murmur:tool/run`; relative to the manifest."
            },
            "endpoint": {
                "type": "string",
                "description": "URL of the provider's API, handed to the component: https, or http on loopback. Its host is the only one that the component may reach."
            },
            "api_key": {
                "type": "string", "writeOnly": true,
                "description": "The key, which the host attaches to requests for the endpoint; write `${NAME}`, not the key itself."
            },
            "auth": {
                "type": "string", "default": DEFAULT_AUTH,
                "description": "The header that carries the key: `Name: value`, with `{}` for the key."
            },
            "driver_sees_key": {
                "type": "boolean", "default": false,
                "description": "Give the component the key as `MURMUR_INFERENCE_API_KEY`. For components that set the header themselves."
            },
            "driver_name": {
                "type": "string",
                "description": "What the component finds as `MURMUR_INFERENCE_DRIVER`; the name of its file where not given."
            },
            "driver_config": {
                "type": "object",
                "description": "What the component finds as `MURMUR_INFERENCE_DRIVER_CONFIG`, as JSON. It sees all of it: no place for secrets."
            },
            "component_limits": limits_schema()
        },
        "additionalProperties": false
    })
}

/// Builds the driver: loads the component. Blocks while it is compiled.
pub(crate) fn build(settings: Settings, services: &Services) -> Result<BuiltDriver, Error> {
    let own: Own = settings.decode(services.secrets.as_ref())?;
    let file = settings.path("component", &own.component)?;
    let endpoint = endpoint(&own.endpoint)?;
    let key = own.api_key.as_ref();
    let mut spec = ComponentSpec::new(&file, endpoint.clone());
    spec.limits = own.component_limits.limits();
    spec.credential = match key {
        Some(key) => {
            let mut credential = credential(own.auth.as_deref().unwrap_or(DEFAULT_AUTH), key)?;
            credential.yields = own.driver_sees_key;
            Some(credential)
        }
        None => None,
    };
    let components = services.components.as_ref().ok_or_else(|| {
        let message = "this program has no sandbox for a driver that is a component";
        Error::new(&codes::NO_SANDBOX, message)
    })?;
    let mut env = vec![
        ("ENDPOINT", Secret::new(own.endpoint.trim())),
        ("DRIVER", Secret::new(own.driver_name.unwrap_or_else(|| stem(&file)))),
        (
            "DRIVER_CONFIG",
            Secret::new(Value::Object(own.driver_config).to_string()),
        ),
        ("TRANSPORT", Secret::new("http")),
    ];
    if let (Some(key), true) = (key, own.driver_sees_key) {
        env.push(("API_KEY", key.clone()));
    }
    Ok(BuiltDriver::Driver(Box::new(ComponentDriver {
        component: components.load(spec)?,
        env,
        endpoint,
        has_key: key.is_some(),
        sees_key: key.is_some() && own.driver_sees_key,
    })))
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The header that carries the key.
fn credential(auth: &str, key: &Secret) -> Result<Credential, Error> {
    let wrong = |why: &str| Error::new(&codes::AUTH_HEADER, format!("`auth`: {why}"));
    let (name, template) = auth.split_once(':').ok_or_else(|| wrong("it is not `Name: value`"))?;
    let template = template.trim();
    if template.matches("{}").count() != 1 {
        return Err(wrong("the value has `{}` exactly once, where the key goes"));
    }
    let header = HeaderName::try_from(name.trim()).map_err(|_| wrong("this is not the name of a header"))?;
    let own = [
        header::HOST,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::CONNECTION,
    ];
    if own.contains(&header) {
        return Err(wrong("this header is the connection's own"));
    }
    let key = key.expose().trim();
    if key.is_empty() {
        return Err(Error::new(&codes::KEY_MISSING, "`api_key`: the key is empty"));
    }
    // The value is not shown.
    let mut value = HeaderValue::try_from(template.replace("{}", key)).map_err(|_| {
        Error::new(&codes::KEY_MISSING, "`api_key`: the key has characters that no key has")
            .hint("Look for a line break or a quotation mark around the key.")
    })?;
    value.set_sensitive(true);
    Ok(Credential {
        header,
        value,
        yields: false,
    })
}

fn endpoint(text: &str) -> Result<Uri, Error> {
    let wrong = |why: &str| Error::new(&codes::ENDPOINT, format!("`endpoint`: {why}"));
    let uri: Uri = text.trim().parse().map_err(|_| wrong("this is not a URL"))?;
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

pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
