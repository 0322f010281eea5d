//! Which URLs and addresses an outgoing request may use. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use capsule_api::Error;
use http::Uri;

use crate::codes;

/// Where a URL of plain `http` may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainHttp {
    /// To `localhost` and loopback addresses alone.
    ThisMachine,
    /// To any host. For a caller that asked a person: what such a connection carries can be read and changed on its way.
    Anywhere,
}

/// Why no connection to this address is ever made, whoever asks and however it is written; `None` where one may be.
pub fn never_connected_to(ip: IpAddr) -> Option<&'static str> {
    match class(ip) {
        Class::Never(why) => Some(why),
        _ => None,
    }
}

/// Where a request goes, as its URL says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub(super) tls: bool,
    /// Without brackets, in lower case.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Origin {
    /// Reads and checks a URL: `https`, or `http` to this machine; no credentials in it.
    pub(super) fn of(uri: &Uri) -> Result<Self, Error> {
        Self::with(uri, PlainHttp::ThisMachine)
    }

    /// The same, with another rule for plain `http`.
    pub(super) fn with(uri: &Uri, plain: PlainHttp) -> Result<Self, Error> {
        let refused = |why: &str| {
            // The URL is shown without its query, which may hold a key.
            let host = uri.host().unwrap_or_default();
            Err(Error::new(
                &codes::URL_REFUSED,
                format!("the request to `{host}` is not made: {why}"),
            ))
        };
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return refused("the URL has no scheme or no host");
        };
        if authority.as_str().contains('@') {
            return refused("its URL holds a user name or a password");
        }
        let tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return refused("its scheme is neither https nor http"),
        };
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_ascii_lowercase();
        if host.is_empty() {
            return refused("the URL has no host");
        }
        // `http` reads a port that does not fit as none at all.
        let has_port = authority.as_str().len() > authority.host().len();
        if has_port && authority.port_u16().is_none_or(|port| port == 0) {
            return refused("its port is not a number from 1 to 65535");
        }
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let origin = Self { tls, host, port };
        if !tls && plain == PlainHttp::ThisMachine && !origin.is_this_machine() {
            return refused("plain http is for this machine alone");
        }
        Ok(origin)
    }

    /// The address that the host is written as, if it is one.
    pub(super) fn literal(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    pub(super) fn is_this_machine(&self) -> bool {
        self.host == "localhost" || self.literal().is_some_and(|ip| ip.is_loopback())
    }

    /// Whether a connection to `ip` may be made for this URL; the reason if not.
    pub(super) fn admits(&self, ip: IpAddr) -> Result<(), &'static str> {
        match (class(ip), self.is_this_machine()) {
            (Class::Never(why), _) => Err(why),
            (Class::Loopback, true) => Ok(()),
            (Class::Loopback, false) => Err("a loopback address behind a name"),
            (_, true) => Err("`localhost` that is not this machine"),
            (Class::Private, false) if self.literal() != Some(ip) => Err("a private address behind a name"),
            (Class::Private | Class::Public, false) => Ok(()),
        }
    }

    /// The value of `Host`.
    pub(super) fn host_header(&self) -> String {
        let default = if self.tls { 443 } else { 80 };
        if self.port == default {
            self.host_in_url()
        } else {
            self.with_port()
        }
    }

    /// Host and port.
    pub(super) fn with_port(&self) -> String {
        format!("{}:{}", self.host_in_url(), self.port)
    }

    fn host_in_url(&self) -> String {
        match self.literal() {
            Some(IpAddr::V6(ip)) => format!("[{ip}]"),
            _ => self.host.clone(),
        }
    }
}

/// What kind of address it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Public,
    Private,
    Loopback,
    /// Not to be connected to, whoever asks.
    Never(&'static str),
}

fn class(ip: IpAddr) -> Class {
    match ip {
        IpAddr::V4(ip) => class_v4(ip),
        IpAddr::V6(ip) => class_v6(ip),
    }
}

fn class_v4(ip: Ipv4Addr) -> Class {
    match ip.octets() {
        [0, ..] => Class::Never("an unspecified address"),
        [127, ..] => Class::Loopback,
        // Addresses of cloud metadata outside the link-local range.
        [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => Class::Never("a metadata address"),
        [169, 254, ..] => Class::Never("a link-local or metadata address"),
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] | [100, 64..=127, ..] => Class::Private,
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Class::Never("a reserved address")
        }
        [224..=239, ..] => Class::Never("a multicast address"),
        [240..=255, ..] => Class::Never("a reserved or broadcast address"),
        _ => Class::Public,
    }
}

fn class_v6(ip: Ipv6Addr) -> Class {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Class::Never("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Loopback,
        // Each of these carries an IPv4 address that no one has checked.
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => {
            Class::Never("an IPv4 address written as IPv6")
        }
        [0x64, 0xff9b, ..] => Class::Never("a NAT64 address"),
        [0x2002, ..] | [0x2001, 0, ..] => Class::Never("an address of an IPv4 tunnel"),
        [0xfd00, 0xec2, ..] | [0xfd20, 0xce, ..] => Class::Never("a metadata address"),
        [0xfc00..=0xfdff, ..] => Class::Private,
        [0xfe80..=0xfebf, ..] => Class::Never("a link-local address"),
        [0xfec0..=0xfeff, ..] => Class::Never("a site-local address"),
        [0xff00..=0xffff, ..] => Class::Never("a multicast address"),
        // Global unicast is 2000::/3, without its documentation ranges.
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => Class::Never("a reserved address"),
        [0x2000..=0x3fff, ..] => Class::Public,
        _ => Class::Never("a reserved address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn origin(url: &str) -> Result<Origin, Error> {
        Origin::of(&url.parse().unwrap())
    }

    fn admits(url: &str, ip: &str) -> Result<(), &'static str> {
        origin(url).unwrap().admits(ip.parse().unwrap())
    }

    #[test]
    fn urls_are_https_or_http_to_this_machine() {
        for url in [
            "https://api.test/v1",
            "https://10.0.0.1",
            "http://localhost:1",
            "http://127.0.0.9",
            "http://[::1]:2",
        ] {
            assert!(origin(url).is_ok(), "{url}");
        }
        let refused = [
            "http://api.test",
            "http://10.0.0.1",
            "http://localhost.",
            "http://127.1",
            "http://localhost.evil.test",
            "http://[::ffff:127.0.0.1]",
            "https://user:password@api.test",
            "https://localhost@evil.test",
            "https://api.test:0",
            "ftp://api.test",
            "/path",
        ];
        for url in refused {
            assert_eq!(origin(url).unwrap_err().code, "net-url-refused", "{url}");
        }
    }

    #[test]
    fn plain_http_elsewhere_is_for_those_who_ask_for_it_and_changes_nothing_else() {
        let anywhere = |url: &str| Origin::with(&url.parse().unwrap(), PlainHttp::Anywhere);
        let origin = anywhere("http://api.test").unwrap();
        assert_eq!((origin.tls, origin.port), (false, 80));
        for ip in ["127.0.0.1", "10.0.0.1", "169.254.169.254"] {
            assert!(origin.admits(ip.parse().unwrap()).is_err(), "{ip}");
        }
        assert!(anywhere("http://user@api.test").is_err());
        assert_eq!(
            never_connected_to("169.254.169.254".parse().unwrap()),
            Some("a link-local or metadata address")
        );
        assert_eq!(never_connected_to("10.0.0.1".parse().unwrap()), None);
    }

    #[test]
    fn a_refused_url_is_not_shown_with_its_secrets() {
        let error = origin("https://user:hunter2@api.test/?key=hunter3").unwrap_err();
        assert_eq!(
            error.message,
            "the request to `api.test` is not made: its URL holds a user name or a password"
        );
    }

    #[test]
    fn h_15_addresses_that_are_never_connected_to() {
        let never = [
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "169.254.1.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "198.18.0.1",
            "::",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:0:1.2.3.4",
            "::8.8.8.8",
            "64:ff9b::1.1.1.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:0:1::",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "100::1",
        ];
        for ip in never {
            let literal = if ip.contains(':') {
                format!("https://[{ip}]")
            } else {
                format!("https://{ip}")
            };
            for url in ["https://api.test", "https://localhost", literal.as_str()] {
                assert!(admits(url, ip).is_err(), "{url} {ip}");
            }
        }
    }

    #[test]
    fn loopback_and_private_addresses_must_be_written_out() {
        for ip in ["127.0.0.1", "127.9.9.9", "::1"] {
            assert!(admits("https://api.test", ip).is_err(), "{ip}");
            assert_eq!(admits("http://localhost", ip), Ok(()), "{ip}");
        }
        for ip in ["10.1.2.3", "172.31.0.1", "192.168.1.1", "100.64.0.1", "fd12::1"] {
            assert!(admits("https://api.test", ip).is_err(), "{ip}");
            assert!(admits("http://localhost", ip).is_err(), "{ip}");
        }
        assert_eq!(admits("https://10.1.2.3", "10.1.2.3"), Ok(()));
        assert!(admits("https://10.1.2.3", "10.1.2.4").is_err());
        assert_eq!(admits("https://[fd12::1]", "fd12::1"), Ok(()));
        assert_eq!(admits("https://api.test", "93.184.216.34"), Ok(()));
        assert_eq!(admits("https://api.test", "2606:2800:220:1::1"), Ok(()));
        assert!(admits("http://localhost", "93.184.216.34").is_err());
    }

    #[test]
    fn the_host_header_names_the_port_only_where_it_is_not_the_default() {
        let header = |url| origin(url).unwrap().host_header();
        assert_eq!(header("https://API.test:443/x"), "api.test");
        assert_eq!(header("http://[::1]:8080"), "[::1]:8080");
        assert_eq!(header("http://localhost"), "localhost");
    }

    proptest! {
        #[test]
        fn no_ipv6_that_carries_an_ipv4_is_admitted(bits: u32) {
            let ip = Ipv4Addr::from(bits);
            let [a, b, c, d] = ip.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            for ip in [ip.to_ipv6_mapped(), Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low), Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1)] {
                prop_assert!(matches!(class(ip.into()), Class::Never(_)));
            }
        }
    }
}
