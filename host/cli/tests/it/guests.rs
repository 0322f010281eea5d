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

/// A script that asks the tool `hello` to greet Ada, and shows what it says.
pub(crate) fn greeting_script() -> Vec<u8> {
    let wat = r#"(module
  (import "murmur:tool-registry/invoke@0.1.0" "invoke" (func $invoke (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "murmur:stream/events@0.1.0" "emit-chunk" (func $emit (param i32 i32)))
  (memory (export "memory") 1)
  (global $top (mut i32) (i32.const 4096))
  (func (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
    (global.get $top)
    (global.set $top (i32.and (i32.const -8)
      (i32.add (i32.const 7) (i32.add (global.get $top) (local.get $size))))))
  (data (i32.const 64) "hello{\"name\":\"Ada\"}")
  (func (export "murmur:capsule/run@0.1.0#run")
    (call $invoke (i32.const 64) (i32.const 5) (i32.const 1) (i32.const 69) (i32.const 14)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 128))
    (if (i32.load8_u (i32.const 128)) (then unreachable))
    (call $emit (i32.load (i32.const 152)) (i32.load (i32.const 156)))))"#;
    let world = "import murmur:tool-registry/invoke@0.1.0; import murmur:%stream/events@0.1.0;
        export murmur:capsule/run@0.1.0;";
    componentize(world, wat)
}

/// A tool that asks for a name and returns it. Its question would clear the screen of a terminal that obeyed it.
pub(crate) fn asks_a_name() -> Vec<u8> {
    let wat = r#"(module
  (import "murmur:task/task@0.1.0" "request-input" (func $ask (param i32 i32 i32)))
  (memory (export "memory") 2)
  (global $top (mut i32) (i32.const 4096))
  (func (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
    (global.get $top)
    (global.set $top (i32.and (i32.const -8)
      (i32.add (i32.const 7) (i32.add (global.get $top) (local.get $size))))))
  (data (i32.const 64) "What is\1b[2J your name?")
  (func (export "murmur:tool/run@0.1.0#run") (param i32 i32 i32 i32 i32 i32) (result i32)
    (call $ask (i32.const 64) (i32.const 22) (i32.const 128))
    (i32.store8 (i32.const 272) (i32.const 1))
    (i32.store (i32.const 276) (i32.load (i32.const 128)))
    (i32.store (i32.const 280) (i32.load (i32.const 132)))
    (i32.const 256)))"#;
    componentize("import murmur:task/task@0.1.0; export murmur:tool/run@0.1.0;", wat)
}

fn tool(body: &str) -> Vec<u8> {
    let wat = format!(
        r#"(module
  (memory (export "memory") 2)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
  (func (export "murmur:tool/run@0.1.0#run") (param i32 i32 i32 i32 i32 i32) (result i32) {body}))"#
    );
    componentize("export murmur:tool/run@0.1.0;", &wat)
}

fn componentize(world: &str, wat: &str) -> Vec<u8> {
    let mut module = wat::parse_str(wat).unwrap();
    let mut resolve = Resolve::default();
    resolve.push_dir(format!("{ROOT}/wit")).unwrap();
    let world = format!("package test:guest;\nworld guest {{ {world} }}");
    let package = resolve.push_str("guest.wit", &world).unwrap();
    let world = resolve.select_world(&[package], Some("guest")).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false).unwrap();
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .unwrap()
        .encode()
        .unwrap()
}
