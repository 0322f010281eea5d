//! The address policy with names that stand for whatever a test wants.

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use capsule_api::{ErrorKind, HttpClient as _, Retry, SystemClock};
use capsule_net::{ClientOptions, NetClient, Resolver, Roots};

use crate::{
    client::{open_server, post, text},
    raw::{Script, long},
};

/// Every name stands for these addresses; none at all is a failure of the name service.
pub(crate) struct Names(pub(crate) Vec<IpAddr>);

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        if self.0.is_empty() {
            return Err(io::Error::other("no such host"));
        }
        Ok(self.0.clone())
    }
}

pub(crate) fn client(addresses: &[&str], roots: Roots) -> NetClient {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    let options = ClientOptions {
        resolver: Arc::new(Names(addresses)),
        roots,
        connect_timeout: Duration::from_secs(60),
        proxy: None,
    };
    NetClient::with_options(Arc::new(SystemClock), options)
}

#[tokio::test]
async fn h_15_a_name_that_stands_for_the_inside_is_never_connected_to() {
    let script = Script::new();
    let server = open_server(&script, long()).await;
    let port = server.local_addr().port();
    for address in [
        "127.0.0.1",
        "::1",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.0.1",
        "172.16.0.1",
        "100.64.0.1",
        "0.0.0.0",
        "::",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fd00:ec2::254",
        "fe80::1",
        "224.0.0.1",
    ] {
        let client = client(&[address], Roots::System);
        let error = client
            .send(post(&format!("https://api.test:{port}/echo")))
            .await
            .unwrap_err();
        let seen = (error.code, error.kind, error.retry);
        assert_eq!(
            seen,
            ("net-address-refused", ErrorKind::Settings, Retry::Never),
            "{address}"
        );
        assert!(error.message.contains(address), "{error}");
    }
    assert_eq!(script.peers.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn h_15_literals_and_strange_spellings_do_not_get_around_it() {
    // What the system's resolver makes of `127.1` and `2130706433`.
    let client = client(&["127.0.0.1"], Roots::System);
    let cases = [
        ("https://169.254.169.254/latest", "net-address-refused"),
        ("https://[fd00:ec2::254]/", "net-address-refused"),
        ("https://[::ffff:169.254.169.254]/", "net-address-refused"),
        ("https://0.0.0.0/", "net-address-refused"),
        ("https://127.1/", "net-address-refused"),
        ("https://2130706433/", "net-address-refused"),
        ("https://0x7f000001/", "net-address-refused"),
        ("https://localhost./", "net-address-refused"),
        ("http://169.254.169.254/latest", "net-url-refused"),
        ("http://api.test/", "net-url-refused"),
        ("https://user:pass@api.test/", "net-url-refused"),
        ("http://localhost@169.254.169.254/", "net-url-refused"),
    ];
    for (url, code) in cases {
        assert_eq!(client.send(post(url)).await.unwrap_err().code, code, "{url}");
    }
}

#[tokio::test]
async fn localhost_is_this_machine_and_nothing_else() {
    let error = client(&["93.184.216.34"], Roots::System)
        .send(post("http://localhost:1/"))
        .await
        .unwrap_err();
    assert_eq!(
        error.message,
        "the request to `localhost` is not made; its addresses are refused: 93.184.216.34 (`localhost` that is not this machine)"
    );
}

#[tokio::test]
async fn addresses_are_tried_in_order_and_refused_ones_left_out() {
    let script = Script::new();
    let server = open_server(&script, long()).await;
    let port = server.local_addr().port();
    // Nothing listens on the second; the first is refused by the policy.
    let client = client(&["10.0.0.1", "127.0.0.77", "127.0.0.1"], Roots::System);
    let response = client
        .send(post(&format!("http://localhost:{port}/echo")))
        .await
        .unwrap();
    // The guard knows the address, not the name.
    assert_eq!(response.status().as_u16(), 403);
    assert_eq!(text(response).await.unwrap(), "");
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_worth_another_try() {
    let error = client(&[], Roots::System)
        .send(post("https://api.test/"))
        .await
        .unwrap_err();
    assert_eq!((error.code, error.retry), ("net-dns", Retry::Later));
    assert_eq!(error.message, "`api.test` could not be resolved: no such host");
}
