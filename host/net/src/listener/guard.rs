//! Who may ask for what: all that is decided about a request before its body is read.

use std::net::SocketAddr;

use capsule_api::Secret;
use http::{HeaderMap, Method, Response, StatusCode, header, request::Parts};
use subtle::ConstantTimeEq as _;

use super::Body;

/// What a request must be like. The checks run in the order of the fields, and the first that fails answers.
///
/// A request with an `Origin` header comes from a web page and is refused whatever it says.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Values of `Host` that are accepted besides the bound address, with their port, such as `localhost:8080`.
    pub hosts: Vec<String>,
    /// The exact paths that exist; everything else is 404, with a token or without.
    pub paths: Vec<String>,
    /// The bearer token; `None` lets everyone in who can connect.
    pub token: Option<Secret>,
    /// The methods that are served; everything else is 405.
    pub methods: Vec<Method>,
    /// The media type that a body must have; `None` accepts any.
    pub content_type: Option<&'static str>,
}

impl Guard {
    /// One path, by `POST` with JSON, for holders of the token.
    pub fn json_post(path: impl Into<String>, token: Secret) -> Self {
        Self {
            hosts: Vec::new(),
            paths: vec![path.into()],
            token: Some(token),
            methods: vec![Method::POST],
            content_type: Some("application/json"),
        }
    }

    /// Checks the head of a request to the listener bound to `local`. `largest` is the most bytes that a body may declare.
    pub(super) fn check(&self, head: &Parts, local: SocketAddr, largest: usize) -> Result<(), Refusal> {
        self.check_host(head, local)?;
        if head.headers.contains_key(header::ORIGIN) {
            return Err(Refusal::of(StatusCode::FORBIDDEN));
        }
        if !self.paths.iter().any(|path| path == head.uri.path()) {
            return Err(Refusal::of(StatusCode::NOT_FOUND));
        }
        if !self.token_fits(&head.headers) {
            return Err(Refusal::of(StatusCode::UNAUTHORIZED).with(header::WWW_AUTHENTICATE, "Bearer"));
        }
        if !self.methods.contains(&head.method) {
            let methods: Vec<_> = self.methods.iter().map(Method::as_str).collect();
            return Err(Refusal::of(StatusCode::METHOD_NOT_ALLOWED).with(header::ALLOW, methods.join(", ")));
        }
        // hyper has read the length, and refuses one that is no number or is given twice with different values.
        let declared = single(&head.headers, header::CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        if declared.is_some_and(|length| length > largest as u64) {
            return Err(Refusal::of(StatusCode::PAYLOAD_TOO_LARGE));
        }
        match self.content_type {
            Some(wanted) if !is_media_type(&head.headers, wanted) => {
                Err(Refusal::of(StatusCode::UNSUPPORTED_MEDIA_TYPE))
            }
            _ => Ok(()),
        }
    }

    fn check_host(&self, head: &Parts, local: SocketAddr) -> Result<(), Refusal> {
        let mut hosts = head.headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refusal::of(StatusCode::BAD_REQUEST));
        };
        let known = |name: &str| {
            let bound = local.to_string();
            let mut names = self.hosts.iter().map(String::as_str).chain([bound.as_str()]);
            names.any(|known| known.eq_ignore_ascii_case(name))
        };
        // A proxy's request names the host in its target as well; the two must agree.
        let target = head.uri.authority().is_none_or(|authority| known(authority.as_str()));
        match host.to_str() {
            Ok(host) if known(host) && target => Ok(()),
            _ => Err(Refusal::of(StatusCode::FORBIDDEN)),
        }
    }

    fn token_fits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(given), None) = (given.next(), given.next()) else {
            return false;
        };
        let Some((scheme, given)) = given.as_bytes().split_at_checked("bearer ".len()) else {
            return false;
        };
        let scheme = scheme.eq_ignore_ascii_case(b"bearer ");
        scheme && bool::from(given.ct_eq(token.expose().as_bytes()))
    }
}

fn single(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn is_media_type(headers: &HeaderMap, wanted: &str) -> bool {
    let given = single(headers, header::CONTENT_TYPE).and_then(|value| value.split(';').next());
    given.is_some_and(|given| given.trim().eq_ignore_ascii_case(wanted))
}

/// A request that is answered without its body being read. The connection ends with the answer.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    header: Option<(header::HeaderName, String)>,
}

impl Refusal {
    pub(super) fn of(status: StatusCode) -> Self {
        Self { status, header: None }
    }

    fn with(mut self, name: header::HeaderName, value: impl Into<String>) -> Self {
        self.header = Some((name, value.into()));
        self
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        let close = (header::CONNECTION, "close".to_owned());
        for (name, value) in self.header.into_iter().chain([close]) {
            let value = value.try_into().expect("header values made here are visible ASCII");
            response.headers_mut().insert(name, value);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    const LOCAL: &str = "127.0.0.1:4000";

    fn guard() -> Guard {
        Guard::json_post("/mcp", Secret::new("ToKeN"))
    }

    fn status(guard: &Guard, method: &str, target: &str, headers: &[(&str, &str)]) -> Option<u16> {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let answer = guard.check(&head, LOCAL.parse().unwrap(), 100);
        answer.err().map(|refusal| refusal.status.as_u16())
    }

    const HOST: (&str, &str) = ("host", LOCAL);
    const AUTH: (&str, &str) = ("authorization", "Bearer ToKeN");
    const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");

    #[test]
    fn a_request_as_it_should_be_passes() {
        assert_eq!(status(&guard(), "POST", "/mcp", &[HOST, AUTH, JSON]), None);
        let lower = ("authorization", "bEARER ToKeN");
        assert_eq!(status(&guard(), "POST", "/mcp?x=1", &[HOST, lower, JSON]), None);
        let named = Guard {
            hosts: vec!["localhost:4000".into()],
            ..guard()
        };
        assert_eq!(
            status(&named, "POST", "/mcp", &[("host", "LocalHost:4000"), AUTH, JSON]),
            None
        );
    }

    #[test]
    fn the_first_check_that_fails_answers() {
        const EVIL: (&str, &str) = ("host", "evil.test");
        const ORIGIN: (&str, &str) = ("origin", "null");
        const WRONG: (&str, &str) = ("authorization", "Bearer token");
        const LONG: (&str, &str) = ("content-length", "101");
        const TEXT: (&str, &str) = ("content-type", "text/plain");
        type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)], u16);
        let cases: &[Case] = &[
            ("GET", "/no", &[WRONG, LONG, TEXT], 400),
            ("GET", "/no", &[HOST, HOST, AUTH], 400),
            ("GET", "/no", &[EVIL, WRONG, LONG, TEXT], 403),
            ("GET", "/no", &[("host", "0.0.0.0:4000"), AUTH], 403),
            ("GET", "/no", &[("host", "127.0.0.1"), AUTH], 403),
            ("GET", "http://evil.test/mcp", &[HOST, AUTH], 403),
            ("GET", "/no", &[HOST, ORIGIN, WRONG, LONG, TEXT], 403),
            ("GET", "/no", &[HOST, WRONG, LONG, TEXT], 404),
            ("GET", "/mcp/", &[HOST, WRONG], 404),
            ("GET", "/mcp", &[HOST, WRONG, LONG, TEXT], 401),
            ("GET", "/mcp", &[HOST, AUTH, AUTH], 401),
            ("GET", "/mcp", &[HOST, ("authorization", "Basic ToKeN")], 401),
            ("GET", "/mcp", &[HOST, ("authorization", "Bearer")], 401),
            ("GET", "/mcp", &[HOST, AUTH, LONG, TEXT], 405),
            ("POST", "/mcp", &[HOST, AUTH, LONG, TEXT], 413),
            ("POST", "/mcp", &[HOST, AUTH, TEXT], 415),
            ("POST", "/mcp", &[HOST, AUTH], 415),
        ];
        for (method, target, headers, expected) in cases {
            let got = status(&guard(), method, target, headers);
            assert_eq!(got, Some(*expected), "{method} {target} {headers:?}");
        }
    }
}
