//! The tools of a capsule, driven through the dispatch as a transport drives them. Guests are written in WAT and made into components
//! here, so that no WebAssembly toolchain is needed.
#![cfg(test)]

mod aftermath;
mod attacks_network;
mod attacks_resources;
mod cache;
mod calls;
mod commands;
mod concurrency;
mod drivers;
mod functions;
mod gateway;
mod grants;
mod guests;
mod guests_net;
mod limits;
mod load;
mod narrowing;
mod on_demand;
mod prebuilt;
mod registry;
mod scripts;
mod seeds;
mod skills;
mod support;
