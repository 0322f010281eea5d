//! Guests that use the network, or try to.

use crate::guests::{Guest, guest, report};

/// An HTTP request that a guest makes.
pub(crate) struct Fetch<'a> {
    pub(crate) tls: bool,
    pub(crate) authority: &'a str,
    pub(crate) header: Option<(&'a str, &'a str)>,
    /// Pieces of 4 KiB in its body.
    pub(crate) pieces: u32,
    /// How long it waits between two pieces of the answer, in nanoseconds.
    pub(crate) patience: Option<u64>,
}

impl<'a> Fetch<'a> {
    pub(crate) fn http(authority: &'a str) -> Self {
        Self {
            tls: false,
            authority,
            header: None,
            pieces: 0,
            patience: None,
        }
    }

    pub(crate) fn https(authority: &'a str) -> Self {
        Self {
            tls: true,
            ..Self::http(authority)
        }
    }

    /// A tool that makes it and returns the first piece of the response's body; fails with the number of the HTTP error in two digits, or
    /// with `cut` where the body breaks off.
    pub(crate) fn build(&self) -> Vec<u8> {
        let (name, value) = self.header.unwrap_or_default();
        let data = format!("{}{name}{value}", self.authority);
        let (asks, sends_body) = (self.asks(), self.sends_body());
        let (refused, failed) = (report(776), report(792));
        let options = match self.patience {
            None => "(call $handle (local.get $request) (i32.const 0) (i32.const 0) (i32.const 768))".to_owned(),
            Some(patience) => format!(
                "(local.set $at (call $options))
                 (drop (call $between (local.get $at) (i32.const 1) (i64.const {patience})))
                 (call $handle (local.get $request) (i32.const 1) (local.get $at) (i32.const 768))"
            ),
        };
        let body = format!(
            "(local $fields i32) (local $request i32) (local $body i32) (local $out i32) (local $left i32)
             (local $future i32) (local $in i32) (local $at i32) (local $len i32)
             {asks}
             {options}
             (if (i32.load8_u (i32.const 768)) (then {refused} (return (call $ret (i32.const 1) (i32.const 200) (i32.const 2)))))
             (local.set $future (i32.load (i32.const 776)))
             {sends_body}
             (call $block (call $subscribe (local.get $future)))
             (call $get (local.get $future) (i32.const 768))
             (if (i32.load8_u (i32.const 784)) (then {failed} (return (call $ret (i32.const 1) (i32.const 200) (i32.const 2)))))
             {READS}"
        );
        guest(&body)
            .imports("wasi:http/types@0.2.3", TYPES)
            .imports(
                "wasi:http/outgoing-handler@0.2.3",
                r#"(import "wasi:http/outgoing-handler@0.2.3" "handle" (func $handle (param i32 i32 i32 i32)))"#,
            )
            .imports(
                "wasi:io/poll@0.2.3",
                r#"(import "wasi:io/poll@0.2.3" "[method]pollable.block" (func $block (param i32)))"#,
            )
            .imports("wasi:io/streams@0.2.3", STREAMS)
            .build_with_data(&data)
    }

    /// Makes the request, up to the stream of its body.
    fn asks(&self) -> String {
        let (authority, at) = (self.authority.len(), 64 + self.authority.len());
        let header = self.header.map_or_else(String::new, |(name, value)| {
            let (name, value, value_at) = (name.len(), value.len(), at + name.len());
            format!(
                "(call $append (local.get $fields) (i32.const {at}) (i32.const {name})
                   (i32.const {value_at}) (i32.const {value}) (i32.const 512))"
            )
        });
        // GET, or POST where there is a body.
        let (method, body) = match self.pieces {
            0 => (0, ""),
            _ => (
                2,
                "(call $body (local.get $request) (i32.const 512)) (local.set $body (i32.load (i32.const 516)))
                 (call $write (local.get $body) (i32.const 512)) (local.set $out (i32.load (i32.const 516)))",
            ),
        };
        let tls = i32::from(self.tls);
        format!(
            "(local.set $fields (call $fields)) {header}
             (local.set $request (call $request (local.get $fields)))
             (drop (call $method (local.get $request) (i32.const {method}) (i32.const 0) (i32.const 0)))
             (drop (call $scheme (local.get $request) (i32.const 1) (i32.const {tls}) (i32.const 0) (i32.const 0)))
             (drop (call $authority (local.get $request) (i32.const 1) (i32.const 64) (i32.const {authority})))
             (i32.store8 (i32.const 300) (i32.const 0x2f))
             (drop (call $path (local.get $request) (i32.const 1) (i32.const 300) (i32.const 1)))
             {body}"
        )
    }

    /// Sends the pieces, until one is refused.
    fn sends_body(&self) -> String {
        match self.pieces {
            0 => String::new(),
            pieces => format!(
                "(local.set $left (i32.const {pieces}))
                 (block $sent (loop $more
                   (call $put (local.get $out) (i32.const 4096) (i32.const 4096) (i32.const 512))
                   (br_if $sent (i32.load8_u (i32.const 512)))
                   (br_if $more (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))
                 (call $drop_out (local.get $out))
                 (call $finish (local.get $body) (i32.const 0) (i32.const 0) (i32.const 512))"
            ),
        }
    }
}

/// Reads the response whose handle is at 792.
const READS: &str = "
  (call $consume (i32.load (i32.const 792)) (i32.const 512))
  (call $stream (i32.load (i32.const 516)) (i32.const 512))
  (local.set $in (i32.load (i32.const 516)))
  (block $end (loop $next
    (call $read (local.get $in) (i64.const 4096) (i32.const 512))
    (br_if $end (i32.load8_u (i32.const 512)))
    (if (i32.eqz (local.get $len)) (then
      (local.set $at (i32.load (i32.const 516))) (local.set $len (i32.load (i32.const 520)))))
    (br $next)))
  (if (i32.eqz (i32.load8_u (i32.const 516))) (then
    (i32.store (i32.const 200) (i32.const 0x747563))
    (return (call $ret (i32.const 1) (i32.const 200) (i32.const 3)))))
  (call $ret (i32.const 0) (local.get $at) (local.get $len))";

const TYPES: &str = r#"
  (import "wasi:http/types@0.2.3" "[constructor]fields" (func $fields (result i32)))
  (import "wasi:http/types@0.2.3" "[constructor]request-options" (func $options (result i32)))
  (import "wasi:http/types@0.2.3" "[method]request-options.set-between-bytes-timeout"
    (func $between (param i32 i32 i64) (result i32)))
  (import "wasi:http/types@0.2.3" "[method]fields.append" (func $append (param i32 i32 i32 i32 i32 i32)))
  (import "wasi:http/types@0.2.3" "[constructor]outgoing-request" (func $request (param i32) (result i32)))
  (import "wasi:http/types@0.2.3" "[method]outgoing-request.body" (func $body (param i32 i32)))
  (import "wasi:http/types@0.2.3" "[method]outgoing-request.set-method" (func $method (param i32 i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.2.3" "[method]outgoing-request.set-scheme"
    (func $scheme (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.2.3" "[method]outgoing-request.set-authority"
    (func $authority (param i32 i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.2.3" "[method]outgoing-request.set-path-with-query"
    (func $path (param i32 i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.2.3" "[method]outgoing-body.write" (func $write (param i32 i32)))
  (import "wasi:http/types@0.2.3" "[static]outgoing-body.finish" (func $finish (param i32 i32 i32 i32)))
  (import "wasi:http/types@0.2.3" "[method]future-incoming-response.subscribe" (func $subscribe (param i32) (result i32)))
  (import "wasi:http/types@0.2.3" "[method]future-incoming-response.get" (func $get (param i32 i32)))
  (import "wasi:http/types@0.2.3" "[method]incoming-response.consume" (func $consume (param i32 i32)))
  (import "wasi:http/types@0.2.3" "[method]incoming-body.stream" (func $stream (param i32 i32)))"#;

const STREAMS: &str = r#"
  (import "wasi:io/streams@0.2.3" "[method]input-stream.blocking-read" (func $read (param i32 i64 i32)))
  (import "wasi:io/streams@0.2.3" "[method]output-stream.blocking-write-and-flush" (func $put (param i32 i32 i32 i32)))
  (import "wasi:io/streams@0.2.3" "[resource-drop]output-stream" (func $drop_out (param i32)))"#;

/// Tries a socket of its own: connects TCP, or binds UDP, to 127.0.0.1 at this port. Passes, or fails with the number of the error.
pub(crate) fn socket(protocol: &str, port: u16) -> Guest {
    let act = match protocol {
        "tcp" => "start-connect",
        _ => "start-bind",
    };
    let (none, refused) = (report(516), report(513));
    guest(&format!(
        "(call $create (i32.const 0) (i32.const 512))
         (if (i32.load8_u (i32.const 512)) (then {none} (return (call $ret (i32.const 1) (i32.const 200) (i32.const 2)))))
         (call $act (i32.load (i32.const 516)) (call $network) (i32.const 0) (i32.const {port})
           (i32.const 127) (i32.const 0) (i32.const 0) (i32.const 1)
           (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 512))
         (if (i32.load8_u (i32.const 512)) (then {refused} (return (call $ret (i32.const 1) (i32.const 200) (i32.const 2)))))
         (call $ret (i32.const 0) (i32.const 64) (global.get $data))"
    ))
    .imports(
        "wasi:sockets/instance-network@0.2.3",
        r#"(import "wasi:sockets/instance-network@0.2.3" "instance-network" (func $network (result i32)))"#,
    )
    .imports(
        &format!("wasi:sockets/{protocol}-create-socket@0.2.3"),
        &format!(
            r#"(import "wasi:sockets/{protocol}-create-socket@0.2.3" "create-{protocol}-socket" (func $create (param i32 i32)))"#
        ),
    )
    .imports(
        &format!("wasi:sockets/{protocol}@0.2.3"),
        &format!(
            r#"(import "wasi:sockets/{protocol}@0.2.3" "[method]{protocol}-socket.{act}"
               (func $act (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#
        ),
    )
}

/// Looks its data up as a name. Passes, or fails with the number of the error.
pub(crate) fn looks_up() -> Guest {
    let refused = report(516);
    guest(&format!(
        "(call $resolve (call $network) (i32.const 64) (global.get $data) (i32.const 512))
         (if (i32.load8_u (i32.const 512)) (then {refused} (return (call $ret (i32.const 1) (i32.const 200) (i32.const 2)))))
         (call $ret (i32.const 0) (i32.const 64) (global.get $data))"
    ))
    .imports(
        "wasi:sockets/instance-network@0.2.3",
        r#"(import "wasi:sockets/instance-network@0.2.3" "instance-network" (func $network (result i32)))"#,
    )
    .imports(
        "wasi:sockets/ip-name-lookup@0.2.3",
        r#"(import "wasi:sockets/ip-name-lookup@0.2.3" "resolve-addresses" (func $resolve (param i32 i32 i32 i32)))"#,
    )
}
