//! What may be sent.

use capsule_guest::{Error, Json};
use url::Url;

/// Headers of one request, and bytes of all of them.
const MOST_HEADERS: usize = 20;
const MOST_HEADER_BYTES: usize = 8 << 10;
/// The longest address, in bytes.
const LONGEST_URL: usize = 8 << 10;

/// Headers that are the host's, the connection's, or a credential.
const REFUSED: [&str; 20] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "origin",
    "proxy-authorization",
    "proxy-connection",
    "referer",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const CREDENTIALS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// Headers that go along to another host after a redirect: they say what is understood, and nothing about who asks.
pub(crate) const HARMLESS: [&str; 3] = ["accept", "accept-language", "user-agent"];

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Asks for what is at the address.
    Get,
    /// Gives something to what is at the address.
    Post,
}

/// A request that may be sent, where a grant covers its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// GET or POST.
    pub method: Method,
    /// An absolute address of `http` or `https`, without user and fragment.
    pub url: Url,
    /// Names in lower case, with their values.
    pub headers: Vec<(String, String)>,
    /// What is sent along.
    pub body: Vec<u8>,
}

impl Request {
    /// A GET request with the headers of the arguments.
    ///
    /// # Errors
    ///
    /// A sentence that says what may not be sent.
    pub fn get(url: &str, headers: Option<&Json>) -> Result<Self, Error> {
        let mut headers = chosen(headers)?;
        let accept = "text/html, application/json;q=0.9, text/*;q=0.8, */*;q=0.1";
        default(&mut headers, "accept", accept);
        default(
            &mut headers,
            "user-agent",
            concat!("capsule-fetch/", env!("CARGO_PKG_VERSION")),
        );
        Ok(Self {
            method: Method::Get,
            url: address(url)?,
            headers,
            body: Vec::new(),
        })
    }

    /// A POST request with a body of this type.
    ///
    /// # Errors
    ///
    /// As [`Request::get`].
    pub fn post(url: &str, headers: Option<&Json>, content_type: &str, body: Vec<u8>) -> Result<Self, Error> {
        let mut request = Self::get(url, headers)?;
        if !is_value(content_type) {
            return Err(Error::new("the content type has characters that no header may have"));
        }
        request.method = Method::Post;
        request
            .headers
            .push(("content-type".to_owned(), content_type.to_owned()));
        request.body = body;
        Ok(request)
    }
}

/// Reads an absolute address.
///
/// # Errors
///
/// A sentence that says what is wrong with it.
pub(crate) fn address(text: &str) -> Result<Url, Error> {
    if text.len() > LONGEST_URL {
        return Err(Error::new(format!("the url is longer than {LONGEST_URL} bytes")));
    }
    let url = Url::parse(text).map_err(|error| Error::new(format!("'{text}' is not an absolute url: {error}")))?;
    checked(url)
}

/// The address if it is one that may be asked.
pub(crate) fn checked(mut url: Url) -> Result<Url, Error> {
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme();
        return Err(Error::new(format!(
            "a url of the scheme '{scheme}' is not fetched: only http and https are"
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::new(
            "the url has a user or a password: credentials are granted as `secrets`, not written into a url",
        ));
    }
    url.set_fragment(None);
    Ok(url)
}

fn default(headers: &mut Vec<(String, String)>, name: &str, value: &str) {
    if headers.iter().all(|(known, _)| known != name) {
        headers.push((name.to_owned(), value.to_owned()));
    }
}

/// The headers of the arguments: an object of texts.
fn chosen(headers: Option<&Json>) -> Result<Vec<(String, String)>, Error> {
    let fields = match headers {
        None | Some(Json::Null) => return Ok(Vec::new()),
        Some(Json::Object(fields)) => fields,
        Some(_) => return Err(Error::new("argument 'headers' must be an object of names and texts")),
    };
    let mut chosen: Vec<(String, String)> = Vec::new();
    for (name, value) in fields {
        let lower = name.to_ascii_lowercase();
        if CREDENTIALS.contains(&lower.as_str()) {
            return Err(Error::new(format!(
                "the header '{name}' is not set by this tool: where the capsule has a secret for this host, the host program adds it"
            )));
        }
        if REFUSED.contains(&lower.as_str()) || lower.starts_with("sec-") {
            return Err(Error::new(format!(
                "the header '{name}' is not set by this tool: leave it out"
            )));
        }
        let value = value.as_str().filter(|value| is_value(value));
        let value = value.ok_or_else(|| Error::new(format!("the header '{name}' must be a text of one line")))?;
        if !is_name(&lower) {
            return Err(Error::new(format!("'{name}' is not the name of a header")));
        }
        if chosen.iter().any(|(known, _)| *known == lower) {
            return Err(Error::new(format!("the header '{name}' is there twice")));
        }
        chosen.push((lower, value.to_owned()));
    }
    let bytes: usize = chosen.iter().map(|(name, value)| name.len() + value.len()).sum();
    if chosen.len() > MOST_HEADERS || bytes > MOST_HEADER_BYTES {
        return Err(Error::new(format!(
            "there are too many headers: at most {MOST_HEADERS}, of {MOST_HEADER_BYTES} bytes together"
        )));
    }
    Ok(chosen)
}

/// A token (RFC 9110, section 5.6.2).
fn is_name(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(token)
}

/// Visible characters and spaces, none of them at the ends (RFC 9110, section 5.5).
fn is_value(value: &str) -> bool {
    value.trim() == value && !value.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use capsule_guest::json;
    use proptest::prelude::*;

    fn refused(url: &str, headers: Json) -> String {
        Request::get(url, Some(&headers)).unwrap_err().message().to_owned()
    }

    #[test]
    fn a_request_has_what_was_chosen_and_says_who_asks() {
        let headers = json!({"Accept": "text/plain", "X-Test": "a b"});
        let expected = Request {
            method: Method::Get,
            url: Url::parse("https://example.org/a?b=c").unwrap(),
            headers: vec![
                ("accept".to_owned(), "text/plain".to_owned()),
                ("x-test".to_owned(), "a b".to_owned()),
                ("user-agent".to_owned(), "capsule-fetch/0.1.0".to_owned()),
            ],
            body: Vec::new(),
        };
        assert_eq!(
            Request::get("https://EXAMPLE.org/a?b=c#part", Some(&headers)),
            Ok(expected)
        );
    }

    #[test]
    fn only_http_is_fetched_and_no_url_has_a_password() {
        let none = json!(null);
        assert_eq!(
            refused("file:///etc/passwd", none.clone()),
            "a url of the scheme 'file' is not fetched: only http and https are"
        );
        assert_eq!(
            refused("https://me:secret@example.org/", none.clone()),
            "the url has a user or a password: credentials are granted as `secrets`, not written into a url"
        );
        assert_eq!(
            refused("/a", none),
            "'/a' is not an absolute url: relative URL without a base"
        );
    }

    #[test]
    fn headers_of_the_connection_and_credentials_are_refused() {
        let url = "https://example.org";
        assert_eq!(
            refused(url, json!({"Authorization": "Bearer x"})),
            "the header 'Authorization' is not set by this tool: where the capsule has a secret for this host, the host program adds it"
        );
        for name in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "Sec-Fetch-Mode",
            "Accept-Encoding",
        ] {
            let message = format!("the header '{name}' is not set by this tool: leave it out");
            assert_eq!(refused(url, json!({name: "x"})), message);
        }
        assert_eq!(
            refused(url, json!({"x": "a\r\nhost: b"})),
            "the header 'x' must be a text of one line"
        );
        assert_eq!(
            refused(url, json!({"x": 1})),
            "the header 'x' must be a text of one line"
        );
        assert_eq!(refused(url, json!({"x y": "1"})), "'x y' is not the name of a header");
        assert_eq!(
            refused(url, json!({"X": "1", "x": "2"})),
            "the header 'x' is there twice"
        );
        let long = "a".repeat(MOST_HEADER_BYTES);
        assert!(refused(url, json!({"x": long})).starts_with("there are too many headers"));
    }

    proptest! {
        #[test]
        fn no_header_breaks_its_line(name in any::<String>(), value in any::<String>()) {
            if let Ok(request) = Request::get("https://example.org", Some(&json!({name: value}))) {
                for (name, value) in request.headers {
                    let line = name + &value;
                    prop_assert!(!line.contains(['\r', '\n', '\0']));
                }
            }
        }
    }
}
