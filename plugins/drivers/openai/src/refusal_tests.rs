use capsule_api::{ErrorKind, http::Response, serde_json::json};

use super::*;

fn head(status: u16) -> Parts {
    let response = Response::builder().status(status).header("x-request-id", "req_1");
    response.body(()).unwrap().into_parts().0
}

fn refused(status: u16, kind: &str, code: &str, message: &str) -> Error {
    let body = json!({"error": {"message": message, "type": kind, "param": null, "code": code}});
    refusal(&head(status), body.to_string().as_bytes())
}

#[test]
fn each_refusal_has_its_class() {
    use ErrorKind::{Auth, BadRequest, ContextOverflow, Overloaded, Quota, RateLimited};
    for (status, kind, code, message, expected) in [
        (
            401,
            "invalid_request_error",
            "invalid_api_key",
            "Incorrect API key",
            Auth,
        ),
        (403, "", "unsupported_country", "no", Auth),
        (429, "requests", "rate_limit_exceeded", "slow down", RateLimited),
        (
            429,
            "insufficient_quota",
            "insufficient_quota",
            "You exceeded your current quota",
            Quota,
        ),
        (429, "", "", "You exceeded your current quota, please check", Quota),
        (402, "", "402", "Insufficient credits", Quota),
        (
            400,
            "invalid_request_error",
            "context_length_exceeded",
            "too long",
            ContextOverflow,
        ),
        (
            400,
            "BadRequestError",
            "400",
            "This model's maximum context length is 4096 tokens",
            ContextOverflow,
        ),
        (400, "exceed_context_size_error", "400", "no", ContextOverflow),
        (404, "invalid_request_error", "model_not_found", "no model", BadRequest),
        (400, "invalid_request_error", "", "messages: no", BadRequest),
        (422, "", "", "no", BadRequest),
        (413, "", "", "too large", BadRequest),
        (500, "server_error", "", "oops", Overloaded),
        (503, "", "", "busy", Overloaded),
    ] {
        assert_eq!(
            refused(status, kind, code, message).kind,
            expected,
            "{status} {kind} {code}"
        );
    }
}

#[test]
fn an_error_says_what_the_provider_said() {
    let error = refused(
        404,
        "invalid_request_error",
        "model_not_found",
        "The model `nope` does not exist",
    );
    assert_eq!(
        error.message,
        "the endpoint answered with status 404: model_not_found: The model `nope` does not exist"
    );
    assert_eq!(error.context, [("request_id", "req_1".to_owned())]);
    assert!(error.hint.contains("inference.model"));
}

#[test]
fn compatible_servers_write_errors_in_other_forms() {
    let of = |body: Value| refusal(&head(400), body.to_string().as_bytes());
    assert_eq!(of(json!({"error": "no such parameter"})).code, "openai-bad-request");
    assert_eq!(
        of(json!([{"error": {"code": 400, "message": "no"}}])).code,
        "openai-bad-request"
    );
    assert_eq!(
        of(json!({"object": "error", "message": "no", "code": 400})).code,
        "openai-bad-request"
    );
    assert_eq!(of(json!({"ok": false})).code, "openai-protocol");
}

#[test]
fn h_02_an_error_within_a_stream_has_its_class() {
    let of = |data: Value| in_stream(&data);
    assert_eq!(
        of(json!({"error": {"code": 502, "message": "Provider disconnected"}})).code,
        "openai-server"
    );
    assert_eq!(
        of(json!({"error": {"code": "server_error", "message": "x"}})).retry,
        Retry::Later
    );
    assert_eq!(
        of(json!({"type": "error", "code": "rate_limit_exceeded", "message": "x"})).kind,
        ErrorKind::RateLimited
    );
    let unknown = of(json!({"error": {"type": "brand_new", "message": "no"}}));
    assert_eq!(
        (unknown.code, unknown.message.as_str()),
        ("openai-protocol", "the endpoint answered in its stream: brand_new: no")
    );
}

#[test]
fn a_page_is_no_answer_of_the_api_but_its_status_still_says_whether_to_try_again() {
    let page = |status| refusal(&head(status), b"<html>502 Bad Gateway</html>");
    assert_eq!((page(404).code, page(404).retry), ("openai-protocol", Retry::Never));
    assert_eq!(page(401).kind, ErrorKind::Auth);
    assert_eq!((page(502).kind, page(502).retry), (ErrorKind::Overloaded, Retry::Later));
}
