//! The listener and the client over real sockets.
#![cfg(test)]

mod access;
mod client;
mod ends;
mod nine_rows;
mod policy;
mod proxy;
mod raw;
mod tls;
