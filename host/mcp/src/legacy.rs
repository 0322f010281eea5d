//! The generation of MCP with a handshake: 2025-11-25 and before.
//!
//! Nothing here depends on the handshake having happened: a client that starts with `tools/list` gets its list.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::{
    calls, listing,
    reply::Reply,
    service::{Inner, Via},
    wire::{INVALID_REQUEST, METHOD_NOT_FOUND, Request, RpcError},
};

/// The versions that are served, the one offered to strangers first.
pub(crate) const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Answers a request.
pub(crate) async fn request(service: &Arc<Inner>, via: Via<'_>, request: Request) -> Reply {
    let id = request.id.clone();
    let result = match request.method.as_str() {
        "initialize" => initialize(service, &request.params),
        "ping" | "tools/list" | "tools/call" if !version_is_served(via) => {
            let message = format!("the MCP-Protocol-Version is none of {}", VERSIONS.join(", "));
            return Reply::error(StatusCode::BAD_REQUEST, &id, RpcError::new(INVALID_REQUEST, message));
        }
        "ping" => json!({}),
        "tools/list" => listing::tools(service, service.client.borrow().clone()),
        "tools/call" => return calls::answer(service, via, request, |_, result| result).await,
        // The status is 200: clients of this generation take another for a broken server, also where they probe for the other one.
        other => {
            let message = format!("there is no method `{}`", listing::cut(other));
            return Reply::error(StatusCode::OK, &id, RpcError::new(METHOD_NOT_FOUND, message));
        }
    };
    Reply::result(&id, result)
}

/// A missing header is a client of the first version that had it, or one that forgets it.
fn version_is_served(via: Via<'_>) -> bool {
    via.header("mcp-protocol-version")
        .is_none_or(|version| VERSIONS.iter().any(|served| version.as_bytes() == served.as_bytes()))
}

fn initialize(service: &Inner, params: &Map<String, Value>) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let version = VERSIONS
        .into_iter()
        .find(|served| wanted == Some(served))
        .unwrap_or(VERSIONS[0]);
    service.client.send_replace(listing::client(params.get("clientInfo")));
    let mut result = json!({
        "protocolVersion": version,
        "capabilities": listing::capabilities(),
        "serverInfo": listing::server_info(service),
    });
    if let Some(instructions) = &service.options.instructions {
        result["instructions"] = json!(instructions);
    }
    result
}
