//! Follows redirects, each as a request of its own that the host checks like the first.

use capsule_guest::Error;
use url::Url;

use crate::request::{HARMLESS, Method, Request, checked};

/// Redirects that are followed.
pub const MOST_REDIRECTS: usize = 5;

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case, with their values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, or its beginning.
    pub body: Vec<u8>,
    /// Whether the body goes on after what is here.
    pub cut: bool,
}

impl Response {
    /// The first header of this name, as text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }
}

/// The answer to the last request, and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The address of the last request.
    pub url: Url,
    /// What came from there.
    pub response: Response,
}

/// Sends a request and those that its answers redirect to.
///
/// # Errors
///
/// That of `send`; or a sentence that says why a redirect is not followed.
pub fn follow(
    mut request: Request,
    mut send: impl FnMut(&Request) -> Result<Response, Error>,
) -> Result<Fetched, Error> {
    for hops in 0.. {
        let response = send(&request).map_err(|why| match hops {
            0 => why,
            _ => why.within(&format!("after a redirect to {}: ", origin(&request.url))),
        })?;
        let Some(location) = target(&response) else {
            let url = request.url;
            return Ok(Fetched { url, response });
        };
        if hops == MOST_REDIRECTS {
            break;
        }
        request = redirected(request, response.status, &location)?;
    }
    Err(Error::new(format!(
        "more than {MOST_REDIRECTS} redirects were answered: not followed further"
    )))
}

/// Where a response redirects to, as it is written.
fn target(response: &Response) -> Option<String> {
    let redirects = matches!(response.status, 301 | 302 | 303 | 307 | 308);
    response.header("location").filter(|_| redirects)
}

/// The request that follows (RFC 9110, section 15.4), or why there is none.
fn redirected(before: Request, status: u16, location: &str) -> Result<Request, Error> {
    let url = before.url.join(location).map_err(|error| {
        let from = origin(&before.url);
        Error::new(format!("{from} redirects to what is no url ({error})"))
    })?;
    let url = checked(url).map_err(|why| why.within("a redirect is not followed: "))?;
    let (from, to) = (origin(&before.url), origin(&url));
    if before.url.scheme() == "https" && url.scheme() == "http" {
        return Err(Error::new(format!(
            "{from} redirects to {to}, which is not encrypted: not followed"
        )));
    }
    let same = before.url.origin() == url.origin();
    let keeps_method = matches!(status, 307 | 308);
    if before.method == Method::Post && keeps_method && !same {
        return Err(Error::new(format!(
            "{from} redirects to {to}: what is sent by POST is not given to another host"
        )));
    }
    let mut next = Request { url, ..before };
    if !same {
        next.headers.retain(|(name, _)| HARMLESS.contains(&name.as_str()));
    }
    if next.method == Method::Post && !keeps_method {
        next.method = Method::Get;
        next.body.clear();
        next.headers.retain(|(name, _)| name != "content-type");
    }
    Ok(next)
}

/// Scheme, host and port: paths and queries may hold what is nobody's business.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use super::*;
    use capsule_guest::json;

    fn redirect(status: u16, location: &str) -> Response {
        Response {
            status,
            headers: vec![("location".to_owned(), location.as_bytes().to_vec())],
            ..Response::default()
        }
    }

    fn ok() -> Response {
        Response {
            status: 200,
            body: b"ok".to_vec(),
            ..Response::default()
        }
    }

    fn get(url: &str) -> Request {
        Request::get(url, Some(&json!({"x-mine": "1"}))).unwrap()
    }

    fn post(url: &str) -> Request {
        Request::post(url, None, "text/plain", b"body".to_vec()).unwrap()
    }

    /// What was sent, and what came of it, where these are the answers.
    fn story(request: Request, answers: &[Response]) -> (Vec<Request>, Result<Fetched, String>) {
        let mut sent = Vec::new();
        let mut answers = answers.iter();
        let fetched = follow(request, |request| {
            sent.push(request.clone());
            answers.next().cloned().ok_or_else(|| Error::new("nobody there"))
        });
        (sent, fetched.map_err(|error| error.message().to_owned()))
    }

    #[test]
    fn a_redirect_on_the_same_host_keeps_the_headers() {
        let (sent, fetched) = story(get("https://a.org/x/y"), &[redirect(301, "../z?q#f"), ok()]);
        assert_eq!(sent, [get("https://a.org/x/y"), get("https://a.org/z?q")]);
        let url = Url::parse("https://a.org/z?q").unwrap();
        assert_eq!(fetched, Ok(Fetched { url, response: ok() }));
    }

    #[test]
    fn a_redirect_to_another_host_leaves_all_but_the_harmless_headers_behind() {
        let (sent, _) = story(get("https://a.org/"), &[redirect(302, "//b.org/"), ok()]);
        assert_eq!(
            sent[1],
            Request::get("https://b.org/", None)
                .map(|mut request| {
                    request.headers = sent[0]
                        .headers
                        .iter()
                        .filter(|(name, _)| name != "x-mine")
                        .cloned()
                        .collect();
                    request
                })
                .unwrap()
        );
    }

    #[test]
    fn encryption_is_not_left_and_other_schemes_are_not_followed() {
        let (sent, fetched) = story(get("https://a.org/"), &[redirect(302, "http://a.org/")]);
        assert_eq!(sent.len(), 1);
        let message = "https://a.org redirects to http://a.org, which is not encrypted: not followed";
        assert_eq!(fetched, Err(message.to_owned()));

        let (_, fetched) = story(get("https://a.org/"), &[redirect(302, "file:///etc/passwd")]);
        let message = "a redirect is not followed: a url of the scheme 'file' is not fetched: only http and https are";
        assert_eq!(fetched, Err(message.to_owned()));
    }

    #[test]
    fn redirects_in_a_circle_end() {
        let circle = vec![redirect(302, "/"); 10];
        let (sent, fetched) = story(get("https://a.org/"), &circle);
        assert_eq!(sent.len(), MOST_REDIRECTS + 1);
        assert_eq!(
            fetched,
            Err("more than 5 redirects were answered: not followed further".to_owned())
        );
    }

    #[test]
    fn a_post_becomes_a_get_unless_the_status_says_otherwise() {
        for status in [301, 302, 303] {
            let (sent, _) = story(post("https://a.org/"), &[redirect(status, "/done"), ok()]);
            assert_eq!(sent[1], Request::get("https://a.org/done", None).unwrap(), "{status}");
        }
        let (sent, _) = story(post("https://a.org/"), &[redirect(307, "/again"), ok()]);
        assert_eq!(sent[1], post("https://a.org/again"));
        let (_, fetched) = story(post("https://a.org/"), &[redirect(308, "https://b.org/")]);
        let message = "https://a.org redirects to https://b.org: what is sent by POST is not given to another host";
        assert_eq!(fetched, Err(message.to_owned()));
    }

    #[test]
    fn a_failure_after_a_redirect_says_where() {
        let (_, fetched) = story(get("https://a.org/"), &[redirect(302, "https://b.org/secret")]);
        assert_eq!(
            fetched,
            Err("after a redirect to https://b.org: nobody there".to_owned())
        );
    }

    #[test]
    fn other_answers_are_no_redirects() {
        for response in [
            redirect(304, "/x"),
            redirect(200, "/x"),
            Response {
                status: 302,
                ..Response::default()
            },
        ] {
            let (sent, fetched) = story(get("https://a.org/"), std::slice::from_ref(&response));
            assert_eq!(sent.len(), 1);
            assert_eq!(fetched.map(|fetched| fetched.response), Ok(response));
        }
    }
}
