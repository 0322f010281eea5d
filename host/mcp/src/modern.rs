//! The generation of MCP without a handshake: 2026-07-28. Every request says its version and its client's abilities in `_meta`, and over
//! HTTP repeats in headers what a proxy routes by.

use std::sync::Arc;

use capsule_api::ToolSpec;
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::{
    calls, legacy, listing, mirror,
    reply::Reply,
    service::{Inner, Via},
    wire::{INVALID_PARAMS, METHOD_NOT_FOUND, Request, RpcError},
};

/// The version of this generation.
pub(crate) const VERSION: &str = "2026-07-28";

/// A header says something else than the body.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// The client did not declare an ability that the request needs.
const MISSING_CAPABILITY: i64 = -32021;
/// The version is not served.
const UNSUPPORTED_VERSION: i64 = -32022;

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Whether a request is of this generation. What it says decides, never who sends it.
pub(crate) fn is_meant(via: Via<'_>, request: &Request) -> bool {
    request.method == "server/discover"
        || meta(request).is_some_and(|meta| meta.contains_key(PROTOCOL_VERSION))
        || via.header("mcp-protocol-version").is_some_and(|value| value == VERSION)
}

fn meta(request: &Request) -> Option<&Map<String, Value>> {
    request.params.get("_meta").and_then(Value::as_object)
}

/// Answers a request.
pub(crate) async fn request(service: &Arc<Inner>, via: Via<'_>, request: Request) -> Reply {
    let id = request.id.clone();
    if let Err(error) = admit(service, via, &request) {
        return Reply::error(StatusCode::BAD_REQUEST, &id, error);
    }
    let result = match request.method.as_str() {
        "server/discover" => discover(service),
        "tools/list" => {
            let client = listing::client(meta(&request).and_then(|meta| meta.get(CLIENT_INFO)));
            fresh(listing::tools(service, client))
        }
        "tools/call" => return calls::answer(service, via, request, complete).await,
        // Also what only the other generation has, and `subscriptions/listen`: nothing that could be subscribed to is offered.
        other => {
            let message = format!("there is no method `{}`", listing::cut(other));
            return Reply::error(StatusCode::NOT_FOUND, &id, RpcError::new(METHOD_NOT_FOUND, message));
        }
    };
    Reply::result(&id, complete(service, result))
}

/// Everything that is checked before a request is looked at: what it says of itself, then that its headers say the same.
fn admit(service: &Inner, via: Via<'_>, request: &Request) -> Result<(), RpcError> {
    let missing = |what: &str| RpcError::new(INVALID_PARAMS, format!("`params.{what}` is missing"));
    let meta = meta(request).ok_or_else(|| missing("_meta"))?;
    let version = meta.get(PROTOCOL_VERSION).and_then(Value::as_str);
    let version = version.ok_or_else(|| missing(&format!("_meta[\"{PROTOCOL_VERSION}\"]")))?;
    let able = meta.get(CLIENT_CAPABILITIES).and_then(Value::as_object);
    let able = able.ok_or_else(|| missing(&format!("_meta[\"{CLIENT_CAPABILITIES}\"]")))?;
    if let Via::Http(headers) = via {
        mirror::same(headers, "mcp-protocol-version", version)?;
    }
    if version != VERSION {
        return Err(unsupported(version));
    }
    if let Via::Http(headers) = via {
        mirror::same(headers, "mcp-method", &request.method)?;
    }
    if request.method == "tools/call" {
        admit_call(service, via, &request.params, able)?;
    }
    Ok(())
}

fn admit_call(
    service: &Inner,
    via: Via<'_>,
    params: &Map<String, Value>,
    able: &Map<String, Value>,
) -> Result<(), RpcError> {
    let Some(name) = params.get("name").and_then(Value::as_str) else {
        return Err(calls::no_name());
    };
    // No result of ours asks for more, so these answer nothing.
    if let Some(answer) = ["inputResponses", "requestState"]
        .into_iter()
        .find(|key| params.contains_key(*key))
    {
        let message = format!("`params.{answer}` answers nothing that was asked");
        return Err(RpcError::new(INVALID_PARAMS, message));
    }
    let tool = service.dispatch.catalogue().by_alias(name);
    if let Via::Http(headers) = via {
        mirror::same(headers, "mcp-name", name)?;
        if let Some(tool) = tool {
            mirror::parameters(headers, &tool.input_schema, params.get("arguments"))?;
        }
    }
    match tool {
        Some(tool) => check_needs(service, tool, able),
        None => Ok(()),
    }
}

/// A tool of the catalogue needs nothing of its client; one that does is refused before it runs.
fn check_needs(service: &Inner, tool: &ToolSpec, able: &Map<String, Value>) -> Result<(), RpcError> {
    let needs = service
        .options
        .tool_needs
        .as_ref()
        .map_or(&[] as &[_], |needs| needs(tool));
    let missing = needs.iter().filter(|need| !able.contains_key(**need));
    let missing: Map<_, _> = missing.map(|need| ((*need).to_owned(), json!({}))).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the tool `{}` needs abilities that the client did not declare",
        tool.alias
    );
    Err(RpcError::new(MISSING_CAPABILITY, message).with(json!({"requiredCapabilities": missing})))
}

fn unsupported(version: &str) -> RpcError {
    let message = format!("version `{}` is not served", listing::cut(version));
    let data = json!({"supported": supported(), "requested": version});
    RpcError::new(UNSUPPORTED_VERSION, message).with(data)
}

fn supported() -> Vec<&'static str> {
    [VERSION].into_iter().chain(legacy::VERSIONS).collect()
}

fn discover(service: &Inner) -> Value {
    let mut result = json!({"supportedVersions": supported(), "capabilities": listing::capabilities()});
    if let Some(instructions) = &service.options.instructions {
        result["instructions"] = json!(instructions);
    }
    fresh(result)
}

/// Nothing may be kept: whoever waits for a client to ask for the tools must see it ask.
fn fresh(mut result: Value) -> Value {
    result["ttlMs"] = json!(0);
    result["cacheScope"] = json!("private");
    result
}

/// What every result of this generation says besides.
fn complete(service: &Inner, mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result["_meta"] = json!({SERVER_INFO: listing::server_info(service)});
    result
}
