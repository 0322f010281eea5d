//! The proxy that the environment names for `https`.
//!
//! Connections to it are tunnels (`CONNECT`, RFC 9110 section 9.3.6), so it sees the name of a host and nothing of what is said. What it
//! resolves the name to is out of reach: behind a proxy the address policy holds for names and written addresses alone.

use std::{ffi::OsString, fmt};

use base64::Engine as _;
use capsule_api::{Error, Retry, Secret};
use http::{Uri, uri::Authority};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::address::Origin;
use crate::codes;

/// The most bytes of the proxy's answer to `CONNECT`.
const MAX_HEAD: usize = 16 << 10;

/// A proxy, and the hosts that are reached without it.
#[derive(Clone)]
pub struct Proxy {
    /// What is wrong with it, told when it would be used: a program that needs no provider needs no proxy.
    target: Result<Target, String>,
    except: Vec<Exception>,
}

#[derive(Clone)]
struct Target {
    host: String,
    port: u16,
    authorization: Option<Secret>,
}

/// One entry of `NO_PROXY`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exception {
    Everything,
    /// The host and, where it is a name, all below it; at this port or at any.
    Host(String, Option<u16>),
}

impl Proxy {
    /// The proxy of `https_proxy` or `HTTPS_PROXY`, without the hosts of `no_proxy` or `NO_PROXY`; the lower-case name counts first, and an
    /// empty one is none. `http://[user:password@]host[:port]`, or `host:port`.
    ///
    /// `no_proxy` is a list, separated by commas, of names (with everything below them, a dot before them or not), of addresses, each with
    /// `:port` or without, and of `*` for everything.
    pub fn of(env: &dyn Fn(&str) -> Option<OsString>) -> Option<Self> {
        let of = |lower: &str, upper: &str| {
            let value = env(lower).or_else(|| env(upper))?;
            Some(value.to_string_lossy().trim().to_owned()).filter(|value| !value.is_empty())
        };
        let target = target(&of("https_proxy", "HTTPS_PROXY")?);
        let except = of("no_proxy", "NO_PROXY").unwrap_or_default();
        let except = except.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        Some(Self {
            target,
            except: except.map(exception).collect(),
        })
    }

    /// Whether a connection to the origin goes through it. Never where it is this machine, nor for plain `http`.
    pub(super) fn is_for(&self, origin: &Origin) -> bool {
        let excepted = |exception: &Exception| match exception {
            Exception::Everything => true,
            Exception::Host(host, port) => {
                let below = origin.host.strip_suffix(host.as_str());
                let named =
                    below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.') && origin.literal().is_none());
                named && port.is_none_or(|port| port == origin.port)
            }
        };
        origin.tls && !origin.is_this_machine() && !self.except.iter().any(excepted)
    }

    /// Where the proxy itself is. It is the user's choice, so every address will do.
    ///
    /// # Errors
    /// `net-proxy`: what the environment says is no proxy.
    pub(super) fn address(&self) -> Result<(&str, u16), Error> {
        let target = self.target()?;
        Ok((&target.host, target.port))
    }

    /// Makes of a connection to the proxy one to the origin.
    ///
    /// # Errors
    /// `net-proxy`: the proxy refused it, or answered something else.
    pub(super) async fn tunnel<S>(&self, stream: &mut S, origin: &Origin) -> Result<(), Error>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let to = origin.with_port();
        let mut request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n");
        if let Some(authorization) = &self.target()?.authorization {
            request.push_str(&format!("Proxy-Authorization: {}\r\n", authorization.expose()));
        }
        request.push_str("\r\n");
        let broken = |error: std::io::Error| self.failed(&format!("the connection broke: {error}"), Retry::Later);
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            // Byte by byte: what follows the head belongs to the tunnel. The head is short and comes once a connection.
            let byte = stream.read_u8().await.map_err(broken)?;
            head.push(byte);
            if head.len() > MAX_HEAD {
                return Err(self.failed("its answer has no end", Retry::Never));
            }
        }
        match status(&head) {
            Some(200..=299) => Ok(()),
            Some(407) => Err(self.failed("it wants a user name and a password (407)", Retry::Never)),
            Some(status) => {
                let retry = if status >= 500 { Retry::Later } else { Retry::Never };
                Err(self.failed(
                    &format!("it refused the connection to `{to}` with status {status}"),
                    retry,
                ))
            }
            None => Err(self.failed("it does not answer as a proxy", Retry::Never)),
        }
    }

    fn target(&self) -> Result<&Target, Error> {
        let unusable = |why: &String| Error::new(&codes::PROXY, format!("HTTPS_PROXY names no usable proxy: {why}"));
        self.target.as_ref().map_err(unusable)
    }

    fn failed(&self, why: &str, retry: Retry) -> Error {
        let at = self.target.as_ref().map_or("", |target| &target.host);
        Error::new(&codes::PROXY, format!("the proxy `{at}`: {why}")).retry(retry)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.target.as_ref().map(|target| (&target.host, target.port));
        f.debug_struct("Proxy")
            .field("at", &at)
            .field("except", &self.except)
            .finish()
    }
}

/// What a value of the variable says. Errors do not quote it: it may hold a password.
fn target(value: &str) -> Result<Target, String> {
    let uri: Uri = value.parse().map_err(|_| "it is no URL".to_owned())?;
    if uri.scheme_str().is_some_and(|scheme| scheme != "http") {
        return Err("its scheme is not http".to_owned());
    }
    let authority = uri.authority().ok_or("it has no host")?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err("it has no host".to_owned());
    }
    Ok(Target {
        host: host.to_ascii_lowercase(),
        port: authority.port_u16().unwrap_or(80),
        authorization: authorization(authority),
    })
}

fn authorization(authority: &Authority) -> Option<Secret> {
    let (user, _) = authority.as_str().rsplit_once('@')?;
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let plain = [&unescaped(name)[..], b":", &unescaped(password)].concat();
    let encoded = base64::engine::general_purpose::STANDARD.encode(plain);
    Some(Secret::new(format!("Basic {encoded}")))
}

/// A text with `%41` for `A`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| *first == b'%');
        let value = escaped.and_then(|hex| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(value.unwrap_or(*first));
        rest = if value.is_some() { &after[2..] } else { after };
    }
    bytes
}

fn exception(entry: &str) -> Exception {
    if entry == "*" {
        return Exception::Everything;
    }
    let is_address = entry.parse::<std::net::IpAddr>().is_ok();
    let with_port = entry.rsplit_once(':').filter(|_| !is_address);
    let port = with_port.and_then(|(_, port)| port.parse().ok());
    let host = with_port.filter(|_| port.is_some()).map_or(entry, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = host.trim_start_matches("*.").trim_start_matches('.');
    Exception::Host(host.to_ascii_lowercase(), port)
}

/// The status of an answer's head.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = str::from_utf8(line).ok()?;
    let (version, rest) = line.split_once(' ')?;
    version.starts_with("HTTP/1.").then_some(())?;
    rest.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(https: &str, no: &str) -> Option<Proxy> {
        let (https, no) = (https.to_owned(), no.to_owned());
        Proxy::of(&move |name| match name {
            "HTTPS_PROXY" => Some(https.clone().into()),
            "no_proxy" => Some(no.clone().into()),
            _ => None,
        })
    }

    fn goes_through(no: &str, url: &str) -> bool {
        let origin = Origin::of(&url.parse().unwrap()).unwrap();
        proxy("http://proxy.test:3128", no).unwrap().is_for(&origin)
    }

    #[test]
    fn a_proxy_is_a_host_with_a_port_or_a_url_of_one() {
        let at = |value: &str| {
            proxy(value, "")
                .unwrap()
                .address()
                .map(|(host, port)| format!("{host} {port}"))
        };
        assert_eq!(at("http://Proxy.test:3128").unwrap(), "proxy.test 3128");
        assert_eq!(at("proxy.test:3128").unwrap(), "proxy.test 3128");
        assert_eq!(at("http://user:pass@[::1]/").unwrap(), "::1 80");
        assert!(proxy(" ", "").is_none());
        for (value, why) in [
            ("https://proxy.test", "its scheme is not http"),
            ("socks5://proxy.test", "its scheme is not http"),
            ("http://", "it is no URL"),
            ("/path", "it has no host"),
        ] {
            let error = at(value).unwrap_err();
            let expected = format!("HTTPS_PROXY names no usable proxy: {why}");
            assert_eq!(
                (error.code, error.message.as_str()),
                ("net-proxy", expected.as_str()),
                "{value}"
            );
        }
    }

    #[test]
    fn only_https_to_other_machines_goes_through_it_and_no_proxy_is_a_list_of_names() {
        for (no, url, through) in [
            ("", "https://api.test/v1", true),
            ("", "https://localhost/", false),
            ("", "https://127.0.0.1/", false),
            ("", "http://127.0.0.1/", false),
            ("*", "https://api.test/", false),
            ("api.test", "https://API.test/", false),
            ("api.test", "https://eu.api.test/", false),
            ("api.test", "https://myapi.test/", true),
            (".api.test", "https://eu.api.test/", false),
            ("*.api.test", "https://eu.api.test/", false),
            ("other.test, api.test:8443", "https://api.test:8443/", false),
            ("api.test:8443", "https://api.test/", true),
            ("10.0.0.1", "https://10.0.0.1/", false),
            ("0.0.1", "https://10.0.0.1/", true),
            ("fd12::1,[fd12::2]:443", "https://[fd12::2]/", false),
        ] {
            assert_eq!(goes_through(no, url), through, "{no} {url}");
        }
    }

    #[test]
    fn the_password_is_unescaped_and_never_shown() {
        let proxy = proxy("http://us%40er:hunter%32@proxy.test", "").unwrap();
        let authorization = proxy.target().unwrap().authorization.clone().unwrap();
        // us@er:hunter2
        assert_eq!(authorization.expose(), "Basic dXNAZXI6aHVudGVyMg==");
        let shown = format!("{proxy:?}");
        assert!(!shown.contains("hunter") && !shown.contains("Basic"), "{shown}");
    }

    #[test]
    fn the_lower_case_name_counts_first() {
        let proxy = Proxy::of(&|name| match name {
            "https_proxy" => Some("http://lower.test".into()),
            "HTTPS_PROXY" => Some("http://upper.test".into()),
            _ => None,
        });
        assert_eq!(proxy.unwrap().address().unwrap().0, "lower.test");
    }
}
