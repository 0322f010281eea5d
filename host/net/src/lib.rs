//! The host's side of the network, in both directions.
//!
//! [`listener`] is the guarded HTTP/1.1 server behind the tool bridge and every other endpoint of the host: bounded in connections, bytes
//! and time, and closed to web pages and to anyone without the token. [`outbound`] is the HTTP client under the address policy: it
//! connects to nothing but an address that it has checked.
#![warn(missing_docs)]

pub mod codes;
pub mod listener;
pub mod outbound;

pub use listener::{Body, Guard, Handler, Limits, Server};
pub use outbound::{
    NetClient, Options as ClientOptions, PlainHttp, Proxy, Resolver, Roots, Stream, SystemResolver, never_connected_to,
};
