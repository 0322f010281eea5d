//! TLS with authorities that a test makes.

use std::{net::SocketAddr, process::Command, sync::Arc};

use capsule_api::{Error, ErrorKind, HttpClient as _, Retry};
use capsule_net::Roots;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{RootCertStore, ServerConfig, pki_types::PrivateKeyDer};
use tokio::{io::AsyncWriteExt as _, net::TcpListener, sync::oneshot};
use tokio_rustls::TlsAcceptor;

use crate::{
    client::{post, text},
    policy::client,
    raw::LOOPBACK,
};

/// An authority, and a server with a certificate of it for `name` that answers one request and tells which name it was asked for.
pub(crate) async fn server(name: &str) -> (Roots, SocketAddr, oneshot::Receiver<Option<String>>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()])
        .unwrap()
        .signed_by(&key, &authority)
        .unwrap();
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

    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = oneshot::channel();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(mut stream) = TlsAcceptor::from(Arc::new(config)).accept(stream).await else {
            return;
        };
        let _ = tell.send(stream.get_ref().1.server_name().map(str::to_owned));
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi")
            .await
            .unwrap();
        stream.shutdown().await.unwrap();
    });
    (Roots::Given(Arc::new(roots)), address, told)
}

async fn ask(roots: Roots, address: SocketAddr) -> Result<String, Error> {
    let url = format!("https://localhost:{}/", address.port());
    text(client(&["127.0.0.1"], roots).send(post(&url)).await?).await
}

#[tokio::test]
async fn the_name_in_the_url_is_asked_for_and_proven() {
    let (roots, address, told) = server("localhost").await;
    assert_eq!(ask(roots, address).await.unwrap(), "hi");
    assert_eq!(told.await.unwrap().as_deref(), Some("localhost"));
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_for_good() {
    let (roots, address, _) = server("other.test").await;
    let error = ask(roots, address).await.unwrap_err();
    assert_eq!((error.code, error.retry), ("net-tls", Retry::Never), "{error}");
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused_for_good() {
    let (_, address, _) = server("localhost").await;
    let (others, ..) = server("localhost").await;
    let error = ask(others, address).await.unwrap_err();
    assert_eq!((error.code, error.retry), ("net-tls", Retry::Never), "{error}");
}

#[tokio::test]
async fn a_peer_that_speaks_no_tls_is_a_tls_error() {
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream.shutdown().await.unwrap();
    });
    let error = ask(Roots::Given(Arc::new(RootCertStore::empty())), address)
        .await
        .unwrap_err();
    assert_eq!(error.code, "net-tls", "{error}");
}

const NO_STORE: &str = "/nowhere/roots.pem";

#[tokio::test]
#[ignore = "needs an environment of its own; the next test gives it one"]
async fn without_a_store() {
    let error = ask(Roots::System, "127.0.0.1:1".parse().unwrap()).await.unwrap_err();
    let seen = (error.code, error.kind, error.message.contains(NO_STORE));
    assert_eq!(seen, ("net-roots", ErrorKind::TransportUnavailable, true), "{error}");
}

#[test]
fn a_missing_store_of_roots_is_named() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["tls::without_a_store", "--exact", "--ignored"])
        .env("SSL_CERT_FILE", NO_STORE)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
