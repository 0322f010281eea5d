//! What a service says about itself and its tools, in both generations.

use capsule_api::ToolSpec;
use serde_json::{Value, json};

use crate::service::{Client, Inner, Listed};

/// Name and version, as `serverInfo` has them.
pub(crate) fn server_info(service: &Inner) -> Value {
    json!({"name": service.options.server_name, "version": service.options.server_version})
}

/// What the server can do. The catalogue is fixed, so there is no `listChanged`, and nothing to subscribe to.
pub(crate) fn capabilities() -> Value {
    json!({"tools": {}})
}

/// A client by its `clientInfo`.
pub(crate) fn client(info: Option<&Value>) -> Client {
    let said = |key: &str| {
        let text = info.and_then(|info| info.get(key)).and_then(Value::as_str);
        cut(text.unwrap_or_default())
    };
    Client {
        name: said("name"),
        version: said("version"),
    }
}

/// What a message of ours quotes from a client.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(128).collect()
}

/// The whole catalogue: there is never a second page, so a cursor has no meaning. Tells the service's owner that `client` has seen it.
pub(crate) fn tools(service: &Inner, client: Client) -> Value {
    let catalogue = service.dispatch.catalogue();
    let tools: Vec<_> = catalogue.tools.iter().map(|tool| describe(service, tool)).collect();
    service.listed.send_replace(Some(Listed {
        client,
        tools: catalogue.tools.iter().map(|tool| tool.alias.clone()).collect(),
    }));
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
