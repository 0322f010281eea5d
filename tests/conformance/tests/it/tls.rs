//! The path to a provider is the same beyond loopback.
//!
//! What a test can show without the internet: the whole path of a run over TLS, with a certificate that is checked, to an address of this
//! machine that is not loopback. A public *name* cannot be shown, since the address policy (tested in `host/net`) refuses names that lead
//! back to this machine.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::Arc,
};

use capsule_api::SystemClock;
use capsule_net::{ClientOptions, NetClient, Roots};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{RootCertStore, ServerConfig, pki_types::PrivateKeyDer};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::run::{Bench, hello_on_http, hello_script};

/// An address of this machine that others would use and that the policy lets a URL write, where there is one. Nothing is sent to find it.
fn own_address() -> Option<IpAddr> {
    // The local end of a way to nowhere: ranges that are kept for documentation and for private networks.
    let ways = ["192.0.2.1", "10.255.255.1", "2001:db8::1", "fd00::ffff"];
    let local = |way: &str| {
        let way: IpAddr = way.parse().ok()?;
        let unbound: IpAddr = if way.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        let socket = UdpSocket::bind((unbound, 0)).ok()?;
        socket.connect((way, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    ways.into_iter().filter_map(local).find(|address| match address {
        IpAddr::V4(four) => four.is_private(),
        IpAddr::V6(six) => six.is_unique_local(),
    })
}

/// A certificate for the address, and those who trust it.
fn certificate(address: IpAddr) -> (ServerConfig, Roots) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![address.to_string()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
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
    (config, Roots::Given(Arc::new(roots)))
}

/// Ends TLS at `address` and passes what is inside to the provider.
async fn front(address: IpAddr, config: ServerConfig, provider: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind((address, 0)).await.unwrap();
    let front = listener.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut outside = acceptor.accept(stream).await.unwrap();
                let mut inside = TcpStream::connect(provider).await.unwrap();
                // How a connection ends is the client's affair.
                let _ = copy_bidirectional(&mut outside, &mut inside).await;
            });
        }
    });
    front
}

#[test]
fn a_run_over_tls_beyond_loopback_is_the_same_run() {
    let Some(address) = own_address() else {
        // A fact of the machine, and nothing that could be installed: no failure under `CAPSULE_TEST_NO_SKIP` either.
        eprintln!("SKIPPED: this machine has no private address besides loopback");
        return;
    };
    let bench = Bench::new();
    let (plain, provider) = (bench.provider(hello_script()), bench.provider(hello_script()));
    let near = bench.run(&hello_on_http(&plain.url()));

    let (config, roots) = certificate(address);
    let front = bench.runtime.block_on(front(address, config, provider.address()));
    let options = ClientOptions {
        roots,
        ..ClientOptions::default()
    };
    let client = NetClient::with_options(Arc::new(SystemClock), options);
    let far = bench.run_over(&hello_on_http(&format!("https://{front}")), Arc::new(client));

    assert_eq!(far.outcome(), near.outcome());
    assert_eq!(far.fold(), near.fold());
    let bodies = |provider: &capsule_fakes::Provider| -> Vec<_> {
        provider.requests().iter().map(|request| request.body.clone()).collect()
    };
    assert_eq!(bodies(&provider), bodies(&plain));
    provider.assert_clean();
}
