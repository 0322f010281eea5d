//! A plain HTTP/1.1 client, one connection per request.

use bytes::{Bytes, BytesMut};
use capsule_fakes::Provider;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// What came back.
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    /// Whether HTTP ended in order.
    pub(crate) complete: bool,
}

/// An answer that is being read; its connection ends when this is dropped.
pub(crate) struct Open {
    pub(crate) response: Response<Incoming>,
    _connection: JoinSet<()>,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("a JSON body")
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).expect("the header is there");
        value.to_str().expect("a text header")
    }

    /// The data of all events.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.text.lines().filter_map(|l| l.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).expect("an event's data is JSON"))
            .collect()
    }

    /// The types of all events.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let kinds = self.events().into_iter();
        kinds
            .map(|event| event["type"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// The deltas' values under `key`, joined.
    pub(crate) fn joined(&self, key: &str) -> String {
        let events = self.events();
        let parts = events.iter().filter_map(|event| event["delta"][key].as_str());
        parts.collect()
    }
}

pub(crate) fn ask(messages: Value) -> Value {
    json!({
        "model": "claude-test",
        "max_tokens": 64,
        "stream": true,
        "messages": messages,
        "tools": [{"name": "hello", "input_schema": {"type": "object"}}],
    })
}

pub(crate) fn hi() -> Value {
    ask(json!([{"role": "user", "content": "hi"}]))
}

/// Sends a valid request with this body and reads the answer to its end.
pub(crate) async fn post(provider: &Provider, body: &Value) -> Got {
    read(open(provider, body).await.expect("an answer begins")).await
}

/// Sends a valid request with this body and returns when the answer's head is there.
pub(crate) async fn open(provider: &Provider, body: &Value) -> hyper::Result<Open> {
    let request = Request::post("/v1/messages?beta=true")
        .header("x-api-key", "sk-test")
        .header("anthropic-version", "2023-06-01")
        .header("content-type", "application/json");
    let body = Full::new(Bytes::from(body.to_string()));
    send(provider, request.body(body).expect("a sound request")).await
}

pub(crate) async fn plain(provider: &Provider, method: Method, path: &str) -> Got {
    let request = Request::builder().method(method).uri(path);
    let request = request.body(Full::default()).expect("a sound request");
    read(send(provider, request).await.expect("an answer begins")).await
}

pub(crate) async fn send(provider: &Provider, mut request: Request<Full<Bytes>>) -> hyper::Result<Open> {
    let host = provider.address().to_string();
    let host = host.parse().expect("an address is a header value");
    request.headers_mut().insert("host", host);
    let stream = TcpStream::connect(provider.address());
    let stream = TokioIo::new(stream.await.expect("the provider listens"));
    let (mut sender, connection) = http1::handshake(stream).await?;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        // The answer's body reports the same error.
        let _ = connection.await;
    });
    Ok(Open {
        response: sender.send_request(request).await?,
        _connection: tasks,
    })
}

pub(crate) async fn read(mut open: Open) -> Got {
    let mut bytes = BytesMut::new();
    let complete = loop {
        match open.response.frame().await {
            None => break true,
            Some(Err(_)) => break false,
            Some(Ok(frame)) => bytes.extend(frame.into_data().unwrap_or_default()),
        }
    };
    Got {
        status: open.response.status().as_u16(),
        headers: open.response.headers().clone(),
        text: String::from_utf8_lossy(&bytes).into_owned(),
        complete,
    }
}

/// The next piece of the body.
pub(crate) async fn next(open: &mut Open) -> String {
    let frame = open.response.frame().await.expect("the body goes on");
    let data = frame.expect("no error yet").into_data();
    String::from_utf8_lossy(&data.expect("a data frame")).into_owned()
}
