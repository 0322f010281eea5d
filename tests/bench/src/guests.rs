//! Components made here: a core module in WAT, a world in WIT.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::Result;

/// Returns its arguments.
pub(crate) fn echo() -> Result<Vec<u8>> {
    component(
        "(i32.store8 (i32.const 1024) (i32.const 0))
         (i32.store8 (i32.const 1040) (i32.const 1))
         (i32.store (i32.const 1044) (local.get $data))
         (i32.store (i32.const 1048) (local.get $length))
         (i32.const 1024)",
    )
}

/// Never ends.
pub(crate) fn spin() -> Result<Vec<u8>> {
    component("(loop $again (br $again)) unreachable")
}

/// A component whose `run` is `body`: it leaves a `tool-result` in memory and answers where. Memory is taken from the bottom up.
fn component(body: &str) -> Result<Vec<u8>> {
    let mut module = wat::parse_str(format!(
        r#"(module
  (memory (export "memory") 1)
  (global $top (mut i32) (i32.const 4096))
  (func (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32) (local $at i32)
    (local.set $at (global.get $top))
    (global.set $top (i32.add (local.get $at) (i32.and (i32.add (local.get $size) (i32.const 15)) (i32.const -16))))
    (if (i32.gt_u (global.get $top) (i32.const 65536)) (then unreachable))
    (local.get $at))
  (func (export "murmur:tool/run@0.1.0#run")
    (param $some i32) (param $data i32) (param $length i32) (param i32 i32 i32) (result i32)
    {body}))"#
    ))?;
    let mut resolve = Resolve::default();
    resolve.push_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit"))?;
    let world = "package bench:guest;\nworld guest { export murmur:tool/run@0.1.0; }";
    let package = resolve.push_str("guest.wit", world)?;
    let world = resolve.select_world(&[package], Some("guest"))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)?;
    Ok(ComponentEncoder::default().module(&module)?.encode()?)
}
