//! Write a Capsule tool in Rust: a struct that implements [`Tool`], and one [`export_tool!`].
//!
//! ```
//! use capsule_guest::{Error, Json, Output, Tool, args, export_tool};
//!
//! struct Shout;
//!
//! export_tool!(Shout {
//!     description: "Repeats a text in capitals.",
//!     input_schema: r#"{
//!         "type": "object",
//!         "properties": {"text": {"type": "string"}},
//!         "required": ["text"]
//!     }"#,
//! });
//!
//! impl Tool for Shout {
//!     fn call(input: Json) -> Result<Output, Error> {
//!         Ok(Output::text(args::required_text(&input, "text")?.to_uppercase()))
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! Built for `wasm32-wasip2`, the crate is a component that exports `murmur:tool/run@0.1.0`. It
//! imports an interface of the host only where it calls one of its functions ([`emit_chunk`],
//! [`request_input`], [`invoke`], …). Built for any other target, the same code can be tested with
//! `cargo test`; what asks the host is described at each function.

#![warn(missing_docs)]

pub mod args;
#[doc(hidden)]
#[rustfmt::skip]
#[allow(warnings, clippy::all, clippy::undocumented_unsafe_blocks)]
pub mod bindings;
mod host;
mod section;
mod tool;

pub use host::{emit_chunk, emit_thinking, invoke, request_input, tool_call_input_bytes, tool_call_started};
pub use section::Section;
/// A JSON value: the arguments of a call, and one form of its answer.
pub use serde_json::Value as Json;
/// Makes a [`Json`] value from a literal.
pub use serde_json::json;
pub use tool::{Error, Output, StateEffect, Tool};

#[doc(hidden)]
pub use tool::run;

/// Exports a [`Tool`] as the component's `murmur:tool/run@0.1.0` and describes it in the custom
/// section `capsule:tool`.
///
/// The keys are those of [`Section`], each optional and in any order. `name` and `description` are
/// plain text; `input_schema`, `output_schema` and `annotations` are JSON objects, written as
/// string literals. Text that is not a JSON object does not compile:
///
/// ```compile_fail
/// # use capsule_guest::{Error, Json, Output, Tool, export_tool};
/// # struct Broken;
/// # impl Tool for Broken {
/// #     fn call(_: Json) -> Result<Output, Error> { Ok(Output::text("")) }
/// # }
/// export_tool!(Broken { input_schema: r#"{"type": "object""# });
/// # fn main() {}
/// ```
///
/// A crate exports one tool. The build must keep custom sections: `strip = "debuginfo"`, not
/// `strip = true`.
#[macro_export]
macro_rules! export_tool {
    ($tool:ident { $($key:ident : $value:expr),* $(,)? }) => {
        const _: () = {
            const SECTION: $crate::Section =
                $crate::Section { $($key: ::core::option::Option::Some($value),)* ..$crate::Section::EMPTY };
            // The section exists in components only; elsewhere this checks the literals.
            // SAFETY: a custom section is data beside the program; no code is linked by its name.
            #[used]
            #[cfg_attr(target_family = "wasm", unsafe(link_section = "capsule:tool"))]
            static BYTES: [u8; SECTION.len()] = SECTION.bytes();
            // A test on another target calls the tool itself.
            #[cfg(not(target_family = "wasm"))]
            const _: fn($crate::Json) -> ::core::result::Result<$crate::Output, $crate::Error> =
                <$tool as $crate::Tool>::call;
        };
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Component;
            impl $crate::bindings::exports::murmur::tool::run::Guest for Component {
                fn run(
                    input: $crate::bindings::exports::murmur::tool::run::ToolInput,
                ) -> $crate::bindings::exports::murmur::tool::run::ToolResult {
                    $crate::run::<$tool>(input)
                }
            }
            $crate::bindings::export_component!(Component with_types_in $crate::bindings);
        };
    };
}
