//! The tools of a capsule, driven through the dispatch as a transport drives them. Guests are written in WAT and made into components
//! here, so that no WebAssembly toolchain is needed.
#![cfg(test)]

mod cache;
mod calls;
mod commands;
mod concurrency;
mod functions;
mod grants;
mod guests;
mod limits;
mod load;
mod on_demand;
mod prebuilt;
mod registry;
mod scripts;
mod skills;
mod support;
