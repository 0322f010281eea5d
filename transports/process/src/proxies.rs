//! The proxy of the host's environment, where the settings pass it on to the program.

use std::ffi::OsString;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use capsule_api::{Secret, Secrets};

use crate::Program;

/// The variables that name a proxy, in both spellings: which one counts is the program's to say.
const PROXIES: [&str; 6] = [
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// What is reached without a proxy always. Without it requests to the bridge, with our token, would go to the proxy.
const LOOPBACK: &str = "127.0.0.1,localhost,::1";

/// The proxies that a program is told of, and what it is to reach without them. By default there are none.
///
/// A proxy's URL may hold a password, so all of them are kept as secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    urls: Vec<(&'static str, Secret)>,
    /// The host's own exceptions.
    except: Option<String>,
}

impl Proxies {
    /// Those of an environment: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, each also in lower case. An empty value is none. Of
    /// the two spellings of `NO_PROXY` the lower-case one counts first.
    pub fn of(env: impl Fn(&str) -> Option<OsString>) -> Self {
        // What is no text is no URL either: the program will say so.
        let text = |name: &str| env(name).map(|value| value.to_string_lossy().into_owned());
        let set = |name: &str| text(name).filter(|value| !value.trim().is_empty());
        let urls = PROXIES.iter().filter_map(|name| Some((*name, Secret::new(set(name)?))));
        Self {
            urls: urls.collect(),
            except: set("no_proxy").or_else(|| set("NO_PROXY")),
        }
    }

    /// Keeps the passwords in the URLs from being shown: as they are written there, decoded, and as they are sent.
    pub fn protect(&self, secrets: &dyn Secrets) {
        for (_, url) in &self.urls {
            let Some(credentials) = credentials(url.expose()) else {
                continue;
            };
            secrets.protect(url);
            let decoded = decoded(credentials);
            for shown in [credentials, &decoded] {
                let password = shown.split_once(':').map_or(shown, |(_, password)| password);
                for part in [shown, password, &STANDARD.encode(shown)] {
                    if !part.is_empty() {
                        secrets.protect(&Secret::new(part));
                    }
                }
            }
        }
    }

    /// The program with these variables. `NO_PROXY` has loopback in any case.
    #[must_use]
    pub fn pass_to(&self, program: Program) -> Program {
        let program = self
            .urls
            .iter()
            .fold(program, |program, (name, url)| program.secret_env(name, url));
        let except = self.except.as_deref().map(|except| except.trim().trim_end_matches(','));
        match except {
            Some(except) if !except.is_empty() => program.env("NO_PROXY", format!("{except},{LOOPBACK}")),
            _ => program.env("NO_PROXY", LOOPBACK),
        }
    }
}

/// User name and password of a URL, as they are written there; also of one without a scheme, which programs take.
fn credentials(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    // An unescaped `/` in a password is wrong, and it is hidden all the same.
    let (credentials, _) = rest.rsplit_once('@')?;
    (!credentials.is_empty()).then_some(credentials)
}

/// With `%XX` as the bytes that they stand for; what is no such thing stays.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes
            .get(at + 1..at + 3)
            .filter(|digits| byte == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let value = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(value.unwrap_or(byte));
        at += if value.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use std::{
        borrow::Cow,
        sync::{Mutex, PoisonError},
    };

    use capsule_api::Error;

    use super::*;

    fn of(values: &[(&str, &str)]) -> Proxies {
        Proxies::of(|name| {
            let found = values.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).into())
        })
    }

    /// The variables that a program gets.
    fn passed(proxies: &Proxies) -> Vec<(String, String)> {
        let program = proxies.pass_to(Program::new("/bin/agent", "/run"));
        let text = |value: OsString| value.into_string().unwrap();
        program
            .env
            .into_iter()
            .map(|(name, value)| (name, text(value)))
            .collect()
    }

    fn pairs(values: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        values.iter().map(owned).collect()
    }

    #[test]
    fn a_program_gets_the_proxies_as_they_are_written_and_loopback_is_reached_without_them() {
        let host = of(&[
            ("HTTPS_PROXY", "http://proxy.example:3128"),
            ("http_proxy", "http://other.example:80"),
            ("ALL_PROXY", ""),
            ("all_proxy", "socks5://third.example"),
            ("NO_PROXY", "internal.example,.corp.example,"),
            ("PATH", "/secret"),
        ]);
        let wanted = [
            ("HTTPS_PROXY", "http://proxy.example:3128"),
            ("http_proxy", "http://other.example:80"),
            ("all_proxy", "socks5://third.example"),
            ("NO_PROXY", "internal.example,.corp.example,127.0.0.1,localhost,::1"),
        ];
        assert_eq!(passed(&host), pairs(&wanted));
    }

    #[test]
    fn loopback_is_excepted_also_where_nothing_is_passed() {
        let alone = pairs(&[("NO_PROXY", "127.0.0.1,localhost,::1")]);
        assert_eq!(passed(&Proxies::default()), alone);
        assert_eq!(passed(&of(&[("NO_PROXY", " , ")])), alone);
        let both = of(&[("NO_PROXY", "upper"), ("no_proxy", "lower")]);
        assert_eq!(passed(&both), pairs(&[("NO_PROXY", "lower,127.0.0.1,localhost,::1")]));
    }

    #[derive(Default)]
    struct Protected(Mutex<Vec<String>>);

    impl Secrets for Protected {
        fn expand(&self, text: &str) -> Result<String, Error> {
            Ok(text.to_owned())
        }

        fn protect(&self, secret: &Secret) {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.push(secret.expose().to_owned());
        }

        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            Cow::Borrowed(text)
        }
    }

    #[test]
    fn a_password_of_a_proxy_is_protected_in_every_form_and_an_address_alone_is_not() {
        let protected = Protected::default();
        let proxies = of(&[
            ("HTTP_PROXY", "http://plain.example:3128"),
            ("HTTPS_PROXY", "http://ada:pa%2Fss@proxy.example:3128/"),
        ]);
        proxies.protect(&protected);
        let known = protected.0.into_inner().unwrap();
        let wanted = [
            "http://ada:pa%2Fss@proxy.example:3128/",
            "ada:pa%2Fss",
            "pa%2Fss",
            "YWRhOnBhJTJGc3M=",
            "ada:pa/ss",
            "pa/ss",
            "YWRhOnBhL3Nz",
        ];
        assert_eq!(known, wanted);
        let shown = format!("{proxies:?} {:?}", proxies.pass_to(Program::new("/bin/agent", "/run")));
        assert!(!shown.contains("ss@") && !shown.contains("example"), "{shown}");
    }

    #[test]
    fn what_is_before_the_last_at_sign_are_the_credentials() {
        for (url, found) in [
            ("http://proxy.example", None),
            ("http://@proxy.example", None),
            ("ada:pw@proxy.example:3128", Some("ada:pw")),
            ("http://token@proxy.example", Some("token")),
            ("http://a:p@w/x@proxy.example/", Some("a:p@w/x")),
        ] {
            assert_eq!(credentials(url), found, "{url}");
        }
        assert_eq!(decoded("%41%4"), "A%4");
        assert_eq!(decoded("%+1%zz%"), "%+1%zz%");
    }
}
