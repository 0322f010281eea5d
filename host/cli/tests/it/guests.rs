//! Components made in the test.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::support::ROOT;

/// A tool that never ends by itself.
pub(crate) fn spin() -> Vec<u8> {
    tool("(loop $again (br $again)) unreachable")
}

/// A tool that traps.
pub(crate) fn trap() -> Vec<u8> {
    tool("unreachable")
}

/// A component that wants an interface which no host offers.
pub(crate) fn needs_a_database() -> Vec<u8> {
    wat::parse_str(r#"(component (import "acme:database/query@1.0.0" (instance (export "run" (func)))))"#).unwrap()
}

fn tool(body: &str) -> Vec<u8> {
    let wat = format!(
        r#"(module
  (memory (export "memory") 2)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
  (func (export "murmur:tool/run@0.1.0#run") (param i32 i32 i32 i32 i32 i32) (result i32) {body}))"#
    );
    let mut module = wat::parse_str(wat).unwrap();
    let mut resolve = Resolve::default();
    resolve.push_dir(format!("{ROOT}/wit")).unwrap();
    let world = "package test:guest;\nworld guest { export murmur:tool/run@0.1.0; }";
    let package = resolve.push_str("guest.wit", world).unwrap();
    let world = resolve.select_world(&[package], Some("guest")).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false).unwrap();
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .unwrap()
        .encode()
        .unwrap()
}
