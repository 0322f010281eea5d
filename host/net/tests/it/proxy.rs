//! Requests through the proxy of the environment: a real tunnel, over which TLS is spoken with the provider itself.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use capsule_api::{Error, HttpClient as _, Retry, SystemClock};
use capsule_net::{ClientOptions, NetClient, Proxy, Roots};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use crate::{
    client::{post, text},
    policy::Names,
    raw::LOOPBACK,
    tls::server,
};

/// A proxy that answers `CONNECT` with this status line and, where it is 200, leads to `to`, whatever it was asked for. With what it was sent.
async fn proxy(status: &'static str, to: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.unwrap());
            }
            seen.lock().unwrap().push(String::from_utf8(head).unwrap());
            client
                .write_all(format!("{status}\r\nvia: test\r\n\r\n").as_bytes())
                .await
                .unwrap();
            if status.contains(" 200") {
                let mut far = TcpStream::connect(to).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut far).await;
            }
        }
    });
    (address, asked)
}

async fn ask(url: &str, proxy: String, roots: Roots) -> Result<String, Error> {
    let options = ClientOptions {
        // Nothing has an address: whoever is asked for one fails.
        resolver: Arc::new(Names(Vec::new())),
        roots,
        proxy: Proxy::of(&move |name| (name == "HTTPS_PROXY").then(|| proxy.clone().into())),
        ..ClientOptions::default()
    };
    let client = NetClient::with_options(Arc::new(SystemClock), options);
    text(client.send(post(url)).await?).await
}

#[tokio::test]
async fn a_request_goes_through_the_tunnel_and_the_provider_proves_its_name_over_it() {
    let (roots, far, told) = server("api.test").await;
    let (near, asked) = proxy("HTTP/1.1 200 Connection established", far).await;
    let answer = ask("https://api.test:8443/v1", format!("http://user:hunter2@{near}"), roots).await;
    assert_eq!(answer.unwrap(), "hi");
    assert_eq!(told.await.unwrap().as_deref(), Some("api.test"));
    let expected = "CONNECT api.test:8443 HTTP/1.1\r\nHost: api.test:8443\r\n\
                    Proxy-Authorization: Basic dXNlcjpodW50ZXIy\r\n\r\n";
    assert_eq!(*asked.lock().unwrap(), [expected]);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    for (status, says, retry) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required",
            "it wants a user name and a password",
            Retry::Never,
        ),
        (
            "HTTP/1.1 403 Forbidden",
            "refused the connection to `api.test:443` with status 403",
            Retry::Never,
        ),
        ("HTTP/1.0 502 Bad Gateway", "with status 502", Retry::Later),
        ("SSH-2.0-OpenSSH_9.2", "it does not answer as a proxy", Retry::Never),
    ] {
        let (near, _) = proxy(status, LOOPBACK).await;
        let error = ask(
            "https://api.test/",
            format!("http://user:hunter2@{near}"),
            Roots::default(),
        )
        .await
        .unwrap_err();
        assert_eq!((error.code, error.retry), ("net-proxy", retry), "{error}");
        assert!(error.message.contains(says), "{error}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}

#[tokio::test]
async fn h_15_an_address_that_is_written_out_is_checked_before_the_proxy_is_asked() {
    let (near, asked) = proxy("HTTP/1.1 200 OK", LOOPBACK).await;
    for url in ["https://169.254.169.254/latest", "https://[fd00:ec2::254]/"] {
        let error = ask(url, near.to_string(), Roots::default()).await.unwrap_err();
        assert_eq!(error.code, "net-address-refused", "{url}");
    }
    assert!(asked.lock().unwrap().is_empty());
}
