//! Clients that want in, want memory, or want everybody to wait.

use std::net::SocketAddr;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::peer::{Peer, TOKEN, options, result};

fn address(peer: &Peer) -> SocketAddr {
    let url = peer.server.url();
    url.trim_start_matches("http://")
        .trim_end_matches("/mcp")
        .parse()
        .unwrap()
}

/// A head with a line for each header; `%` stands for the bound address.
fn head(peer: &Peer, method: &str, headers: &[&str]) -> String {
    let lines = headers
        .iter()
        .map(|line| format!("{}\r\n", line.replace('%', &address(peer).to_string())));
    format!("{method} /mcp HTTP/1.1\r\n{}\r\n", lines.collect::<String>())
}

async fn status(peer: &Peer, bytes: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address(peer)).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The refusal ends the connection; a reset after it counts as the end.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    (answer[9..12].parse().unwrap(), answer)
}

const AUTH: &str = "authorization: Bearer 0123456789abcdef";
const JSON: &str = "content-type: application/json";

/// A call that is running while a hostile client does what it does.
async fn meanwhile<T>(peer: &Peer, hostile: impl Future<Output = T>) -> T {
    let hostile = async {
        peer.tools.started(1).await;
        let done = hostile.await;
        peer.tools.go.add_permits(1);
        done
    };
    let (answer, done) = tokio::join!(peer.post(peer.call(json!(1), "wait", json!({}))), hostile);
    assert_eq!(
        answer,
        (200, result(json!(1), "gone", false)),
        "the running call is not disturbed"
    );
    done
}

#[tokio::test]
async fn m_05_a_get_is_405_with_what_is_allowed_and_only_for_those_who_may_ask() {
    let peer = Peer::new(options()).await;
    for method in ["GET", "DELETE", "PUT", "OPTIONS"] {
        let (code, answer) = status(&peer, &head(&peer, method, &["host: %", AUTH])).await;
        assert_eq!(
            (code, answer.contains("allow: POST\r\n")),
            (405, true),
            "{method}: {answer}"
        );
        assert_eq!(status(&peer, &head(&peer, method, &["host: %"])).await.0, 401);
        assert_eq!(
            status(&peer, &head(&peer, method, &["host: evil.test", AUTH])).await.0,
            403
        );
    }
}

#[tokio::test]
async fn m_08_a_web_page_gets_nothing_whatever_it_knows() {
    assert_eq!(TOKEN, &AUTH[AUTH.len() - TOKEN.len()..]);
    let peer = Peer::new(options()).await;
    let port = address(&peer).port();
    let zero = format!("host: 0.0.0.0:{port}");
    let pages: [&[&str]; 7] = [
        &["host: evil.test", AUTH, JSON],
        &[&zero, AUTH, JSON],
        &["host: %.evil.test", AUTH, JSON],
        &["host: %", "origin: null", AUTH, JSON],
        &["host: %", "origin: http://%", AUTH, JSON],
        &["host: %", "origin: http://%", "origin: http://%", AUTH, JSON],
        &["host: %", "origin:", AUTH, JSON],
    ];
    meanwhile(&peer, async {
        for page in pages {
            // The body never comes: what is refused is refused by its head.
            let mut lines = page.to_vec();
            lines.push("content-length: 100");
            assert_eq!(status(&peer, &head(&peer, "POST", &lines)).await.0, 403, "{page:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_wrong_token_is_401_and_nothing_is_read_of_its_body() {
    let peer = Peer::new(options()).await;
    let wrong = [
        "x: y",
        "authorization: Bearer 0123456789abcdeF",
        "authorization: Bearer 0123456789abcde",
        "authorization: Bearer",
        "authorization: Basic MDEyMzQ1Njc4OWFiY2RlZg==",
    ];
    meanwhile(&peer, async {
        for token in wrong {
            let bytes = head(
                &peer,
                "POST",
                &["host: %", token, JSON, "content-length: 1099511627776"],
            );
            let (code, answer) = status(&peer, &bytes).await;
            assert_eq!(
                (code, answer.contains("www-authenticate: Bearer\r\n")),
                (401, true),
                "{token}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn m_13_a_body_of_one_tebibyte_is_413_whether_declared_or_sent() {
    let peer = Peer::new(options()).await;
    meanwhile(&peer, async {
        for length in ["10000000000", "1099511627776", "4194305"] {
            let length = format!("content-length: {length}");
            let bytes = head(&peer, "POST", &["host: %", AUTH, JSON, &length]);
            assert_eq!(status(&peer, &bytes).await.0, 413, "{length}");
        }
        // In chunks, of which the first says that it is as long.
        let mut bytes = head(&peer, "POST", &["host: %", AUTH, JSON, "transfer-encoding: chunked"]);
        bytes += "10000000000\r\n";
        bytes += &" ".repeat((4 << 20) + 1);
        assert_eq!(status(&peer, &bytes).await.0, 413);
        // Chunks within the limit are read.
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let mut bytes = head(
            &peer,
            "POST",
            &["host: %", AUTH, JSON, "connection: close", "transfer-encoding: chunked"],
        );
        for byte in ping.chars() {
            bytes += &format!("1\r\n{byte}\r\n");
        }
        assert_eq!(status(&peer, &(bytes + "0\r\n\r\n")).await.0, 200);
    })
    .await;
}

#[tokio::test]
async fn m_04_clients_that_say_nothing_or_half_a_head_keep_nobody_waiting() {
    let peer = Peer::new(options()).await;
    let mut idle = Vec::new();
    for half in [
        "",
        "P",
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1",
        "POST /mcp HTTP/1.1\r\nx: ",
    ] {
        for _ in 0..25 {
            let mut stream = TcpStream::connect(address(&peer)).await.unwrap();
            stream.write_all(half.as_bytes()).await.unwrap();
            idle.push(stream);
        }
    }
    // And calls overlap: each of the two is only let go once both run.
    let wait = |id: i32| peer.post(peer.call(json!(id), "wait", json!({})));
    let letting_go = async {
        peer.tools.started(2).await;
        peer.tools.go.add_permits(2);
    };
    let (one, two, ()) = tokio::join!(wait(1), wait(2), letting_go);
    assert_eq!((one.0, two.0), (200, 200));
}

#[tokio::test]
async fn sixteen_calls_overlap() {
    let peer = Peer::new(options()).await;
    let wait = |id: i32| peer.post(peer.call(json!(id), "wait", json!({})));
    let calls = futures_util::future::join_all((0..16).map(wait));
    let letting_go = async {
        peer.tools.started(16).await;
        peer.tools.go.add_permits(16);
    };
    let (answers, ()) = tokio::join!(calls, letting_go);
    assert!(answers.iter().all(|(code, _)| *code == 200), "{answers:?}");
}

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[tokio::test]
async fn ten_thousand_connections_cost_bounded_memory_and_no_running_call() {
    let peer = Peer::new(options()).await;
    let before = resident();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let length = format!("content-length: {}", ping.len());
    let asked = head(&peer, "POST", &["host: %", AUTH, JSON, "connection: close", &length]) + ping;
    meanwhile(&peer, async {
        // Waves, so that this process need not have ten thousand descriptors at once. Each is more than the listener has places.
        for wave in 0..20 {
            let mut held = Vec::new();
            for _ in 0..500 {
                let mut stream = TcpStream::connect(address(&peer)).await.unwrap();
                // It may have had to give way already.
                let _ = stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: ").await;
                held.push(stream);
            }
            // Whoever may ask gets in while they are all there.
            assert_eq!(status(&peer, &asked).await.0, 200, "wave {wave}");
        }
    })
    .await;
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more");
}
