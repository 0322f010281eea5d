//! Who gets in, and that nobody keeps others out.

use capsule_net::Limits;
use tokio::io::AsyncWriteExt as _;

use crate::raw::{Script, TOKEN, ask, connect, long, post, read_to_end, read_until, server};

#[tokio::test]
async fn m_04_silent_connections_and_a_slow_call_delay_nobody() {
    let script = Script::new();
    let server = server(&script, long()).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(connect(&server).await);
    }
    let call = |path| post(&server, path, "content-length: 2\r\nconnection: close\r\n", "{}");
    let asking = async { tokio::join!(ask(&server, call("/wait")), ask(&server, call("/wait"))) };
    let letting_go = async {
        // Both are in the handler at once; a third is answered meanwhile.
        script.started(2).await;
        let third = ask(&server, call("/echo")).await.0;
        script.go.add_permits(2);
        third
    };
    let ((first, second), third) = tokio::join!(asking, letting_go);
    assert_eq!((first.0, second.0, third), (200, 200, 200));
}

#[tokio::test]
async fn m_05_get_and_delete_are_405_after_host_and_token() {
    let server = server(&Script::new(), Limits::default()).await;
    let host = server.local_addr();
    for method in ["GET", "DELETE", "OPTIONS", "PUT"] {
        let with = |host: &str, token: &str| format!("{method} /echo HTTP/1.1\r\nhost: {host}\r\n{token}\r\n");
        let good = format!("authorization: Bearer {TOKEN}\r\n");
        let (status, answer) = ask(&server, with(&host.to_string(), &good)).await;
        assert_eq!(
            (status, answer.contains("\r\nallow: POST\r\n")),
            (405, true),
            "{answer}"
        );
        let (status, answer) = ask(&server, with(&host.to_string(), "")).await;
        assert_eq!(
            (status, answer.contains("\r\nwww-authenticate: Bearer\r\n")),
            (401, true),
            "{answer}"
        );
        assert_eq!(ask(&server, with("evil.test", &good)).await.0, 403);
    }
}

#[tokio::test]
async fn m_08_a_web_page_is_refused_before_its_body_is_read() {
    let script = Script::new();
    let server = server(&script, long()).await;
    let host = server.local_addr().to_string();
    let port = server.local_addr().port();
    // The declared body never comes: an answer proves that nobody waited for it.
    let request = |host: &str, more: &str| {
        format!(
            "POST /echo HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: 9\r\n{more}\r\n"
        )
    };
    let cases = [
        ("evil.test", ""),
        (&format!("0.0.0.0:{port}"), ""),
        (&format!("localhost:{port}"), ""),
        (&host, "origin: null\r\n"),
        (&host, "origin: http://evil.test\r\n"),
        (&host, &format!("origin: http://{host}\r\n")),
        (&host, "origin: a\r\norigin: b\r\n"),
    ];
    for (host, more) in cases {
        assert_eq!(ask(&server, request(host, more)).await.0, 403, "{host} {more}");
    }
    assert_eq!(script.peers.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn discovery_paths_are_404_with_or_without_a_token() {
    let server = server(&Script::new(), Limits::default()).await;
    let host = server.local_addr();
    for path in ["/.well-known/oauth-authorization-server", "/register", "/"] {
        let bare = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        assert_eq!(ask(&server, bare).await.0, 404, "{path}");
        assert_eq!(
            ask(&server, post(&server, path, "content-length: 0\r\n", "")).await.0,
            404,
            "{path}"
        );
    }
}

#[tokio::test]
async fn one_connection_over_the_limit_waits_for_a_place() {
    let script = Script::new();
    let limits = Limits {
        connections: 1,
        ..long()
    };
    let server = server(&script, limits).await;
    let mut first = connect(&server).await;
    let request = post(&server, "/wait", "content-length: 2\r\n", "{}");
    first.write_all(request.as_bytes()).await.unwrap();
    script.started(1).await;
    let second = post(&server, "/echo", "content-length: 2\r\nconnection: close\r\n", "{}");
    let asking = ask(&server, &second);
    let freeing = async {
        script.go.add_permits(1);
        read_until(&mut first, "gone").await;
        // Only the first was served until now.
        assert_eq!(script.peers.lock().unwrap().len(), 1);
        drop(first);
    };
    let ((status, _), ()) = tokio::join!(asking, freeing);
    assert_eq!(status, 200);
}

#[tokio::test]
async fn m_04_silent_connections_give_way_to_whoever_may_ask() {
    let script = Script::new();
    let limits = Limits {
        connections: 2,
        ..long()
    };
    let server = server(&script, limits).await;
    let mut running = connect(&server).await;
    let request = post(&server, "/wait", "content-length: 2\r\n", "{}");
    running.write_all(request.as_bytes()).await.unwrap();
    script.started(1).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        let mut stream = connect(&server).await;
        stream.write_all(b"POST /echo HT").await.unwrap();
        silent.push(stream);
    }
    let call = post(&server, "/echo", "content-length: 2\r\nconnection: close\r\n", "{}");
    assert_eq!(ask(&server, &call).await.0, 200);
    for stream in &mut silent {
        assert_eq!(read_to_end(stream).await, "", "it had to go");
    }
    // Who was admitted stays, also where it has nothing to say.
    script.go.add_permits(1);
    read_until(&mut running, "gone").await;
    running.write_all(request.as_bytes()).await.unwrap();
    script.started(2).await;
}

#[tokio::test]
async fn a_panic_in_the_handler_costs_one_connection() {
    let server = server(&Script::new(), long()).await;
    let call = |path| post(&server, path, "content-length: 2\r\nconnection: close\r\n", "{}");
    assert_eq!(ask(&server, call("/panic")).await, (0, String::new()));
    assert_eq!(ask(&server, call("/echo")).await.0, 200);
}
