//! Every error code that this crate raises.

use capsule_api::{Code, ErrorKind};

/// A listening socket could not be opened.
pub const BIND: Code = Code {
    id: "net-bind",
    kind: ErrorKind::Network,
    meaning: "The host could not open a listening socket.",
    remedy: "Free the port, choose another address, or raise the limit of open files.",
};
/// A URL that the policy does not allow.
pub const URL_REFUSED: Code = Code {
    id: "net-url-refused",
    kind: ErrorKind::Settings,
    meaning: "The URL of an outgoing request is not allowed.",
    remedy: "Use `https://`, or `http://` to `localhost` or a loopback address; put credentials into headers, not into the URL.",
};
/// No address behind a name may be connected to.
pub const ADDRESS_REFUSED: Code = Code {
    id: "net-address-refused",
    kind: ErrorKind::Settings,
    meaning: "The host of an outgoing request stands for an address that the address policy refuses.",
    remedy: "Use a host with a public address; a private or loopback address must be written as that address in the URL.",
};
/// A name could not be resolved.
pub const DNS: Code = Code {
    id: "net-dns",
    kind: ErrorKind::Network,
    meaning: "The name of a host could not be resolved.",
    remedy: "Check the spelling of the host and the machine's name resolution.",
};
/// No connection could be made.
pub const CONNECT: Code = Code {
    id: "net-connect",
    kind: ErrorKind::Network,
    meaning: "No connection to the host could be made.",
    remedy: "Check that the service runs and that the network lets connections to it through.",
};
/// The TLS handshake failed.
pub const TLS: Code = Code {
    id: "net-tls",
    kind: ErrorKind::Network,
    meaning: "The TLS handshake with the host failed.",
    remedy: "Check that the host's certificate is valid for its name and signed by an authority that this system trusts.",
};
/// The system's root certificates are not there.
pub const ROOTS: Code = Code {
    id: "net-roots",
    kind: ErrorKind::TransportUnavailable,
    meaning: "The system's store of root certificates could not be read or is empty.",
    remedy: "Install the system's certificates (the package `ca-certificates`), or name a bundle in SSL_CERT_FILE.",
};
/// The connection broke before the response's head.
pub const EXCHANGE: Code = Code {
    id: "net-exchange",
    kind: ErrorKind::Network,
    meaning: "The connection broke before the response arrived.",
    remedy: "Try again; if it stays, the service or a middlebox ends connections early.",
};
/// The response's body broke off.
pub const BODY: Code = Code {
    id: "net-body",
    kind: ErrorKind::Network,
    meaning: "The response broke off before its end.",
    remedy: "Try again; if it stays, the service or a middlebox ends connections early.",
};
/// The peer does not speak HTTP/1.1.
pub const PROTOCOL: Code = Code {
    id: "net-protocol",
    kind: ErrorKind::Protocol,
    meaning: "The peer answered something that is not HTTP/1.1.",
    remedy: "Check the address and the port: another kind of service answers there.",
};
/// The proxy cannot be used, or refuses.
pub const PROXY: Code = Code {
    id: "net-proxy",
    kind: ErrorKind::Network,
    meaning: "The proxy that the environment names could not be used, or refused the connection.",
    remedy: "Check HTTPS_PROXY, or name the host in NO_PROXY so that it is reached without the proxy.",
};
/// All of them.
pub const ALL: &[&Code] = &[
    &BIND,
    &URL_REFUSED,
    &ADDRESS_REFUSED,
    &DNS,
    &CONNECT,
    &TLS,
    &ROOTS,
    &EXCHANGE,
    &BODY,
    &PROTOCOL,
    &PROXY,
];
