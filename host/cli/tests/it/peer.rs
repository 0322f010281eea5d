//! A scripted model provider beside a test that is not async.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread::{self, JoinHandle},
};

use capsule_fakes::{Provider, Script};
use tokio::runtime::{Builder, Runtime};

use crate::support::Sandbox;

/// The key that the stories use. It must turn up nowhere.
pub(crate) const KEY: &str = "sk-test-5f2c9e81d4";

/// A proxy that refuses the first tunnel: its URL, with a password (`hunter2`), and what it was sent.
pub(crate) fn refusing_proxy() -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://user:hunter2@{}", listener.local_addr().unwrap());
    let asked = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            client.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        client.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").unwrap();
        String::from_utf8(head).unwrap()
    });
    (url, asked)
}

pub(crate) struct Peer {
    runtime: Runtime,
    provider: Option<Provider>,
}

impl Peer {
    pub(crate) fn start(script: Script) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let provider = Some(runtime.block_on(Provider::start(script)).unwrap());
        Self { runtime, provider }
    }

    pub(crate) fn provider(&self) -> &Provider {
        self.provider.as_ref().unwrap()
    }

    /// Waits until this many answers hang.
    pub(crate) fn wait_until_hanging(&self, count: usize) {
        self.runtime.block_on(self.provider().gate().reached(count));
    }

    /// The capsule `hello`, talking to this provider.
    pub(crate) fn hello(&self) -> Sandbox {
        let sandbox = Sandbox::new().with_hello().env("ANTHROPIC_API_KEY", KEY);
        self.configure(&sandbox, "");
        sandbox
    }

    /// Writes `work/hello/capsule.yaml` so that it talks to this provider; `more` are further lines of `inference`.
    pub(crate) fn configure(&self, sandbox: &Sandbox, more: &str) {
        let manifest = format!(
            "name: hello\nversion: 0.1.0\ndescription: Greets.\n\
             tools:\n  - {{name: hello, component: tools/hello.wasm}}\n  - {{name: read-file, component: tools/read-file.wasm}}\n\
             capabilities:\n  filesystem: [{{path: ./notes, at: /notes, mode: ro}}]\n\
             inference:\n  transport: http\n  model: claude-sonnet-4-5\n  driver: anthropic\n  endpoint: {}\n  \
             api_key: ${{ANTHROPIC_API_KEY}}\n  retry: {{max_retries: 0}}\n{more}",
            self.provider().url(),
        );
        sandbox.write("hello/capsule.yaml", manifest);
    }

    /// Ends it, after a look at whether every request was sound.
    #[track_caller]
    pub(crate) fn assert_clean(mut self) {
        let provider = self.provider.take().unwrap();
        provider.assert_clean();
        self.runtime.block_on(provider.shutdown());
    }
}
