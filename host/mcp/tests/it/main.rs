//! The server over real HTTP, as clients of MCP see it.
#![cfg(test)]

mod any_bytes;
mod calls;
mod ends;
mod handshake;
mod hostile;
mod lines;
mod modern;
mod peer;
mod progress;
mod tools;
