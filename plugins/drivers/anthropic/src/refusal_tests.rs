use capsule_api::{ErrorKind, http::Response};

use super::*;

fn head(status: u16) -> Parts {
    let response = Response::builder().status(status).header("request-id", "req_1");
    response.body(()).unwrap().into_parts().0
}

fn refused(status: u16, kind: &str, message: &str) -> Error {
    let body = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#);
    refusal(&head(status), body.as_bytes())
}

#[test]
fn each_refusal_has_its_class() {
    for (status, kind, message, expected) in [
        (401, "authentication_error", "invalid x-api-key", ErrorKind::Auth),
        (403, "permission_error", "no", ErrorKind::Auth),
        (429, "rate_limit_error", "slow down", ErrorKind::RateLimited),
        (529, "overloaded_error", "Overloaded", ErrorKind::Overloaded),
        (503, "", "no", ErrorKind::Overloaded),
        (500, "api_error", "Internal server error", ErrorKind::Overloaded),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the API",
            ErrorKind::Quota,
        ),
        (402, "billing_error", "pay", ErrorKind::Quota),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 3 > 2",
            ErrorKind::ContextOverflow,
        ),
        (400, "invalid_request_error", "max_tokens: no", ErrorKind::BadRequest),
        (404, "not_found_error", "model: nope", ErrorKind::BadRequest),
        (413, "request_too_large", "too large", ErrorKind::BadRequest),
    ] {
        assert_eq!(refused(status, kind, message).kind, expected, "{status} {kind}");
    }
}

#[test]
fn an_error_says_what_the_provider_said() {
    let error = refused(404, "not_found_error", "model: claude-nope");
    assert_eq!(
        error.message,
        "Anthropic answered with status 404: not_found_error: model: claude-nope"
    );
    assert_eq!(error.context, [("request_id", "req_1".to_owned())]);
    assert!(error.hint.contains("inference.model"));
}

#[test]
fn a_page_is_no_answer_of_the_api_but_its_status_still_says_whether_to_try_again() {
    let page = |status| refusal(&head(status), b"<html>502 Bad Gateway</html>");
    assert_eq!((page(404).kind, page(404).retry), (ErrorKind::Protocol, Retry::Never));
    assert_eq!((page(403).kind, page(403).retry), (ErrorKind::Protocol, Retry::Never));
    assert_eq!(page(401).kind, ErrorKind::Auth);
    assert_eq!((page(502).kind, page(502).retry), (ErrorKind::Overloaded, Retry::Later));
    assert_eq!(
        (page(429).kind, page(429).retry),
        (ErrorKind::RateLimited, Retry::Later)
    );
    let message = page(404).message.clone();
    assert_eq!(
        message,
        "the endpoint answered with status 404 and no content type, not with an error of the API"
    );
}
