//! The credential gateway: the host attaches the secret, and no tool has it.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex},
};

use capsule_api::{Error, Secret, Secrets, ToolStatus};
use capsule_tools::SecretGrant;

use crate::{
    attacks_network::{Server, granted},
    guests_net::Fetch,
    support::{Capsule, said},
};

/// Every variable has the value `hunter2`, except `EMPTY`.
#[derive(Default)]
struct Vault(Mutex<Vec<String>>);

impl Secrets for Vault {
    fn expand(&self, text: &str) -> Result<String, Error> {
        Ok(if text.contains("EMPTY") {
            String::new()
        } else {
            "hunter2".to_owned()
        })
    }

    fn protect(&self, secret: &Secret) {
        self.0.lock().unwrap().push(secret.expose().to_owned());
    }

    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }
}

fn secret(name: &str, host: &str, header: &str) -> SecretGrant {
    SecretGrant {
        name: name.to_owned(),
        hosts: vec![host.to_owned()],
        header: header.to_owned(),
    }
}

fn with_vault(mut capsule: Capsule) -> (Capsule, Arc<Vault>) {
    let vault = Arc::new(Vault::default());
    capsule.options.secrets = Some(vault.clone());
    (capsule, vault)
}

#[tokio::test]
async fn the_host_attaches_the_secret_to_its_hosts_alone() {
    let (one, other) = (Server::with_body("one").await, Server::with_body("other").await);
    for (server, carries) in [(&one, true), (&other, false)] {
        let capsule = granted(
            Fetch::http(&server.authority()).build(),
            &[&one.origin(), &other.origin()],
        );
        let (mut capsule, vault) = with_vault(capsule);
        capsule.grants.secrets = vec![secret("TOKEN", &one.origin(), "Authorization: Bearer {}")];
        let turn = capsule.turn();
        assert_eq!(turn.ask("fetch").await.0, ToolStatus::Passed);
        let heads = server.heads();
        assert_eq!(
            heads[0].contains("authorization: Bearer hunter2\r\n"),
            carries,
            "{heads:?}"
        );
        assert_eq!(*vault.0.lock().unwrap(), ["hunter2"]);
        assert!(!format!("{:?}", turn.log.events()).contains("hunter2"));
        assert!(!format!("{:?}", turn.toolbox.reports()).contains("hunter2"));
    }
}

#[tokio::test]
async fn h_15_a_guest_names_no_other_host_to_the_one_that_gets_the_secret() {
    let server = Server::with_body("hello").await;
    let authority = server.authority();
    let fetch = Fetch {
        header: Some(("Host", "evil.test")),
        ..Fetch::http(&authority)
    };
    let (mut capsule, _) = with_vault(granted(fetch.build(), &[&server.origin()]));
    capsule.grants.secrets = vec![secret("TOKEN", &server.origin(), "Authorization: Bearer {}")];
    assert_eq!(capsule.turn().ask("fetch").await, said(ToolStatus::Passed, "hello"));
    let head = format!("GET / HTTP/1.1\r\nhost: {authority}\r\nauthorization: Bearer hunter2\r\n\r\n");
    assert_eq!(server.heads(), [head]);
}

#[tokio::test]
async fn a_header_of_the_gateway_that_a_guest_sets_is_refused() {
    let server = Server::with_body("hello").await;
    let authority = server.authority();
    let fetch = Fetch {
        header: Some(("X-Api-Key", "mine")),
        ..Fetch::http(&authority)
    };
    let (mut capsule, _) = with_vault(granted(fetch.build(), &[&server.origin()]));
    capsule.grants.secrets = vec![secret("TOKEN", &server.origin(), "x-api-key: {}")];
    let (status, text) = capsule.turn().ask("fetch").await;
    assert_eq!(status, ToolStatus::Denied);
    let why = "it sets the header `x-api-key`, which the host sets with the secret TOKEN; leave it out";
    assert!(text.contains(why), "{text}");
    assert_eq!(server.heads(), Vec::<String>::new());
    // Without the gateway it is the guest's to set.
    capsule.grants.secrets.clear();
    assert_eq!(capsule.turn().ask("fetch").await, said(ToolStatus::Passed, "hello"));
    assert!(server.heads()[0].contains("x-api-key: mine"));
}

#[test]
fn a_secret_that_could_leak_or_never_be_sent_is_a_load_error() {
    let (mut capsule, _) = with_vault(Capsule::new());
    capsule.grants.network = ["https://api.test", "http://api.test", "*.wide.test"]
        .map(str::to_owned)
        .into();
    for (grant, why) in [
        (
            secret("A", "http://api.test", "X: {}"),
            "over `https`, or to this machine",
        ),
        (secret("A", "*.wide.test", "X: {}"), "spelled out"),
        (
            secret("A", "https://other.test", "X: {}"),
            "no entry of `network.allow` covers it",
        ),
        (secret("A", "https://api.test", "X {}"), "`Name: value`"),
        (secret("A", "https://api.test", "X: a"), "exactly once"),
        (secret("A", "https://api.test", "Host: {}"), "the connection's own"),
        (secret("A", "https://api.test", "ä: {}"), "is not one"),
        (secret("EMPTY", "https://api.test", "X: {}"), "empty"),
        (secret("A B", "https://api.test", "X: {}"), "not that of a variable"),
    ] {
        capsule.grants.secrets = vec![grant];
        let found = capsule.refusals();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].0 == "tool-grant-secret" && found[0].1.contains(why),
            "{found:?}"
        );
    }
    let twice = |name| secret(name, "https://api.test", "X: {}");
    capsule.grants.secrets = vec![twice("A"), twice("B")];
    assert_eq!(
        capsule.refusals(),
        [(
            "tool-grant-secret",
            "the secrets `A` and `B` both set the header `x` of requests to https://api.test".to_owned()
        )]
    );
    capsule.grants.secrets = vec![twice("A")];
    capsule.grants.env = vec!["CITY".into(), "A".into()];
    let told = "the secret `A` is granted as an environment variable, too, where every tool reads it";
    assert_eq!(capsule.refusals(), [("tool-grant-secret", told.to_owned())]);
    capsule.grants.env.clear();
    capsule.options.secrets = None;
    assert!(capsule.refusals()[0].1.contains("no place where secrets come from"));
}
