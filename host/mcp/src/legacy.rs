//! The generation of MCP with a handshake: 2025-11-25 and before.
//!
//! Nothing here depends on the handshake having happened: a client that starts with `tools/list` gets its list.

use std::sync::Arc;

use capsule_api::ToolSpec;
use capsule_net::Body;
use http::{HeaderMap, Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::{
    calls,
    service::{Client, Inner, Listed},
    wire::{self, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError},
};

/// The versions that are served, the one offered to strangers first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Answers a request.
pub(crate) async fn request(
    service: &Arc<Inner>,
    headers: &HeaderMap,
    id: Value,
    method: &str,
    params: Map<String, Value>,
) -> Response<Body> {
    let outcome = match method {
        "initialize" => Ok(initialize(service, &params)),
        "ping" | "tools/list" | "tools/call" if !version_is_served(headers) => {
            let error = RpcError::new(
                INVALID_REQUEST,
                format!("the MCP-Protocol-Version is none of {}", VERSIONS.join(", ")),
            );
            return wire::json_response(StatusCode::BAD_REQUEST, &wire::answer(&id, Err(error)));
        }
        "ping" => Ok(json!({})),
        "tools/list" => Ok(list(service)),
        "tools/call" => return calls::answer(service, headers, id, params).await,
        // Also `server/discover`, which asks for the other generation. The status is 200: clients of this one take another for a broken server.
        _ => Err(RpcError::new(
            METHOD_NOT_FOUND,
            format!("there is no method `{}`", cut(method)),
        )),
    };
    wire::json_response(StatusCode::OK, &wire::answer(&id, outcome))
}

/// Takes a notification. One that is unknown is nobody's business.
pub(crate) fn notification(service: &Inner, method: &str, params: &Map<String, Value>) {
    if method == "notifications/cancelled"
        && let Some(id) = params.get("requestId")
    {
        service.calls.cancel(id);
    }
}

/// A missing header is a client of the first version that had it, or one that forgets it.
fn version_is_served(headers: &HeaderMap) -> bool {
    headers
        .get("mcp-protocol-version")
        .is_none_or(|version| VERSIONS.iter().any(|served| version.as_bytes() == served.as_bytes()))
}

fn initialize(service: &Inner, params: &Map<String, Value>) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let version = VERSIONS
        .into_iter()
        .find(|served| wanted == Some(served))
        .unwrap_or(VERSIONS[0]);
    let said = |key: &str| {
        let info = params.get("clientInfo").and_then(|info| info.get(key));
        cut(info.and_then(Value::as_str).unwrap_or_default())
    };
    service.client.send_replace(Client {
        name: said("name"),
        version: said("version"),
    });
    let options = &service.options;
    let mut result = json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": options.server_name, "version": options.server_version},
    });
    if let Some(instructions) = &options.instructions {
        result["instructions"] = json!(instructions);
    }
    result
}

fn cut(text: &str) -> String {
    text.chars().take(128).collect()
}

/// The whole catalogue: there is never a second page, so a cursor has no meaning.
fn list(service: &Inner) -> Value {
    let catalogue = service.dispatch.catalogue();
    let tools: Vec<_> = catalogue.tools.iter().map(|tool| describe(service, tool)).collect();
    let listed = Listed {
        client: service.client.borrow().clone(),
        tools: catalogue.tools.iter().map(|tool| tool.alias.clone()).collect(),
    };
    service.listed.send_replace(Some(listed));
    json!({ "tools": tools })
}

fn describe(service: &Inner, tool: &ToolSpec) -> Value {
    let mut description = json!({
        "name": tool.alias,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": {"readOnlyHint": tool.annotations.read_only},
    });
    if let Some(meta) = service.options.tool_meta.as_ref().and_then(|meta| meta(tool)) {
        description["_meta"] = meta;
    }
    description
}
