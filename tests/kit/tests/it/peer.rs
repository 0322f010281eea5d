//! The scripted transport's peer: it stands where the host's HTTP client is, so no state outside the stage is needed.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use capsule_api::{Bytes, Code, Error, ErrorKind, HttpBody, HttpClient, http};
use capsule_transport_kit::{Fault, Item, Reply, Script, Stop, async_trait};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const UNREACHABLE: Code = Code {
    id: "peer-unreachable",
    kind: ErrorKind::Network,
    meaning: "The scripted peer is gone.",
    remedy: "Nothing: the script wants it so.",
};

/// What the peer writes, one JSON value per chunk.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Frame {
    Piece { thinking: bool, text: String },
    BlockEnd { thinking: bool },
    Call { alias: String, arguments: Value },
    Stop(Stop),
}

pub(crate) struct Peer {
    replies: Mutex<VecDeque<Reply>>,
    seen: Mutex<Vec<String>>,
}

impl Peer {
    pub(crate) fn new(script: Script) -> Arc<Self> {
        Arc::new(Self {
            replies: Mutex::new(script.replies.into()),
            seen: Mutex::default(),
        })
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn frames(reply: &Reply) -> VecDeque<Frame> {
    let mut frames = VecDeque::new();
    let mut block = |thinking, chunks: &[String]| {
        let piece = |text: &String| Frame::Piece {
            thinking,
            text: text.clone(),
        };
        frames.extend(chunks.iter().map(piece));
        frames.push_back(Frame::BlockEnd { thinking });
    };
    let mut calls = VecDeque::new();
    for item in &reply.items {
        match item {
            Item::Say(chunks) => block(false, chunks),
            Item::Think(chunks) => block(true, chunks),
            Item::Call { alias, arguments } => calls.push_back(Frame::Call {
                alias: alias.clone(),
                arguments: arguments.clone(),
            }),
        }
    }
    frames.extend(calls);
    if matches!(reply.stop, Stop::Done | Stop::Refusal | Stop::MaxTokens) {
        frames.push_back(Frame::Stop(reply.stop));
    }
    frames
}

#[async_trait]
impl HttpClient for Peer {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Box<dyn HttpBody>>, Error> {
        let text = String::from_utf8(request.into_body().to_vec()).unwrap();
        self.seen.lock().unwrap().push(text);
        let reply = self.replies.lock().unwrap().pop_front();
        let reply = reply.ok_or_else(|| Error::new(&UNREACHABLE, "the script has no more replies"))?;
        let status = match reply.stop {
            Stop::Fault(Fault::Auth) => 401,
            Stop::Fault(Fault::Overloaded) => 529,
            _ => 200,
        };
        let body: Box<dyn HttpBody> = Box::new(Body(frames(&reply), reply.stop));
        Ok(http::Response::builder().status(status).body(body).unwrap())
    }
}

struct Body(VecDeque<Frame>, Stop);

#[async_trait]
impl HttpBody for Body {
    async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        match (self.0.pop_front(), self.1) {
            (Some(frame), _) => Ok(Some(serde_json::to_vec(&frame).unwrap().into())),
            (None, Stop::Hang) => std::future::pending().await,
            (None, Stop::Fault(Fault::Crash)) => Err(Error::new(&UNREACHABLE, "the connection broke")),
            (None, _) => Ok(None),
        }
    }
}
