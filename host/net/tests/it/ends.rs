//! How requests end: by the client, by the server's close, by its drop.

use std::time::Duration;

use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::raw::{Script, connect, long, post, read_to_end, read_until, server};

const LONG: Duration = Duration::from_secs(3600);

async fn begin(server: &capsule_net::Server, script: &Script, path: &str) -> TcpStream {
    let mut stream = connect(server).await;
    let request = post(server, path, "content-length: 2\r\n", "{}");
    stream.write_all(request.as_bytes()).await.unwrap();
    script.started(1).await;
    stream
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_handler() {
    let script = Script::new();
    let server = server(&script, long()).await;
    drop(begin(&server, &script, "/wait").await);
    script.drops.wait(1).await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_a_stream_that_has_nothing_to_say() {
    let script = Script::new();
    let server = server(&script, long()).await;
    let mut stream = begin(&server, &script, "/silent").await;
    read_until(&mut stream, "\r\n\r\n").await;
    drop(stream);
    script.drops.wait(1).await;
}

#[tokio::test]
async fn close_lets_a_running_request_end_and_takes_no_new_one() {
    let script = Script::new();
    let server = server(&script, long()).await;
    let address = server.local_addr();
    let mut running = begin(&server, &script, "/wait").await;
    let mut unused = connect(&server).await;
    let mut half = connect(&server).await;
    half.write_all(b"POST /echo HT").await.unwrap();
    let mut kept = begin(&server, &script, "/echo").await;
    read_until(&mut kept, "2 bytes").await;
    let closing = tokio::spawn(server.close(LONG));
    // Connections without a request end at once, and the port is free again.
    assert_eq!(read_to_end(&mut unused).await, "");
    assert_eq!(read_to_end(&mut half).await, "");
    assert_eq!(read_to_end(&mut kept).await, "");
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    script.go.add_permits(1);
    let answer = read_to_end(&mut running).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("gone"),
        "{answer}"
    );
    assert_eq!(closing.await.unwrap(), 0);
}

#[tokio::test]
async fn close_cuts_what_does_not_end_within_the_grace() {
    let script = Script::new();
    let server = server(&script, long()).await;
    let mut waiting = begin(&server, &script, "/wait").await;
    let mut streaming = begin(&server, &script, "/silent").await;
    assert_eq!(server.close(Duration::ZERO).await, 2);
    // Both are over when `close` returns: nothing to wait for here.
    script.drops.wait(2).await;
    read_to_end(&mut waiting).await;
    read_to_end(&mut streaming).await;
}

#[tokio::test]
async fn dropping_the_server_ends_everything() {
    let script = Script::new();
    let server = server(&script, long()).await;
    let mut waiting = begin(&server, &script, "/wait").await;
    drop(server);
    assert_eq!(read_to_end(&mut waiting).await, "");
    script.drops.wait(1).await;
}
