//! The CLI's own login: `.credentials.json` in its configuration directory.

use std::time::{Duration, SystemTime};

use capsule_api::Secret;
use capsule_transport_process::{Format, Grant, Stamp};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The credential file. It may also hold tokens of MCP servers, which are not lent.
pub(crate) const FORMAT: Format = Format {
    program: "claude",
    file: ".credentials.json",
    variable: "CLAUDE_CONFIG_DIR",
    directory: ".claude",
    parts: &["claudeAiOauth"],
    grant,
    log_in: "Run `claude` once and log in; or name the directory of a login by `login_home`, or give a `token` that `claude setup-token` prints, \
             or set `login: api_key` and give a key. A login that is kept in a keychain cannot be used.",
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OAuth {
    access_token: String,
    refresh_token: Option<String>,
    /// In milliseconds since 1970.
    expires_at: Option<u64>,
    subscription_type: Option<String>,
}

fn grant(parts: &Map<String, Value>) -> Option<Grant> {
    let oauth = OAuth::deserialize(parts.get("claudeAiOauth")?).ok()?;
    let renewable = oauth.refresh_token.as_ref().is_some_and(|token| !token.is_empty());
    let tokens = [Some(oauth.access_token), oauth.refresh_token];
    let tokens = tokens.into_iter().flatten().filter(|token| !token.is_empty());
    let secrets: Vec<_> = tokens.map(Secret::new).collect();
    if secrets.is_empty() {
        return None;
    }
    Some(Grant {
        plan: oauth.subscription_type,
        // The file does not say.
        account: None,
        stamp: Stamp::millis(oauth.expires_at.unwrap_or_default()),
        expires: oauth
            .expires_at
            .and_then(|at| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(at))),
        renewable,
        secrets,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_is_not_logged_in_learns_of_every_way_to_be() {
        for way in [
            "log in",
            "`login_home`",
            "`token`",
            "`claude setup-token`",
            "`login: api_key`",
        ] {
            assert!(FORMAT.log_in.contains(way), "{way}");
        }
    }

    fn read(oauth: Value) -> Option<Grant> {
        grant(json!({ "claudeAiOauth": oauth }).as_object().unwrap())
    }

    #[test]
    fn a_login_is_read_as_the_cli_writes_it() {
        let oauth = json!({"accessToken": "at", "refreshToken": "rt", "expiresAt": 4_102_444_800_000_u64,
            "scopes": ["user:inference"], "subscriptionType": "max"});
        let wanted = Grant {
            plan: Some("max".into()),
            account: None,
            stamp: Stamp::millis(4_102_444_800_000),
            expires: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(4_102_444_800)),
            renewable: true,
            secrets: vec![Secret::new("at"), Secret::new("rt")],
        };
        assert_eq!(read(oauth), Some(wanted));
    }

    #[test]
    fn what_holds_no_token_is_no_login() {
        for none in [
            json!(null),
            json!({}),
            json!({"accessToken": "", "expiresAt": 0}),
            json!({"accessToken": 7}),
        ] {
            assert_eq!(read(none.clone()), None, "{none}");
        }
        assert_eq!(grant(&Map::new()), None);
        let access_only = read(json!({"accessToken": "at"})).unwrap();
        assert!(!access_only.renewable && access_only.expires.is_none());
    }
}
