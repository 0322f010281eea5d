//! Stories of the scripted provider, driven over real sockets by a plain HTTP client.

mod client;
mod faults;
mod misbehaving;
mod program;
mod replies;
mod rules;
