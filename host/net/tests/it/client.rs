//! The client against real servers: one that behaves, and ones that do not.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use capsule_api::{Error, ErrorKind, HttpBody, HttpClient as _, Retry, SystemClock};
use capsule_net::{ClientOptions, Guard, Limits, NetClient, Server};
use http::{Method, Request, Response};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::raw::{LOOPBACK, Script, long, read_until};

pub(crate) fn client() -> NetClient {
    NetClient::new(Arc::new(SystemClock))
}

/// A server for everyone on this machine.
pub(crate) async fn open_server(script: &Script, limits: Limits) -> Server {
    let guard = Guard {
        hosts: Vec::new(),
        paths: ["/echo", "/wait", "/endless", "/silent", "/redirect"]
            .map(String::from)
            .into(),
        token: None,
        methods: vec![Method::POST],
        content_type: None,
    };
    let clock = Arc::new(SystemClock);
    Server::bind(LOOPBACK, guard, limits, clock, Arc::new(script.clone()))
        .await
        .unwrap()
}

pub(crate) fn post(url: &str) -> Request<Bytes> {
    Request::post(url).body(Bytes::from_static(b"{}")).unwrap()
}

pub(crate) async fn text(response: Response<Box<dyn HttpBody>>) -> Result<String, Error> {
    let mut body = response.into_body();
    let mut all = Vec::new();
    while let Some(piece) = body.chunk().await? {
        all.extend_from_slice(&piece);
    }
    Ok(String::from_utf8(all).unwrap())
}

/// Answers each connection with the next of `answers`, written as it is once the request is there, and closes it.
async fn raw_server(answers: Vec<&'static str>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let head = read_until(&mut stream, "{}").await;
            seen.lock().unwrap().push(head);
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            let _ = stream.read(&mut [0; 1]).await;
        }
    });
    (url, requests)
}

#[tokio::test]
async fn a_request_is_written_for_its_origin_whatever_the_caller_set() {
    let (url, requests) = raw_server(vec!["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"]).await;
    let mut request = post(&format!("{url}v1/messages?beta=true"));
    request.headers_mut().insert("host", "elsewhere.test".parse().unwrap());
    request.headers_mut().insert("x-api-key", "key".parse().unwrap());
    assert_eq!(text(client().send(request).await.unwrap()).await.unwrap(), "hi");
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let expected = format!(
        "POST /v1/messages?beta=true HTTP/1.1\r\nhost: {host}\r\nx-api-key: key\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    assert_eq!(*requests.lock().unwrap(), [expected]);
}

#[tokio::test]
async fn a_thousand_requests_in_a_row_use_one_connection() {
    let script = Script::new();
    let server = open_server(&script, long()).await;
    let client = client();
    for _ in 0..1000 {
        let response = client.send(post(&server.url("/echo"))).await.unwrap();
        assert_eq!(text(response).await.unwrap(), "2 bytes");
    }
    let peers: HashSet<_> = script.peers.lock().unwrap().iter().copied().collect();
    assert_eq!(peers.len(), 1);
    // The kept connection goes with the client, so a close has nothing to cut.
    drop(client);
    assert_eq!(server.close(std::time::Duration::from_secs(3600)).await, 0);
}

#[tokio::test]
async fn dropping_the_response_closes_its_connection() {
    let script = Script::new();
    let server = open_server(&script, long()).await;
    let mut body = client().send(post(&server.url("/endless"))).await.unwrap().into_body();
    assert!(body.chunk().await.unwrap().is_some());
    drop(body);
    script.drops.wait(1).await;
}

#[tokio::test]
async fn dropping_the_request_closes_its_connection() {
    let script = Script::new();
    let server = open_server(&script, long()).await;
    let client = client();
    tokio::select! {
        response = client.send(post(&server.url("/wait"))) => panic!("answered: {response:?}"),
        () = script.started(1) => {}
    }
    script.drops.wait(1).await;
}

#[tokio::test]
async fn h_15_a_redirect_is_returned_not_followed() {
    let server = open_server(&Script::new(), long()).await;
    let response = client().send(post(&server.url("/redirect"))).await.unwrap();
    let location = response.headers()["location"].to_str().unwrap();
    assert_eq!(
        (response.status().as_u16(), location),
        (302, "http://169.254.169.254/latest/meta-data/")
    );
}

async fn failure(answer: &'static str) -> Error {
    let (url, _) = raw_server(vec![answer]).await;
    match client().send(post(&url)).await {
        Err(error) => error,
        Ok(response) => text(response).await.unwrap_err(),
    }
}

#[tokio::test]
async fn broken_answers_are_told_apart() {
    let cases = [
        ("", "net-exchange", ErrorKind::Network, Retry::Later),
        (
            "HTTP/1.1 200 OK\r\ncontent-le",
            "net-exchange",
            ErrorKind::Network,
            Retry::Later,
        ),
        (
            "220 mail.test ESMTP ready\r\n",
            "net-protocol",
            ErrorKind::Protocol,
            Retry::Never,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc",
            "net-body",
            ErrorKind::Network,
            Retry::Later,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "net-body",
            ErrorKind::Network,
            Retry::Later,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense",
            "net-body",
            ErrorKind::Network,
            Retry::Later,
        ),
    ];
    for (answer, code, kind, retry) in cases {
        let error = failure(answer).await;
        assert_eq!(
            (error.code, error.kind, error.retry),
            (code, kind, retry),
            "{answer:?}: {error}"
        );
    }
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_a_connect_error() {
    let address = {
        let listener = TcpListener::bind(LOOPBACK).await.unwrap();
        listener.local_addr().unwrap()
    };
    let error = client().send(post(&format!("http://{address}/"))).await.unwrap_err();
    assert_eq!((error.code, error.retry), ("net-connect", Retry::Later));
    assert!(
        error
            .message
            .starts_with(&format!("no connection to `127.0.0.1`: {address}: ")),
        "{error}"
    );
}

#[tokio::test]
async fn a_kept_connection_that_the_server_has_closed_is_replaced() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
    let (url, requests) = raw_server(vec![answer, answer]).await;
    let client = NetClient::with_options(Arc::new(SystemClock), ClientOptions::default());
    assert_eq!(text(client.send(post(&url)).await.unwrap()).await.unwrap(), "hi");
    // The server closes right after its answer; whether the client has seen it yet or not, the error is worth another try.
    let second = async { text(client.send(post(&url)).await?).await };
    match second.await {
        Ok(answer) => assert_eq!((answer.as_str(), requests.lock().unwrap().len()), ("hi", 2)),
        Err(error) => assert_eq!((error.code, error.retry), ("net-exchange", Retry::Later)),
    }
}
