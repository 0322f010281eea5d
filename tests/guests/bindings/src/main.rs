//! Writes the bindings of the guest SDK (`plugins/tools/sdk/src/bindings.rs`) from `wit/`.
//!
//! `guest-bindings` writes the file; `guest-bindings --check` compares and fails when it differs.
//! The bindings are committed, so that a tool builds without a procedural macro and with an older
//! compiler than the generator needs.

use std::path::Path;

use anyhow::{Context, Result, bail};
use wit_bindgen_core::{Files, WorldGenerator, wit_parser::Resolve};

const WORLD: &str = "murmur:worlds/tool@0.1.0";

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let target = root.join("plugins/tools/sdk/src/bindings.rs");
    let check = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--check") => true,
        Some(other) => bail!("unknown argument {other}; usage: guest-bindings [--check]"),
    };
    let text = generate(&root.join("wit"))?;
    if !check {
        return std::fs::write(&target, text).with_context(|| target.display().to_string());
    }
    let committed = std::fs::read(&target).with_context(|| target.display().to_string())?;
    if committed != text {
        bail!("{} is not what wit/ gives; run guest-bindings", target.display());
    }
    Ok(())
}

fn generate(wit: &Path) -> Result<Vec<u8>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit)?;
    let world = resolve.select_world(&[package], Some(WORLD))?;
    let options = wit_bindgen_rust::Opts {
        format: true,
        runtime_path: Some("wit_bindgen::rt".to_owned()),
        default_bindings_module: Some("capsule_guest::bindings".to_owned()),
        export_macro_name: Some("export_component".to_owned()),
        pub_export_macro: true,
        generate_all: true,
        // One Rust type for what `invoke` takes and what `run` takes.
        merge_structurally_equal_types: Some(Some(true)),
        ..Default::default()
    };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files)?;
    let (_, text) = files.iter().next().context("the generator wrote no file")?;
    Ok(text.to_vec())
}
