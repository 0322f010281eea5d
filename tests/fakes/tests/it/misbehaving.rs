//! The misbehaving client, against the provider as a server like any other.

use capsule_fakes::{Close, Ending, MAX_BODY_BYTES, MisbehavingClient, Outcome, Position, Provider, Reply, Script};

use crate::client::{hi, post};

const KEYS: &[(&str, &str)] = &[("x-api-key", "k"), ("anthropic-version", "2023-06-01")];

async fn provider() -> Provider {
    let script = Script::new().then(Reply::text("hi"));
    Provider::start(script).await.expect("a free loopback port")
}

#[tokio::test]
async fn an_unfinished_head_holds_nobody_up() {
    let provider = provider().await;
    let mut idle = MisbehavingClient::connect(provider.address()).await.unwrap();
    idle.send_partial_head("/v1/messages").await.unwrap();

    let got = post(&provider, &hi()).await;

    assert_eq!(got.joined("text"), "hi");
    provider.shutdown().await;
    let (read, _) = idle.read_to_end(1).await.unwrap();
    assert!(read.is_empty());
}

#[tokio::test]
async fn an_oversized_body_is_refused_unread() {
    let provider = provider().await;
    let mut client = MisbehavingClient::connect(provider.address()).await.unwrap();
    let length = MAX_BODY_BYTES as u64 + 1;
    client.announce_body("/v1/messages", length, KEYS).await.unwrap();
    client.send(&[b' '; 1024]).await.unwrap();

    let filler = vec![b' '; 64 * 1024];
    while client.send(&filler).await.is_ok() {}

    assert_eq!(
        provider.violations(),
        ["Request exceeds the maximum size of 33554432 bytes"]
    );
    provider.shutdown().await;
}

#[tokio::test]
async fn a_request_byte_by_byte_is_a_request() {
    let provider = provider().await;
    let body = hi().to_string();
    let mut client = MisbehavingClient::connect(provider.address()).await.unwrap();
    client
        .announce_body("/v1/messages", body.len() as u64, KEYS)
        .await
        .unwrap();

    client.send_byte_by_byte(body.as_bytes()).await.unwrap();

    assert_eq!(client.read_status(4096).await.unwrap(), 200);
    provider.assert_clean();
    provider.shutdown().await;
}

#[tokio::test]
async fn endless_headers_are_stopped() {
    let provider = provider().await;
    let mut client = MisbehavingClient::connect(provider.address()).await.unwrap();
    let limit = 64 * 1024 * 1024;

    assert!(client.send_endless_headers(limit).await < limit);

    assert!(provider.requests().is_empty());
    provider.shutdown().await;
}

#[tokio::test]
async fn a_client_that_resets_in_the_middle_is_recorded() {
    let script = Script::new().then(Reply::text("hi").stall(Position::Events(1)));
    let provider = Provider::start(script).await.unwrap();
    let body = hi().to_string();
    let mut client = MisbehavingClient::connect(provider.address()).await.unwrap();
    client
        .announce_body("/v1/messages", body.len() as u64, KEYS)
        .await
        .unwrap();
    client.send(body.as_bytes()).await.unwrap();
    provider.gate().reached(1).await;

    client.reset().unwrap();

    provider.wait_for_dropped(1).await;
    assert_eq!(provider.requests()[0].outcome, Outcome::Dropped);
    provider.shutdown().await;
}

#[tokio::test]
async fn a_reset_and_a_close_look_different_on_the_wire() {
    for (close, ending) in [(Close::Reset, Ending::Reset), (Close::Close, Ending::Closed)] {
        let cut = Reply::text("hi").cut(Position::Events(1), close);
        let provider = Provider::start(Script::new().then(cut)).await.unwrap();
        let body = hi().to_string();
        let mut client = MisbehavingClient::connect(provider.address()).await.unwrap();
        client
            .announce_body("/v1/messages", body.len() as u64, KEYS)
            .await
            .unwrap();
        client.send(body.as_bytes()).await.unwrap();

        let (read, ended) = client.read_to_end(64 * 1024).await.unwrap();

        assert_eq!(ended, ending);
        assert!(String::from_utf8_lossy(&read).contains("message_start"));
        provider.shutdown().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_before_its_request_is_whole_breaks_no_rule() {
    let provider = provider().await;
    let mut client = MisbehavingClient::connect(provider.address()).await.unwrap();
    client.announce_body("/v1/messages", 100, KEYS).await.unwrap();
    client.send(b"{").await.unwrap();
    client.half_close().await.unwrap();

    client.read_to_end(1).await.unwrap();

    let outcomes: Vec<_> = provider
        .other_requests()
        .into_iter()
        .map(|request| request.outcome)
        .collect();
    assert_eq!(outcomes, [Outcome::Dropped]);
    provider.assert_clean();
    provider.shutdown().await;
}
