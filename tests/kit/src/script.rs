//! What the scripted model says.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The model's replies, one per request, in the order in which requests arrive at the peer. Plain data: a fixture may hand it to another
/// process as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// The replies. A request after the last one is a fault of the transport; a peer answers it with any error.
    pub replies: Vec<Reply>,
}

impl Script {
    /// A script of these replies.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            replies: replies.into_iter().collect(),
        }
    }

    /// A script of one reply.
    pub fn of(reply: Reply) -> Self {
        Self::new([reply])
    }
}

/// The model's reply to one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// What it writes, in order.
    pub items: Vec<Item>,
    /// How it ends.
    pub stop: Stop,
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// One block of text, written in these chunks.
    Say(Vec<String>),
    /// One block of reasoning, written in these chunks. A peer whose model has none leaves it out.
    Think(Vec<String>),
    /// A tool call.
    Call {
        /// The tool's alias: the name that a model knows.
        alias: String,
        /// The arguments; an object.
        arguments: Value,
    },
}

/// How a reply ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model is done: the end of its turn, or the calls that it made.
    #[default]
    Done,
    /// The model refused.
    Refusal,
    /// The model was cut by its output limit.
    MaxTokens,
    /// After the items nothing more is sent; the connection stays open until the transport closes it.
    Hang,
    /// The request fails.
    Fault(Fault),
}

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// In place of the items: the provider is overloaded. A second try gets the next reply.
    Overloaded,
    /// In place of the items, now and at every later request: the credential is refused.
    Auth,
    /// After the items: the stream ends in the middle. So does every later request.
    Cut,
    /// After the items the peer dies: a program exits, a server closes all connections. It does not come back.
    Crash,
}

impl Reply {
    /// A reply of one text in these chunks.
    pub fn say<'a>(chunks: impl IntoIterator<Item = &'a str>) -> Self {
        Self::default().and(Item::Say(chunks.into_iter().map(str::to_owned).collect()))
    }

    /// A reply of one tool call.
    pub fn call(alias: &str, arguments: Value) -> Self {
        Self::default().and_call(alias, arguments)
    }

    /// A reply that is only a fault.
    pub fn fault(fault: Fault) -> Self {
        Self::default().stop(Stop::Fault(fault))
    }

    /// The same with one more call.
    #[must_use]
    pub fn and_call(self, alias: &str, arguments: Value) -> Self {
        let alias = alias.to_owned();
        self.and(Item::Call { alias, arguments })
    }

    /// The same with one more item.
    #[must_use]
    pub fn and(mut self, item: Item) -> Self {
        self.items.push(item);
        self
    }

    /// The same with another end.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// The text of the reply.
    pub fn text(&self) -> String {
        let says = self.items.iter().filter_map(|item| match item {
            Item::Say(chunks) => Some(chunks.concat()),
            _ => None,
        });
        says.collect()
    }
}
