//! Which origins a grant of the network covers. Pure.

use std::{fmt, net::IpAddr};

use http::Uri;

/// An origin that a guest asks for, as its request says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) tls: bool,
    /// In lower case; an IPv6 address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Target {
    /// The origin of a request; `None` where its URL has none.
    pub(crate) fn of(uri: &Uri) -> Option<Self> {
        let authority = uri.authority()?;
        let tls = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let host = unbracketed(authority.host()).to_ascii_lowercase();
        let port = authority.port_u16().unwrap_or(default_port(tls));
        (!host.is_empty()).then_some(Self { tls, host, port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_origin(f, self.tls, &self.host, self.port)
    }
}

/// One entry of `network.allow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    tls: bool,
    host: Host,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    /// This name or address.
    Exact(String),
    /// Every name that ends in a dot and this one; not the name itself.
    Below(String),
}

impl Host {
    fn text(&self) -> String {
        match self {
            Self::Exact(host) => host.clone(),
            Self::Below(host) => format!("*.{host}"),
        }
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(a), Self::Exact(b)) => a == b,
            (Self::Below(a), Self::Exact(b)) => is_below(b, a),
            (Self::Below(a), Self::Below(b)) => a == b || is_below(b, a),
            (Self::Exact(_), Self::Below(_)) => false,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_origin(f, self.tls, &self.host.text(), self.port)
    }
}

impl Pattern {
    /// Reads `scheme://host[:port]`, `host` or `*.host`; without a scheme it is `https`. `Err` says what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (tls, rest) = match text.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            Some(_) => return Err("its scheme is neither `https` nor `http`".into()),
            None => (true, text),
        };
        if rest.contains(['/', '?', '#', '@']) {
            return Err("a grant names a host: no path, no query, no user".into());
        }
        let has_scheme = rest.len() != text.len();
        let (host, port) = split_port(rest)?;
        if port.is_some() && !has_scheme {
            return Err(format!(
                "a port needs a scheme: write `https://{rest}` or `http://{rest}`"
            ));
        }
        Ok(Self {
            tls,
            host: host_of(host)?,
            port: port.unwrap_or(default_port(tls)),
        })
    }

    pub(crate) fn admits(&self, target: &Target) -> bool {
        let host = Host::Exact(target.host.clone());
        self.tls == target.tls && self.port == target.port && self.host.covers(&host)
    }

    /// Whether everything that the other entry admits is admitted by this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.tls == other.tls && self.port == other.port && self.host.covers(&other.host)
    }

    pub(crate) fn is_wildcard(&self) -> bool {
        matches!(self.host, Host::Below(_))
    }

    /// Whether what is sent there stays secret on its way: encrypted, or on this machine.
    pub(crate) fn is_private(&self) -> bool {
        let here = |host: &String| host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        self.tls || matches!(&self.host, Host::Exact(host) if here(host))
    }
}

fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

fn is_below(name: &str, parent: &str) -> bool {
    // An address is below nothing, whatever its digits look like.
    name.strip_suffix(parent)
        .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        && name.parse::<IpAddr>().is_err()
}

fn split_port(rest: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match rest.rfind(']') {
        Some(end) => rest.split_at(end + 1),
        None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
    };
    let Some(port) = port.strip_prefix(':') else {
        return match port.is_empty() {
            true => Ok((host, None)),
            false => Err("what follows the host is not a port".into()),
        };
    };
    match port.parse() {
        Ok(0) | Err(_) => Err("its port is not a number from 1 to 65535".into()),
        Ok(port) => Ok((host, Some(port))),
    }
}

fn host_of(text: &str) -> Result<Host, String> {
    let text = text.to_ascii_lowercase();
    let host = unbracketed(&text);
    if let Ok(ip) = host.parse::<IpAddr>() {
        return match capsule_net::never_connected_to(ip) {
            Some(why) => Err(format!("{ip} is {why}, which is never connected to")),
            None => Ok(Host::Exact(ip.to_string())),
        };
    }
    if text.contains(['[', ']', ':']) {
        return Err("it is not an IPv6 address".into());
    }
    let (below, name) = match text.strip_prefix("*.") {
        Some(name) => (true, name),
        None => (false, text.as_str()),
    };
    if name.contains('*') {
        return Err("`*` stands only at the begin, as in `*.example.com`".into());
    }
    let label =
        |label: &str| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !name.split('.').all(label) {
        return Err("it is not the name of a host (letters, digits, `-`, `_` and dots between)".into());
    }
    match below {
        true if !name.contains('.') => Err("a `*` over a whole top-level domain is too wide".into()),
        true => Ok(Host::Below(name.to_owned())),
        false => Ok(Host::Exact(name.to_owned())),
    }
}

fn write_origin(f: &mut fmt::Formatter<'_>, tls: bool, host: &str, port: u16) -> fmt::Result {
    let scheme = if tls { "https" } else { "http" };
    match host.contains(':') {
        true => write!(f, "{scheme}://[{host}]")?,
        false => write!(f, "{scheme}://{host}")?,
    }
    match port == default_port(tls) {
        true => Ok(()),
        false => write!(f, ":{port}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
    }

    fn admits(grant: &str, url: &str) -> bool {
        pattern(grant).admits(&Target::of(&url.parse().unwrap()).unwrap())
    }

    #[test]
    fn a_grant_admits_its_origin_and_no_other() {
        for (grant, url) in [
            ("api.test", "https://api.test/x"),
            ("API.test", "https://api.TEST:443"),
            ("https://api.test:8443", "https://api.test:8443"),
            ("http://api.test", "http://api.test"),
            ("*.api.test", "https://a.b.api.test"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("https://[::1]:1", "https://[::1]:1"),
        ] {
            assert!(admits(grant, url), "{grant} {url}");
        }
        for (grant, url) in [
            ("api.test", "http://api.test"),
            ("api.test", "https://api.test:444"),
            ("api.test", "https://evil.api.test"),
            ("api.test", "https://api.test.evil"),
            ("api.test", "https://evilapi.test"),
            ("*.api.test", "https://api.test"),
            ("*.api.test", "https://evilapi.test"),
            ("*.0.0.1", "https://127.0.0.1"),
            ("http://127.0.0.1", "http://127.0.0.2"),
        ] {
            assert!(!admits(grant, url), "{grant} {url}");
        }
    }

    #[test]
    fn what_is_no_grant_says_why() {
        for (text, why) in [
            ("ftp://api.test", "scheme"),
            ("https://api.test/v1", "no path"),
            ("https://me@api.test", "no user"),
            ("api.test:8080", "needs a scheme"),
            ("https://api.test:0", "port"),
            ("https://api.test:", "port"),
            ("*", "stands only at the begin"),
            ("a.*.test", "stands only at the begin"),
            ("*.com", "too wide"),
            ("api..test", "not the name"),
            ("api.test.", "not the name"),
            ("bücher.test", "not the name"),
            ("", "not the name"),
            ("https://[xyz]", "not an IPv6"),
            ("169.254.169.254", "never connected to"),
            ("http://[::ffff:127.0.0.1]", "never connected to"),
        ] {
            let said = Pattern::parse(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn one_grant_covers_another_where_it_admits_all_of_it() {
        assert!(pattern("*.api.test").covers(&pattern("*.eu.api.test")));
        assert!(pattern("*.api.test").covers(&pattern("eu.api.test")));
        assert!(!pattern("*.eu.api.test").covers(&pattern("*.api.test")));
        assert!(!pattern("eu.api.test").covers(&pattern("*.eu.api.test")));
        assert!(!pattern("api.test").covers(&pattern("http://api.test")));
    }

    proptest! {
        #[test]
        fn a_pattern_shows_what_reads_as_the_same_pattern(
            text in r"(https?://)?(\*\.)?[a-c0-9.*:\[\]/-]{0,12}(:[0-9]{1,5})?"
        ) {
            if let Ok(found) = Pattern::parse(&text) {
                prop_assert_eq!(Pattern::parse(&found.to_string()), Ok(found));
            }
        }
    }
}
