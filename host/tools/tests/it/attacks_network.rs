//! Attacks over the network: no request goes where no grant covers it, and none to an address that was not checked.

use std::{
    io,
    net::IpAddr,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use capsule_api::ToolStatus;
use capsule_net::{Resolver, Roots};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{RootCertStore, ServerConfig, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    guests_net::{Fetch, looks_up, socket},
    support::{Capsule, said},
};

/// A server that gives one answer to every request and keeps what it was sent.
pub(crate) struct Server {
    pub(crate) port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) async fn answering(answer: impl Into<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let (kept, answer) = (Arc::clone(&heads), answer.into());
        tokio::spawn(async move {
            while let Ok((mut peer, _)) = listener.accept().await {
                let (kept, answer) = (Arc::clone(&kept), answer.clone());
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        match peer.read_u8().await {
                            Ok(byte) => head.push(byte),
                            Err(_) => return,
                        }
                    }
                    let head = String::from_utf8(head).unwrap();
                    let chunked = head.contains("transfer-encoding: chunked");
                    kept.lock().unwrap().push(head);
                    let mut body = Vec::new();
                    while chunked && !body.ends_with(b"\r\n0\r\n\r\n") {
                        match peer.read_u8().await {
                            Ok(byte) => body.push(byte),
                            Err(_) => return,
                        }
                    }
                    // The peer may have gone: then there is nobody to answer.
                    let _ = peer.write_all(answer.as_bytes()).await;
                    let mut rest = Vec::new();
                    let _ = peer.read_to_end(&mut rest).await;
                });
            }
        });
        Self { port, heads }
    }

    /// A server whose answers have this body.
    pub(crate) async fn with_body(body: &str) -> Self {
        let length = body.len();
        Self::answering(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}")).await
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.authority())
    }

    pub(crate) fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// Every name stands for this address.
struct Name(IpAddr);

#[async_trait]
impl Resolver for Name {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![self.0])
    }
}

/// A capsule with one tool, granted these hosts.
pub(crate) fn granted(component: Vec<u8>, hosts: &[&str]) -> Capsule {
    let mut capsule = Capsule::with("fetch", component);
    capsule.grants.network = hosts.iter().map(|host| (*host).to_owned()).collect();
    capsule
}

pub(crate) fn resolving_to(mut capsule: Capsule, address: &str) -> Capsule {
    capsule.options.net.resolver = Arc::new(Name(address.parse().unwrap()));
    capsule
}

#[tokio::test]
async fn a_granted_request_comes_through_with_its_answer() {
    let server = Server::with_body("hello").await;
    for authority in [server.authority(), format!("localhost:{}", server.port)] {
        let origin = format!("http://{authority}");
        let mut capsule = granted(Fetch::http(&authority).build(), &[&origin]);
        if authority.starts_with("localhost") {
            capsule = resolving_to(capsule, "127.0.0.1");
        }
        let turn = capsule.turn();
        assert_eq!(
            turn.ask("fetch").await,
            said(ToolStatus::Passed, "hello"),
            "{authority}"
        );
    }
    let head = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", server.authority());
    assert_eq!(server.heads()[0], head);
}

#[tokio::test]
async fn a_host_that_is_not_granted_is_denied_by_name_by_address_and_by_spelling() {
    let server = Server::with_body("hello").await;
    let here = server.authority();
    let port = server.port;
    for (grant, authority, shown) in [
        ("https://api.test", "evil.test", "http://evil.test"),
        ("https://api.test", here.as_str(), "http://127.0.0.1"),
        ("http://*.api.test", "api.test", "http://api.test"),
        ("http://api.test", "api.test.evil.test", "http://api.test.evil.test"),
    ] {
        let capsule = resolving_to(granted(Fetch::http(authority).build(), &[grant]), "127.0.0.1");
        let (status, text) = capsule.turn().ask("fetch").await;
        assert_eq!(status, ToolStatus::Denied, "{authority}: {text}");
        let told = format!("an HTTP request to {shown}");
        assert!(
            text.contains(&told) && text.contains("capabilities.network.allow"),
            "{text}"
        );
    }
    // The name of this machine in other spellings, each granted as it is spelled; all resolve to loopback.
    for host in ["127.1", "0x7f000001", "2130706433", "localhost.localdomain"] {
        let authority = format!("{host}:{port}");
        let grant = format!("http://{authority}");
        let capsule = resolving_to(granted(Fetch::http(&authority).build(), &[&grant]), "127.0.0.1");
        let (status, text) = capsule.turn().ask("fetch").await;
        assert_eq!(status, ToolStatus::Denied, "{authority}: {text}");
        assert!(text.contains("127.0.0.1 (a loopback address behind a name)"), "{text}");
    }
    assert_eq!(server.heads(), Vec::<String>::new());
}

#[tokio::test]
async fn h_15_a_granted_name_that_stands_for_the_inside_is_denied_with_its_address() {
    let server = Server::with_body("hello").await;
    let authority = format!("api.test:{}", server.port);
    let grant = format!("http://{authority}");
    for address in [
        "127.0.0.1",
        "::1",
        "169.254.169.254",
        "10.0.0.1",
        "::ffff:127.0.0.1",
        "fd00:ec2::254",
    ] {
        let capsule = resolving_to(granted(Fetch::http(&authority).build(), &[&grant]), address);
        let (status, text) = capsule.turn().ask("fetch").await;
        assert_eq!(status, ToolStatus::Denied, "{address}: {text}");
        assert!(text.contains(address), "{text}");
    }
    assert_eq!(server.heads(), Vec::<String>::new());
}

#[tokio::test]
async fn h_15_user_information_in_a_request_does_not_get_past_a_grant() {
    let server = Server::with_body("hello").await;
    let authority = format!("api.test@{}", server.authority());
    let capsule = granted(Fetch::http(&authority).build(), &["http://api.test", &server.origin()]);
    let (status, text) = capsule.turn().ask("fetch").await;
    assert_eq!(status, ToolStatus::Denied, "{text}");
    assert_eq!(server.heads(), Vec::<String>::new());
}

#[tokio::test]
async fn h_15_a_redirect_is_given_to_the_tool_and_never_followed() {
    let inside = Server::with_body("secret").await;
    let moved = format!(
        "HTTP/1.1 302 Found\r\nlocation: {}/\r\ncontent-length: 5\r\n\r\nmoved",
        inside.origin()
    );
    let outside = Server::answering(moved).await;
    let capsule = granted(Fetch::http(&outside.authority()).build(), &[&outside.origin()]);
    assert_eq!(capsule.turn().ask("fetch").await, said(ToolStatus::Passed, "moved"));
    assert_eq!((outside.heads().len(), inside.heads().len()), (1, 0));
    // Following it is a request of its own, which no grant covers.
    let capsule = granted(Fetch::http(&inside.authority()).build(), &[&outside.origin()]);
    assert_eq!(capsule.turn().ask("fetch").await.0, ToolStatus::Denied);
    assert_eq!(inside.heads().len(), 0);
}

/// An authority, and a server with a certificate of it for `name` that answers each request.
async fn tls_server(name: &str) -> (Roots, u16) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((peer, _)) = listener.accept().await {
            let Ok(mut peer) = acceptor.accept(peer).await else {
                continue;
            };
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
            let mut head = [0; 1024];
            if peer.read(&mut head).await.is_ok_and(|read| read > 0) {
                peer.write_all(answer).await.unwrap();
                peer.shutdown().await.unwrap();
            }
        }
    });
    (Roots::Given(Arc::new(roots)), port)
}

#[tokio::test]
async fn https_is_with_the_host_of_the_request_and_with_no_one_else() {
    let certificate_refused = said(ToolStatus::Failed, "tool 'fetch' failed: 12");
    for (name, answer) in [
        ("localhost", said(ToolStatus::Passed, "hi")),
        ("other.test", certificate_refused),
    ] {
        let (roots, port) = tls_server(name).await;
        let authority = format!("localhost:{port}");
        let capsule = granted(Fetch::https(&authority).build(), &[&format!("https://{authority}")]);
        let mut capsule = resolving_to(capsule, "127.0.0.1");
        capsule.options.net.roots = roots;
        assert_eq!(capsule.turn().ask("fetch").await, answer, "{name}");
    }
}

#[tokio::test]
async fn a_body_over_its_limit_is_cut_off_both_ways_and_the_limit_is_named() {
    let server = Server::with_body(&"x".repeat(4096)).await;
    let mut capsule = granted(Fetch::http(&server.authority()).build(), &[&server.origin()]);
    capsule.grants.limits.http_body = 4095;
    let text = "tool 'fetch' failed: cut\n(it ran into the limit of 4095B on an HTTP body (`limits.http_body`))";
    assert_eq!(capsule.turn().ask("fetch").await, said(ToolStatus::Failed, text));
    capsule.grants.limits.http_body = 4096;
    assert_eq!(capsule.turn().ask("fetch").await.0, ToolStatus::Passed);
    let authority = server.authority();
    let post = Fetch {
        pieces: 2,
        ..Fetch::http(&authority)
    };
    let mut capsule = granted(post.build(), &[&server.origin()]);
    capsule.grants.limits.http_body = 8191;
    let (status, text) = capsule.turn().ask("fetch").await;
    assert_eq!(status, ToolStatus::Failed);
    assert!(
        text.contains("(it ran into the limit of 8191B on an HTTP body (`limits.http_body`))"),
        "{text}"
    );
    capsule.grants.limits.http_body = 8192;
    assert_eq!(capsule.turn().ask("fetch").await.0, ToolStatus::Passed);
}

#[tokio::test]
async fn no_socket_and_no_name_is_a_guest_s_own_whatever_is_granted() {
    let server = Server::with_body("hello").await;
    let (access_denied, unresolvable) = ("01", "20");
    for (guest, code) in [
        (socket("tcp", server.port).build(), access_denied),
        (socket("udp", 0).build(), access_denied),
        (looks_up().build_with_data("localhost"), unresolvable),
    ] {
        let capsule = granted(guest, &[&server.origin(), "https://api.test"]);
        let text = format!("tool 'fetch' failed: {code}");
        assert_eq!(capsule.turn().ask("fetch").await, said(ToolStatus::Failed, &text));
    }
    assert_eq!(server.heads(), Vec::<String>::new());
}
