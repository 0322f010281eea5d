use capsule_api::ErrorKind;
use capsule_transport_kit::NoSecrets;

use super::*;

const ENDPOINT: Code = Code {
    id: "agent-endpoint",
    kind: ErrorKind::Settings,
    meaning: "",
    remedy: "",
};

const FORMAT: Format = Format {
    program: "agent",
    file: "login.json",
    variable: "AGENT_HOME",
    directory: ".agent",
    parts: &[],
    grant: |_| None,
    log_in: "run `agent login`",
};

const AGENT: SettingsOf = SettingsOf {
    command: "agent",
    endpoint: "Base URL.",
    logins: &[Login::Subscription, Login::Token, Login::ApiKey],
    credentials: &FORMAT,
    endpoint_code: &ENDPOINT,
};

fn read(values: Value) -> Result<CliSettings, Error> {
    let Value::Object(values) = values else {
        panic!("{values}")
    };
    let settings = Settings::new(values, &AGENT.schema(), "/capsule");
    AGENT.read(&settings, &NoSecrets)
}

/// Code and message of what is refused.
fn refused(values: Value) -> (&'static str, String) {
    let error = read(values).unwrap_err();
    (error.code, error.message.clone())
}

#[test]
fn without_settings_the_clis_own_login_pays() {
    let settings = read(json!({})).unwrap();
    let wanted = CliSettings {
        command: "agent".into(),
        endpoint: None,
        credential: Credential::Subscription(None),
        idle: Duration::from_secs(600),
        wall: None,
        proxies: Proxies::default(),
    };
    assert_eq!(settings, wanted);
    let properties = &AGENT.schema()["properties"];
    assert_eq!(
        (
            &properties["command"]["default"],
            &properties["idle_timeout"]["default"],
            &properties["pass_proxy"]["default"],
        ),
        (&json!("agent"), &json!("10m"), &json!(false))
    );
}

#[test]
fn p_13_exactly_the_credential_that_is_given_pays() {
    let (key, token) = (
        Credential::ApiKey(Secret::new("k")),
        Credential::Token(Secret::new("t")),
    );
    let home = |path: &str| Credential::Subscription(Some(path.into()));
    for (values, credential) in [
        (json!({"api_key": "k"}), key.clone()),
        (json!({"login": "api_key", "api_key": "k"}), key),
        (json!({"token": "t"}), token.clone()),
        (json!({"login": "token", "token": "t"}), token),
        (json!({"login": "subscription"}), Credential::Subscription(None)),
        (json!({"login_home": "/logins/work"}), home("/logins/work")),
        (json!({"login_home": "work"}), home("/capsule/work")),
    ] {
        assert_eq!(read(values.clone()).unwrap().credential, credential, "{values}");
    }
    for (values, why) in [
        (
            json!({"login": "subscription", "api_key": "k"}),
            "`api_key` is given, and `login: subscription` does not use it",
        ),
        (
            json!({"login": "token", "token": "t", "api_key": "k"}),
            "`api_key` is given, and `login: token` does not use it",
        ),
        (
            json!({"token": "t", "api_key": "k"}),
            "`token` is given, and `login: api_key` does not use it",
        ),
        (
            json!({"api_key": "k", "login_home": "/h"}),
            "`login_home` is given, and `login: api_key` does not use it",
        ),
        (json!({"login": "api_key"}), "`login: api_key` needs `api_key`"),
        (json!({"login": "token"}), "`login: token` needs `token`"),
    ] {
        assert_eq!(refused(values), ("process-login-settings", why.to_owned()));
    }
}

#[test]
fn a_credential_goes_to_https_or_to_loopback_only() {
    for good in [
        "https://api.example.com",
        "http://127.0.0.1:4000/base",
        "http://[::1]:1",
        "http://localhost",
    ] {
        let settings = read(json!({"endpoint": good, "api_key": "k"}));
        assert_eq!(settings.unwrap().endpoint.as_deref(), Some(good));
    }
    for (wrong, why) in [
        ("http://api.example.com", "is plain http to another machine"),
        ("http://localhost.example.com", "is plain http to another machine"),
        ("https://me:pass@api.example.com", "has a user name in it"),
        ("ftp://127.0.0.1", "is neither https nor http"),
        ("/v1", "is not an absolute URL"),
        ("not a url", "is not a URL"),
    ] {
        let refused = refused(json!({"endpoint": wrong, "api_key": "k"}));
        assert_eq!(refused, ("agent-endpoint", format!("`endpoint` {why}")));
    }
}

#[test]
fn p_13_a_persons_login_goes_to_no_endpoint_of_a_manifest_but_loopback() {
    assert!(read(json!({"endpoint": "http://127.0.0.1:1"})).is_ok());
    let (code, message) = refused(json!({"endpoint": "https://collector.example.com"}));
    assert_eq!(code, "process-login-endpoint");
    assert!(!message.contains("collector"), "{message}");
    assert!(read(json!({"endpoint": "https://gateway.example.com", "token": "t"})).is_ok());
}

#[test]
fn debug_shows_no_credential() {
    for values in [json!({"api_key": "sk-secret"}), json!({"token": "sk-secret"})] {
        assert!(!format!("{:?}", read(values).unwrap()).contains("sk-secret"));
    }
}

#[test]
fn a_proxy_is_passed_on_only_where_the_settings_say_so() {
    let of_this_process = Proxies::of(|name| std::env::var_os(name));
    for (values, proxies) in [
        (json!({"pass_proxy": true}), of_this_process),
        (json!({"pass_proxy": false}), Proxies::default()),
    ] {
        assert_eq!(read(values).unwrap().proxies, proxies);
    }
    assert_eq!(
        read(json!({"pass_proxy": "yes"})).unwrap_err().code,
        "settings-unreadable"
    );
}
