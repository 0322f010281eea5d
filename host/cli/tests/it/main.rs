//! The real binary, as people and programs use it.
#![cfg(test)]

mod asking;
mod build;
mod commands;
mod component;
mod docs;
mod doctor;
mod examples;
mod first_steps;
mod guests;
mod http;
mod kinds;
mod languages;
mod manifests;
mod mcp;
mod mcp_judges;
mod peer;
mod pty;
mod rehearsal;
mod run;
mod secrets;
mod signals;
mod site;
mod standard_tools;
mod storage;
mod support;
mod tool_author;
mod traces;
mod transports;
