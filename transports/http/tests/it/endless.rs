//! Providers whose answers do not end, and one that cannot be read.

use std::time::Duration;

use capsule_api::{Cancel, Error, ErrorKind, serde_json::json};
use capsule_fakes::{Answer, Script};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::stand::{Ended, Stand, spec};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const PING: &str = "event: ping\ndata: {\"type\": \"ping\"}\n\n: still here\n\n";
const TEXT: &str = "event: content_block_start\n\
data: {\"type\": \"content_block_start\", \"index\": 0, \"content_block\": {\"type\": \"text\", \"text\": \"\"}}\n\n";

const IDLE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_secs(20);

/// A turn at a provider that says what the test says, when the test says it.
struct Told {
    stand: Stand,
    running: JoinHandle<Ended>,
    says: mpsc::UnboundedSender<&'static str>,
}

impl Told {
    /// The request is here, and nothing was answered.
    async fn asked() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (says, mut told) = mpsc::unbounded_channel::<&str>();
        let (asked, is_asked) = oneshot::channel();
        tokio::spawn(async move {
            let (mut peer, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                assert_ne!(peer.read_buf(&mut request).await.unwrap(), 0);
            }
            asked.send(()).unwrap();
            while let Some(text) = told.recv().await {
                // The client may have given up.
                let _ = peer.write_all(text.as_bytes()).await;
            }
        });
        let settings = json!({"endpoint": endpoint, "idle_timeout": "30s", "retry": {"max_retries": 0}});
        let mut stand = Stand::with(Script::new(), &settings, spec()).await;
        let running = stand.start("go", Cancel::new());
        is_asked.await.unwrap();
        Self { stand, running, says }
    }

    /// What the provider says after 20 of the 30 s that it may be silent.
    async fn says(&self, text: &'static str) {
        self.stand.clock.pass_part(IDLE, STEP).await;
        self.says.send(text).unwrap();
    }

    async fn gives_up_after(mut self, rest: Duration) -> Error {
        self.stand.clock.pass(rest).await;
        self.stand.end(self.running).await.unwrap_err()
    }
}

#[tokio::test]
async fn pings_alone_keep_an_answer_alive_for_ten_times_the_idle_time_out() {
    let provider = Told::asked().await;
    provider.says(HEAD).await;
    for _ in 0..14 {
        provider.says(PING).await;
    }
    // 280 s after the head the 300 s are nearer than the end of another silence.
    let error = provider.gives_up_after(STEP).await;
    assert_eq!((error.code, error.kind), ("http-idle", ErrorKind::Network));
    assert_eq!(
        error.message,
        "the provider sent nothing that belongs to its answer for 5m"
    );
}

#[tokio::test]
async fn an_answer_that_goes_on_begins_the_time_of_pings_anew() {
    let provider = Told::asked().await;
    provider.says(HEAD).await;
    for _ in 0..14 {
        provider.says(PING).await;
    }
    provider.stand.clock.pass_part(STEP, STEP / 2).await;
    provider.says.send(TEXT).unwrap();
    for _ in 0..14 {
        provider.says(PING).await;
    }
    let error = provider.gives_up_after(STEP).await;
    assert_eq!(error.code, "http-idle");
}

#[tokio::test]
async fn a_refusal_is_told_though_its_body_drips_for_ever() {
    let provider = Told::asked().await;
    provider
        .says("HTTP/1.1 401 Unauthorized\r\ncontent-length: 1000\r\n\r\n")
        .await;
    provider.says("{").await;
    let error = provider.gives_up_after(IDLE - STEP).await;
    assert_eq!((error.code, error.kind), ("anthropic-auth", ErrorKind::Auth));
}

#[tokio::test]
async fn a_compressed_answer_is_named_and_was_not_asked_for() {
    let answer = Answer::text(200, "text/event-stream", "\u{1f}not readable").header("content-encoding", "gzip");
    let mut stand = Stand::new(Script::new().then(answer)).await;
    let error = stand.turn("go").await.unwrap_err();
    assert_eq!((error.code, error.kind), ("http-not-a-stream", ErrorKind::Protocol));
    assert_eq!(
        error.message,
        "the endpoint answered with the content encoding `gzip`, which was not asked for"
    );
    assert_eq!(stand.provider.requests()[0].header("accept-encoding"), Some("identity"));
}
