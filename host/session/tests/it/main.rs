//! Runs of tasks on transports that behave and misbehave.
#![cfg(test)]

mod runs;
mod support;
mod traces;
