//! A server with the tools of these tests, and its client.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use capsule_api::{CallId, HttpBody, HttpClient as _, Secret, SystemClock};
use capsule_mcp::{McpService, Options, Server, serve};
use capsule_net::NetClient;
use http::{Request, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::tools::Tools;

pub(crate) const TOKEN: &str = "0123456789abcdef";

pub(crate) struct Peer {
    pub(crate) tools: Arc<Tools>,
    pub(crate) drops: mpsc::UnboundedReceiver<CallId>,
    pub(crate) service: McpService,
    pub(crate) server: Server,
    client: NetClient,
}

pub(crate) fn options() -> Options {
    let mut options = Options::new("capsule", "1.2.3");
    // Long, so that no sign of life comes in between unless a test wants one.
    options.progress_every = Duration::from_secs(3600);
    options
}

impl Peer {
    pub(crate) async fn new(options: Options) -> Self {
        let (tools, drops) = Tools::new();
        let clock = Arc::new(SystemClock);
        let service = McpService::new(tools.clone(), clock.clone(), options);
        let server = serve(service.clone(), Secret::new(TOKEN), clock.clone()).await.unwrap();
        Self {
            tools,
            drops,
            service,
            server,
            client: NetClient::new(clock),
        }
    }

    pub(crate) fn request(&self) -> http::request::Builder {
        Request::post(self.server.url())
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    pub(crate) async fn send(&self, request: Request<Bytes>) -> Response<Box<dyn HttpBody>> {
        self.client.send(request).await.unwrap()
    }

    /// The status and the body of an answer, `null` where it is empty.
    pub(crate) async fn post(&self, body: impl ToString) -> (u16, Value) {
        let request = self.request().body(Bytes::from(body.to_string())).unwrap();
        read(self.send(request).await).await
    }

    /// A request of the generation without a handshake, with the headers that belong to it.
    pub(crate) async fn modern(&self, method: &str, params: Value) -> (u16, Value) {
        self.modern_with(method, params, &[]).await
    }

    /// The same with headers in the place of those, or besides; an empty one is left out.
    pub(crate) async fn modern_with(&self, method: &str, params: Value, headers: &[(&str, &str)]) -> (u16, Value) {
        let params = with_meta(params, "2026-07-28");
        let mut all = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        all.extend(params["name"].as_str().map(|name| ("mcp-name", name)));
        all.retain(|(name, _)| headers.iter().all(|(other, _)| other != name));
        all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = all
            .into_iter()
            .fold(self.request(), |request, (name, value)| request.header(name, value));
        read(self.send(request.body(Bytes::from(body.to_string())).unwrap()).await).await
    }

    /// Sends a call whose answer is not waited for; the connection stays until the response is dropped.
    pub(crate) fn call(&self, id: Value, name: &str, arguments: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
    }
}

/// Parameters with the `_meta` of the generation without a handshake, unless they have one.
pub(crate) fn with_meta(mut params: Value, version: &str) -> Value {
    if params.get("_meta").is_none() {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "a-cli", "version": "9.8"},
        });
    }
    params
}

pub(crate) async fn whole(response: Response<Box<dyn HttpBody>>) -> String {
    let mut body = response.into_body();
    let mut all = Vec::new();
    while let Some(piece) = body.chunk().await.unwrap() {
        all.extend_from_slice(&piece);
    }
    String::from_utf8(all).unwrap()
}

pub(crate) async fn read(response: Response<Box<dyn HttpBody>>) -> (u16, Value) {
    let status = response.status().as_u16();
    let body = whole(response).await;
    let value = if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_str(&body).unwrap()
    };
    (status, value)
}

/// The answer of a tool that gave this text.
pub(crate) fn result(id: Value, text: &str, is_error: bool) -> Value {
    let result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The same as the generation without a handshake has it.
pub(crate) fn complete(mut answer: Value) -> Value {
    answer["result"]["resultType"] = json!("complete");
    let info = json!({"name": "capsule", "version": "1.2.3"});
    answer["result"]["_meta"] = json!({"io.modelcontextprotocol/serverInfo": info});
    answer
}

pub(crate) fn error(id: Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
