//! The CLI's own login: `auth.json` in its home.

use std::time::{Duration, SystemTime};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use capsule_api::Secret;
use capsule_transport_process::{Format, Grant, Stamp};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The credential file. It may also hold a key of the API, which is not lent: a run on a subscription must not be billed to it.
pub(crate) const FORMAT: Format = Format {
    program: "codex",
    file: "auth.json",
    variable: "CODEX_HOME",
    directory: ".codex",
    parts: &["auth_mode", "tokens", "last_refresh"],
    grant,
    log_in: "Run `codex login` once; or name the directory of a login by `login_home`, or set `login: api_key` and give a key. A login \
             that is kept in a keychain cannot be used.",
};

#[derive(Deserialize)]
struct Tokens {
    id_token: Option<String>,
    access_token: String,
    refresh_token: Option<String>,
    account_id: Option<String>,
}

fn grant(parts: &Map<String, Value>) -> Option<Grant> {
    if parts
        .get("auth_mode")
        .is_some_and(|mode| !mode.is_null() && mode != "chatgpt")
    {
        return None;
    }
    let tokens = Tokens::deserialize(parts.get("tokens")?).ok()?;
    if tokens.access_token.is_empty() {
        return None;
    }
    let renewable = tokens.refresh_token.as_ref().is_some_and(|token| !token.is_empty());
    let plan = tokens.id_token.as_deref().and_then(claims);
    let plan = plan.and_then(|claims| {
        claims["https://api.openai.com/auth"]["chatgpt_plan_type"]
            .as_str()
            .map(str::to_owned)
    });
    let expires = claims(&tokens.access_token).and_then(|claims| claims["exp"].as_u64());
    let secrets = [Some(tokens.access_token), tokens.refresh_token, tokens.id_token];
    let secrets = secrets.into_iter().flatten().filter(|token| !token.is_empty());
    Some(Grant {
        plan,
        account: tokens.account_id,
        stamp: Stamp::rfc3339(parts.get("last_refresh").and_then(Value::as_str).unwrap_or_default()),
        expires: expires.and_then(|at| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(at))),
        renewable,
        secrets: secrets.map(Secret::new).collect(),
    })
}

/// What a token says about itself, where it is a JSON Web Token. Not verified: nothing is granted on it.
fn claims(token: &str) -> Option<Value> {
    let body = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice(&body).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(claims: &Value) -> String {
        format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    fn read(file: &Value) -> Option<Grant> {
        grant(file.as_object().unwrap())
    }

    #[test]
    fn a_login_is_read_as_the_cli_writes_it() {
        let id = token(&json!({"https://api.openai.com/auth": {"chatgpt_plan_type": "plus"}}));
        let access = token(&json!({"exp": 4_102_444_800_u64}));
        let file = json!({"auth_mode": "chatgpt", "last_refresh": "2026-11-29T21:39:55.5Z", "tokens":
            {"id_token": id, "access_token": access, "refresh_token": "rt", "account_id": "acc-1"}});
        let wanted = Grant {
            plan: Some("plus".into()),
            account: Some("acc-1".into()),
            stamp: Stamp::rfc3339("2026-11-29T21:39:55.5Z"),
            expires: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(4_102_444_800)),
            renewable: true,
            secrets: vec![Secret::new(access), Secret::new("rt"), Secret::new(id)],
        };
        assert_eq!(read(&file), Some(wanted));
    }

    #[test]
    fn what_is_no_login_of_a_subscription_is_refused() {
        let tokens = json!({"access_token": "opaque"});
        for none in [
            json!({}),
            json!({"auth_mode": "apikey", "OPENAI_API_KEY": "sk"}),
            json!({"auth_mode": "apikey", "tokens": tokens}),
            json!({"auth_mode": "chatgpt", "tokens": null}),
            json!({"tokens": {"access_token": ""}}),
        ] {
            assert_eq!(read(&none), None, "{none}");
        }
        let opaque = read(&json!({"tokens": tokens})).unwrap();
        assert!(opaque.expires.is_none() && !opaque.renewable);
    }
}
