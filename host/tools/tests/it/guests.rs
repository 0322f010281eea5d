//! Guests: a core module in WAT, a world in WIT, and out comes a component.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// What the guests use of WASI.
const WASI: &str = include_str!("wasi.wit");

/// A guest in the making.
pub(crate) struct Guest {
    world: String,
    imports: String,
    body: String,
}

/// A guest whose `run` is `body`. It finds the arguments at `$p` (length `$n`) and ends with
/// `(call $ret STATUS POINTER LENGTH)`: 0 passed, 1 failed, 2 error. `DATA` is at 64.
pub(crate) fn guest(body: &str) -> Guest {
    Guest {
        world: String::new(),
        imports: String::new(),
        body: body.to_owned(),
    }
}

impl Guest {
    /// Imports an interface, and of it the functions that these lines of WAT import.
    pub(crate) fn imports(mut self, interface: &str, functions: &str) -> Self {
        // `stream` is a keyword of WIT, though not of component names.
        let interface = interface.replace(":stream/", ":%stream/");
        self.world.push_str(&format!("import {interface};\n"));
        self.imports.push_str(functions);
        self
    }

    /// Imports `$directories`, which are granted, and `$open`.
    fn opening_files(self) -> Self {
        self.imports(
            "wasi:filesystem/types@0.2.3",
            r#"(import "wasi:filesystem/types@0.2.3" "[method]descriptor.open-at"
                (func $open (param i32 i32 i32 i32 i32 i32 i32)))"#,
        )
        .imports(
            "wasi:filesystem/preopens@0.2.3",
            r#"(import "wasi:filesystem/preopens@0.2.3" "get-directories" (func $directories (param i32)))"#,
        )
    }

    /// The component.
    pub(crate) fn build(&self) -> Vec<u8> {
        self.build_with_data("some text")
    }

    /// The component, with this text at 64 (and its length in `$data`).
    pub(crate) fn build_with_data(&self, data: &str) -> Vec<u8> {
        let wat = module(&self.imports, &self.body, data);
        componentize(&format!("{}export murmur:tool/run@0.1.0;", self.world), &wat)
    }
}

/// A component of this world around a core module.
pub(crate) fn componentize(world: &str, wat: &str) -> Vec<u8> {
    let mut module = wat::parse_str(wat).unwrap();
    let mut resolve = Resolve::default();
    resolve
        .push_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("wit"))
        .unwrap();
    resolve.push_str("wasi.wit", WASI).unwrap();
    let world = format!("package test:guest;\nworld guest {{\n{world}\n}}");
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

/// Memory, and an allocator that never frees, as lines of WAT.
pub(crate) const MEMORY: &str = r#"
  (memory (export "memory") 1)
  (global $top (mut i32) (i32.const 4096))
  (func (export "cabi_realloc") (param i32 i32) (param $align i32) (param $size i32) (result i32) (local $at i32)
    (local.set $at (i32.and
      (i32.add (global.get $top) (i32.sub (local.get $align) (i32.const 1)))
      (i32.sub (i32.const 0) (local.get $align))))
    (global.set $top (i32.add (local.get $at) (local.get $size)))
    (if (i32.gt_u (global.get $top) (i32.mul (memory.size) (i32.const 65536))) (then
      (if (i32.eq (i32.const -1)
          (memory.grow (i32.add (i32.shr_u (local.get $size) (i32.const 16)) (i32.const 1))))
        (then unreachable))))
    (local.get $at))"#;

/// Memory, allocator and the shape of a result around a body.
fn module(imports: &str, body: &str, data: &str) -> String {
    let escaped: String = data.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let length = data.len();
    format!(
        r#"(module {imports} {MEMORY}
  (global $data i32 (i32.const {length}))
  (data (i32.const 64) "{escaped}")
  (func $ret (param $status i32) (param $p i32) (param $n i32) (result i32)
    (i32.store8 (i32.const 1024) (local.get $status))
    (i32.store8 (i32.const 1040) (i32.const 1))
    (i32.store (i32.const 1044) (local.get $p))
    (i32.store (i32.const 1048) (local.get $n))
    (i32.const 1024))
  (func $run (export "murmur:tool/run@0.1.0#run")
    (param $some i32) (param $p i32) (param $n i32) (param i32 i32 i32) (result i32)
    {body}))"#
    )
}

/// Returns its arguments.
pub(crate) fn echo() -> Guest {
    guest("(call $ret (i32.const 0) (local.get $p) (local.get $n))")
}

/// Returns its data with this status.
pub(crate) fn says(status: i32) -> Guest {
    guest(&format!(
        "(call $ret (i32.const {status}) (i32.const 64) (global.get $data))"
    ))
}

/// Traps.
pub(crate) fn trap() -> Guest {
    guest("unreachable")
}

/// Never ends.
pub(crate) fn spin() -> Guest {
    guest("(loop $again (br $again)) unreachable")
}

/// Computes for about two seconds, then passes.
pub(crate) fn computes() -> Guest {
    guest(
        "(local $left i64) (local.set $left (i64.const 2000000000))
         (loop $again
           (br_if $again (i64.ne (i64.const 0) (local.tee $left (i64.sub (local.get $left) (i64.const 1))))))
         (call $ret (i32.const 0) (i32.const 64) (global.get $data))",
    )
}

/// Takes memory until it gets no more, then gives up.
pub(crate) fn balloon() -> Guest {
    guest("(loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable")
}

/// Calls itself for ever.
pub(crate) fn recursion() -> Guest {
    guest(
        "(drop (call $run (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))) unreachable",
    )
}

/// Returns text that is not UTF-8.
pub(crate) fn bad_utf8() -> Guest {
    guest("(i32.store8 (i32.const 200) (i32.const 0xff)) (call $ret (i32.const 0) (i32.const 200) (i32.const 1))")
}

/// Waits inside a host call for an hour.
pub(crate) fn sleep() -> Guest {
    guest(
        "(call $block (call $subscribe (i64.const 3600000000000)))
         (call $ret (i32.const 0) (i32.const 64) (global.get $data))",
    )
    .imports(
        "wasi:clocks/monotonic-clock@0.2.3",
        r#"(import "wasi:clocks/monotonic-clock@0.2.3" "subscribe-duration" (func $subscribe (param i64) (result i32)))"#,
    )
    .imports(
        "wasi:io/poll@0.2.3",
        r#"(import "wasi:io/poll@0.2.3" "[method]pollable.block" (func $block (param i32)))"#,
    )
}

/// Writes its data to a standard stream, once or for ever, then traps.
pub(crate) fn writes(stream: &str, for_ever: bool) -> Guest {
    let again = if for_ever { "(br $again)" } else { "" };
    guest(&format!(
        "(local $out i32) (local.set $out (call $get))
         (loop $again
           (call $write (local.get $out) (i32.const 64) (global.get $data) (i32.const 32)) {again})
         unreachable"
    ))
    .imports(
        "wasi:io/streams@0.2.3",
        r#"(import "wasi:io/streams@0.2.3" "[method]output-stream.blocking-write-and-flush"
            (func $write (param i32 i32 i32 i32)))"#,
    )
    .imports(
        &format!("wasi:cli/{stream}@0.2.3"),
        &format!(r#"(import "wasi:cli/{stream}@0.2.3" "get-{stream}" (func $get (result i32)))"#),
    )
}

/// Streams its data through `interface`, once as text and once as thinking, then passes.
pub(crate) fn streams(interface: &str) -> Guest {
    guest(
        "(call $text (i32.const 64) (global.get $data))
         (call $thinking (i32.const 64) (global.get $data))
         (call $ret (i32.const 0) (i32.const 64) (global.get $data))",
    )
    .imports(
        interface,
        &format!(
            r#"(import "{interface}" "emit-chunk" (func $text (param i32 i32)))
               (import "{interface}" "emit-thinking-chunk" (func $thinking (param i32 i32)))"#
        ),
    )
}

/// Speaks of tool calls of a model, which is not a tool's to do.
pub(crate) fn pretends() -> Guest {
    guest(
        "(call $started (i32.const 64) (global.get $data) (i32.const 64) (global.get $data))
         (call $bytes (i32.const 64) (global.get $data) (i64.const 7))
         (call $ret (i32.const 0) (i32.const 64) (global.get $data))",
    )
    .imports(
        "murmur:stream/events@0.1.0",
        r#"(import "murmur:stream/events@0.1.0" "tool-call-started" (func $started (param i32 i32 i32 i32)))
           (import "murmur:stream/events@0.1.0" "tool-call-input-bytes" (func $bytes (param i32 i32 i64)))"#,
    )
}

/// Asks its data as a question and returns the answer.
pub(crate) fn asks() -> Guest {
    guest(
        "(call $ask (i32.const 64) (global.get $data) (i32.const 32))
         (call $ret (i32.const 0) (i32.load (i32.const 32)) (i32.load (i32.const 36)))",
    )
    .imports(
        "murmur:task/task@0.1.0",
        r#"(import "murmur:task/task@0.1.0" "request-input" (func $ask (param i32 i32 i32)))"#,
    )
}

/// Calls a tool named by its data with its own arguments, and ends as that call did; fails with the reason where it was not made.
pub(crate) fn delegates() -> Guest {
    guest(
        "(call $invoke (i32.const 64) (global.get $data)
           (i32.const 1) (local.get $p) (local.get $n) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 128))
         (if (result i32) (i32.load8_u (i32.const 128))
           (then (call $ret (i32.const 1) (i32.load (i32.const 132)) (i32.load (i32.const 136))))
           (else (call $ret
             (i32.load8_u (i32.const 132)) (i32.load (i32.const 152)) (i32.load (i32.const 156)))))",
    )
    .imports(
        "murmur:tool-registry/invoke@0.1.0",
        r#"(import "murmur:tool-registry/invoke@0.1.0" "invoke"
            (func $invoke (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#,
    )
}

/// Returns the value of its first environment variable, or fails with its data.
pub(crate) fn environment() -> Guest {
    guest(
        "(call $environment (i32.const 32))
         (if (result i32) (i32.load (i32.const 36))
           (then (call $ret (i32.const 0)
             (i32.load offset=8 (i32.load (i32.const 32)))
             (i32.load offset=12 (i32.load (i32.const 32)))))
           (else (call $ret (i32.const 1) (i32.const 64) (global.get $data))))",
    )
    .imports(
        "wasi:cli/environment@0.2.3",
        r#"(import "wasi:cli/environment@0.2.3" "get-environment" (func $environment (param i32)))"#,
    )
}

/// Leaves the error code that lies at `address` at 200, as two digits.
pub(crate) fn report(address: u32) -> String {
    format!(
        "(i32.store8 (i32.const 200) (i32.add (i32.const 48) (i32.div_u (i32.load8_u (i32.const {address})) (i32.const 10))))
         (i32.store8 (i32.const 201) (i32.add (i32.const 48) (i32.rem_u (i32.load8_u (i32.const {address})) (i32.const 10))))"
    )
}

/// Takes a file named by its data from the first granted directory into the second under the same name, by `rename-at` or `link-at`.
/// Passes, or fails with the number of the error in two digits.
pub(crate) fn takes_across(function: &str) -> Guest {
    let (flags, flag) = match function {
        "link-at" => ("i32", "(i32.const 0)"),
        _ => ("", ""),
    };
    let report = report(33);
    guest(&format!(
        "(call $directories (i32.const 32))
         (call $take (i32.load (i32.load (i32.const 32))) {flag} (i32.const 64) (global.get $data)
           (i32.load offset=12 (i32.load (i32.const 32))) (i32.const 64) (global.get $data) (i32.const 32))
         (if (result i32) (i32.load8_u (i32.const 32))
           (then {report} (call $ret (i32.const 1) (i32.const 200) (i32.const 2)))
           (else (call $ret (i32.const 0) (i32.const 64) (global.get $data))))"
    ))
    .imports(
        "wasi:filesystem/types@0.2.3",
        &format!(
            r#"(import "wasi:filesystem/types@0.2.3" "[method]descriptor.{function}"
            (func $take (param i32 {flags} i32 i32 i32 i32 i32 i32)))"#
        ),
    )
    .imports(
        "wasi:filesystem/preopens@0.2.3",
        r#"(import "wasi:filesystem/preopens@0.2.3" "get-directories" (func $directories (param i32)))"#,
    )
}

/// Makes a link called `s` to its data in the first granted directory. Passes, or fails with the number of the error in two digits.
pub(crate) fn links_to() -> Guest {
    let report = report(33);
    guest(&format!(
        "(call $directories (i32.const 32))
         (i32.store8 (i32.const 210) (i32.const 0x73))
         (call $link (i32.load (i32.load (i32.const 32))) (i32.const 64) (global.get $data)
           (i32.const 210) (i32.const 1) (i32.const 32))
         (if (result i32) (i32.load8_u (i32.const 32))
           (then {report} (call $ret (i32.const 1) (i32.const 200) (i32.const 2)))
           (else (call $ret (i32.const 0) (i32.const 64) (global.get $data))))"
    ))
    .imports(
        "wasi:filesystem/types@0.2.3",
        r#"(import "wasi:filesystem/types@0.2.3" "[method]descriptor.symlink-at"
            (func $link (param i32 i32 i32 i32 i32 i32)))"#,
    )
    .imports(
        "wasi:filesystem/preopens@0.2.3",
        r#"(import "wasi:filesystem/preopens@0.2.3" "get-directories" (func $directories (param i32)))"#,
    )
}

/// Opens its data as a path below the first granted directory: passes, or fails with the number of the error in two digits.
///
/// `open` is 1 create, 8 truncate; `flags` 1 read, 2 write.
pub(crate) fn opens(open: i32, flags: i32) -> Guest {
    let report = report(36);
    guest(&format!(
        "(call $directories (i32.const 32))
         (if (i32.eqz (i32.load (i32.const 36))) (then (return (call $ret (i32.const 1) (i32.const 64) (i32.const 0)))))
         (call $open (i32.load (i32.load (i32.const 32))) (i32.const 1) (i32.const 64) (global.get $data)
           (i32.const {open}) (i32.const {flags}) (i32.const 32))
         (if (result i32) (i32.load8_u (i32.const 32))
           (then {report} (call $ret (i32.const 1) (i32.const 200) (i32.const 2)))
           (else (call $ret (i32.const 0) (i32.const 64) (global.get $data))))"
    ))
    .opening_files()
}

/// Opens its data as a path below the first granted directory, again and again.
pub(crate) fn opens_without_end() -> Guest {
    guest(
        "(call $directories (i32.const 32))
         (loop $more
           (call $open (i32.load (i32.load (i32.const 32))) (i32.const 1) (i32.const 64) (global.get $data)
             (i32.const 0) (i32.const 1) (i32.const 48))
           (br $more))
         unreachable",
    )
    .opening_files()
}

/// Sends an HTTP request to its data (an authority), then fails with it.
pub(crate) fn requests() -> Guest {
    guest(
        "(local $request i32)
         (local.set $request (call $request (call $fields)))
         (drop (call $authority (local.get $request) (i32.const 1) (i32.const 64) (global.get $data)))
         (i32.store8 (i32.const 200) (i32.const 0x2f))
         (drop (call $path (local.get $request) (i32.const 1) (i32.const 200) (i32.const 1)))
         (call $handle (local.get $request) (i32.const 0) (i32.const 0) (i32.const 512))
         (call $ret (i32.const 1) (i32.const 64) (global.get $data))",
    )
    .imports(
        "wasi:http/types@0.2.3",
        r#"(import "wasi:http/types@0.2.3" "[constructor]fields" (func $fields (result i32)))
           (import "wasi:http/types@0.2.3" "[constructor]outgoing-request" (func $request (param i32) (result i32)))
           (import "wasi:http/types@0.2.3" "[method]outgoing-request.set-authority"
             (func $authority (param i32 i32 i32 i32) (result i32)))
           (import "wasi:http/types@0.2.3" "[method]outgoing-request.set-path-with-query"
             (func $path (param i32 i32 i32 i32) (result i32)))"#,
    )
    .imports(
        "wasi:http/outgoing-handler@0.2.3",
        r#"(import "wasi:http/outgoing-handler@0.2.3" "handle" (func $handle (param i32 i32 i32 i32)))"#,
    )
}

/// A command that prints what it reads on standard input, or its command line, one argument a line; then ends by `end`.
pub(crate) fn prints(what: &str, end: &str) -> Vec<u8> {
    let body = match what {
        "stdin" => {
            "(call $read (call $stdin) (i64.const 4096) (i32.const 32))
             (call $write (local.get $out) (i32.load (i32.const 36)) (i32.load (i32.const 40)) (i32.const 48))"
        }
        _ => {
            "(call $arguments (i32.const 32))
             (local.set $at (i32.load (i32.const 32)))
             (local.set $left (i32.load (i32.const 36)))
             (i32.store8 (i32.const 63) (i32.const 10))
             (loop $next
               (call $write (local.get $out) (i32.load (local.get $at)) (i32.load offset=4 (local.get $at)) (i32.const 48))
               (call $write (local.get $out) (i32.const 63) (i32.const 1) (i32.const 48))
               (local.set $at (i32.add (local.get $at) (i32.const 8)))
               (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))"
        }
    };
    let wat = format!(
        r#"(module
  (import "wasi:cli/environment@0.2.3" "get-arguments" (func $arguments (param i32)))
  (import "wasi:cli/exit@0.2.3" "exit" (func $exit (param i32)))
  (import "wasi:cli/stdin@0.2.3" "get-stdin" (func $stdin (result i32)))
  (import "wasi:cli/stdout@0.2.3" "get-stdout" (func $stdout (result i32)))
  (import "wasi:cli/stderr@0.2.3" "get-stderr" (func $stderr (result i32)))
  (import "wasi:io/streams@0.2.3" "[method]input-stream.blocking-read" (func $read (param i32 i64 i32)))
  (import "wasi:io/streams@0.2.3" "[method]output-stream.blocking-write-and-flush"
    (func $write (param i32 i32 i32 i32)))
  {MEMORY}
  (data (i32.const 100) "no such city")
  (func (export "wasi:cli/run@0.2.3#run") (result i32) (local $out i32) (local $at i32) (local $left i32)
    (local.set $out (call $stdout))
    {body}
    (call $write (call $stderr) (i32.const 100) (i32.const 12) (i32.const 48))
    {end}))"#
    );
    let imports = "import wasi:cli/environment@0.2.3; import wasi:cli/exit@0.2.3; import wasi:cli/stdin@0.2.3;
        import wasi:cli/stdout@0.2.3; import wasi:cli/stderr@0.2.3; import wasi:io/streams@0.2.3;";
    componentize(&format!("{imports} export wasi:cli/run@0.2.3;"), &wat)
}

/// Returns the value of the key that is its data, or fails with the key.
pub(crate) fn configured() -> Guest {
    guest(
        "(call $config (i32.const 64) (global.get $data) (i32.const 512))
         (if (result i32) (i32.load8_u (i32.const 516))
           (then (call $ret (i32.const 0) (i32.load (i32.const 520)) (i32.load (i32.const 524))))
           (else (call $ret (i32.const 1) (i32.const 64) (global.get $data))))",
    )
    .imports(
        "wasi:config/store@0.2.0-rc.1",
        r#"(import "wasi:config/store@0.2.0-rc.1" "get" (func $config (param i32 i32 i32)))"#,
    )
}

/// Returns a random letter run of four, made from one random number.
pub(crate) fn draws() -> Guest {
    guest(
        "(local $r i64) (local $at i32)
         (local.set $r (call $random)) (local.set $at (i32.const 200))
         (loop $next
           (i32.store8 (local.get $at) (i32.add (i32.const 97) (i32.wrap_i64 (i64.and (local.get $r) (i64.const 15)))))
           (local.set $r (i64.shr_u (local.get $r) (i64.const 4)))
           (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 216))))
         (call $ret (i32.const 0) (i32.const 200) (i32.const 16))",
    )
    .imports(
        "wasi:random/random@0.2.3",
        r#"(import "wasi:random/random@0.2.3" "get-random-u64" (func $random (result i64)))"#,
    )
}
