use capsule_api::Wire;

use super::*;

fn uri(base: &str) -> Result<String, String> {
    let made = uri_of(Some(base), "chat/completions");
    made.map(|uri| uri.to_string()).map_err(|error| error.message.clone())
}

#[test]
fn a_base_url_is_joined_with_the_call_and_gets_a_version_where_it_has_no_path() {
    for (base, expected) in [
        (DEFAULT_ENDPOINT, "https://api.openai.com/v1/chat/completions"),
        (
            "https://openrouter.example/api/v1/",
            "https://openrouter.example/api/v1/chat/completions",
        ),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/chat/completions"),
        ("http://[::1]:8080//", "http://[::1]:8080/v1/chat/completions"),
        ("http://localhost:1/v2", "http://localhost:1/v2/chat/completions"),
    ] {
        assert_eq!(uri(base), Ok(expected.to_owned()), "{base}");
    }
}

#[test]
fn an_endpoint_that_would_show_the_key_is_refused() {
    for base in [
        "http://api.openai.com/v1",
        "http://127.0.0.1.evil.example",
        "http://10.0.0.1",
    ] {
        assert!(uri(base).unwrap_err().contains("on loopback only"), "{base}");
    }
    for base in [
        "",
        "api.openai.com",
        "ftp://x.example",
        "https://u:p@x.example",
        "https://x.example/?a=b",
        "https://x.example/#a",
    ] {
        assert!(uri(base).is_err(), "{base}");
    }
}

#[test]
fn a_key_is_required_at_the_providers_own_host_only_and_never_shown() {
    let own = uri_of(None, "responses").unwrap();
    let other = uri_of(Some("http://localhost:8080"), "responses").unwrap();
    assert_eq!(authorization(None, &own).unwrap_err().code, "openai-key-missing");
    assert_eq!(authorization(None, &other).unwrap(), None);
    let key = authorization(Some(&Secret::new("sk-dummy")), &other).unwrap().unwrap();
    assert_eq!((key.to_str().unwrap(), key.is_sensitive()), ("Bearer sk-dummy", true));
    let error = authorization(Some(&Secret::new("sk-\ndummy")), &own).unwrap_err();
    assert!(!format!("{error:?}").contains("dummy"));
}

#[test]
fn a_key_pays_and_without_one_a_server_of_this_machine_is_free() {
    let paid = |base: &str, key: Option<&str>| {
        let endpoint = uri_of(Some(base), "responses").unwrap();
        let key = authorization(key.map(Secret::new).as_ref(), &endpoint).unwrap();
        (
            Wire::billing(&Chat::new(endpoint.clone(), key.clone(), OutputLimit::MaxTokens)),
            Wire::billing(&Responses::new(endpoint, key)),
        )
    };
    let both = |billing| (billing, billing);
    let local = "http://127.0.0.1:8080/v1";
    assert_eq!(paid(local, None), both(Billing::Free));
    assert_eq!(paid(local, Some(" ")), both(Billing::Free));
    assert_eq!(paid(local, Some("k")), both(Billing::ApiKey));
    assert_eq!(paid("https://x.example/v1", None), both(Billing::Unknown));
    assert_eq!(paid("https://api.openai.com/v1", Some("k")), both(Billing::ApiKey));
}
