//! From an origin to an open connection: resolve, check, connect to exactly what was checked, TLS.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use capsule_api::{Clock, Error, Retry, timeout};
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::OnceCell,
};
use tokio_rustls::TlsConnector;

use super::{Options, Proxy, address::Origin};
use crate::codes;

/// Turns a name into addresses.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// The addresses of a host name; never asked for a host that is written as an address.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's resolver. It runs on the runtime's blocking pool.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0))
            .await?
            .map(|address| address.ip())
            .collect())
    }
}

/// Whom to trust for TLS.
#[derive(Clone, Debug, Default)]
pub enum Roots {
    /// The system's store (or SSL_CERT_FILE, SSL_CERT_DIR), read at the first `https` request.
    #[default]
    System,
    /// These authorities alone.
    Given(Arc<RootCertStore>),
}

/// A connection, encrypted or not.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Makes connections under the address policy.
pub(super) struct Connector {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) roots: Roots,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) connect_timeout: Duration,
    proxy: Option<Proxy>,
    tls: OnceCell<TlsConnector>,
}

impl Connector {
    pub(super) fn new(clock: Arc<dyn Clock>, options: Options) -> Self {
        Self {
            resolver: options.resolver,
            roots: options.roots,
            clock,
            connect_timeout: options.connect_timeout,
            proxy: options.proxy,
            tls: OnceCell::new(),
        }
    }

    pub(super) async fn connect(&self, origin: &Origin) -> Result<Box<dyn Stream>, Error> {
        let proxy = self.proxy.as_ref().filter(|proxy| proxy.is_for(origin));
        // Whom a name stands for is the proxy's to find out.
        let addresses = match proxy {
            Some(_) => checked(origin).map(|()| Vec::new())?,
            None => self.addresses(origin).await?,
        };
        // Before the connection, so that a missing store is told even where nothing answers.
        let tls = if origin.tls { Some(self.tls().await?) } else { None };
        let stream = match proxy {
            Some(proxy) => self.through(proxy, origin).await?,
            None => self.connect_to_one(&origin.host, &addresses).await?,
        };
        match tls {
            None => Ok(Box::new(stream)),
            Some(tls) => Ok(Box::new(self.handshake(origin, tls, stream).await?)),
        }
    }

    /// A tunnel to the origin.
    async fn through(&self, proxy: &Proxy, origin: &Origin) -> Result<TcpStream, Error> {
        let (host, port) = proxy.address()?;
        let found = match host.parse() {
            Ok(ip) => vec![ip],
            Err(_) => self.resolved(host).await?,
        };
        let addresses: Vec<_> = found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
        let mut stream = self.connect_to_one(host, &addresses).await?;
        let tunnel = timeout(&*self.clock, self.connect_timeout, proxy.tunnel(&mut stream, origin));
        let opened = tunnel.await.unwrap_or_else(|_| {
            let message = format!("the proxy `{host}`: no answer within {:?}", self.connect_timeout);
            Err(Error::new(&codes::PROXY, message).retry(Retry::Later))
        });
        opened.map(|()| stream)
    }

    /// The addresses of a name; at least one.
    async fn resolved(&self, host: &str) -> Result<Vec<IpAddr>, Error> {
        let found = self.resolver.resolve(host).await.map_err(|error| {
            let message = format!("`{host}` could not be resolved: {error}");
            Error::new(&codes::DNS, message).retry(Retry::Later).caused_by(error)
        })?;
        if found.is_empty() {
            return Err(Error::new(&codes::DNS, format!("`{host}` has no address")).retry(Retry::Later));
        }
        Ok(found)
    }

    /// The addresses that may be connected to; at least one.
    async fn addresses(&self, origin: &Origin) -> Result<Vec<SocketAddr>, Error> {
        let found = match origin.literal() {
            Some(ip) => vec![ip],
            None => self.resolved(&origin.host).await?,
        };
        let (mut admitted, mut refused) = (Vec::new(), Vec::new());
        for ip in found {
            match origin.admits(ip) {
                Ok(()) => admitted.push(SocketAddr::new(ip, origin.port)),
                Err(why) => refused.push(format!("{ip} ({why})")),
            }
        }
        if admitted.is_empty() {
            return Err(self::refused(&origin.host, &refused.join(", ")));
        }
        Ok(admitted)
    }

    /// One address after the other, each with the connect time-out.
    async fn connect_to_one(&self, host: &str, addresses: &[SocketAddr]) -> Result<TcpStream, Error> {
        let (mut failures, mut cause) = (Vec::new(), None);
        for address in addresses {
            match timeout(&*self.clock, self.connect_timeout, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Requests are written whole; waiting for more bytes would only delay them.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => {
                    failures.push(format!("{address}: {error}"));
                    cause = Some(error);
                }
                Err(_) => failures.push(format!("{address}: no answer within {:?}", self.connect_timeout)),
            }
        }
        let message = format!("no connection to `{host}`: {}", failures.join("; "));
        let error = Error::new(&codes::CONNECT, message).retry(Retry::Later);
        Err(match cause {
            Some(cause) => error.caused_by(cause),
            None => error,
        })
    }

    async fn handshake(
        &self,
        origin: &Origin,
        tls: &TlsConnector,
        stream: TcpStream,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, Error> {
        let host = &origin.host;
        let failed = |why: String| Error::new(&codes::TLS, format!("no TLS with `{host}`: {why}"));
        let name = ServerName::try_from(host.clone()).map_err(|error| failed(error.to_string()))?;
        let shaken = timeout(&*self.clock, self.connect_timeout, tls.connect(name, stream)).await;
        match shaken {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => {
                let certificate = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
                let final_word = matches!(certificate, Some(rustls::Error::InvalidCertificate(_)));
                let retry = if final_word { Retry::Never } else { Retry::Later };
                Err(failed(error.to_string()).retry(retry).caused_by(error))
            }
            Err(_) => Err(failed(format!("no answer within {:?}", self.connect_timeout)).retry(Retry::Later)),
        }
    }

    async fn tls(&self) -> Result<&TlsConnector, Error> {
        self.tls
            .get_or_try_init(|| async { connector(self.roots.clone()).await })
            .await
    }
}

/// Refuses what the address policy refuses of an address that the URL writes out.
fn checked(origin: &Origin) -> Result<(), Error> {
    match origin.literal().map(|ip| (ip, origin.admits(ip))) {
        Some((ip, Err(why))) => Err(refused(&origin.host, &format!("{ip} ({why})"))),
        _ => Ok(()),
    }
}

fn refused(host: &str, addresses: &str) -> Error {
    let message = format!("the request to `{host}` is not made; its addresses are refused: {addresses}");
    Error::new(&codes::ADDRESS_REFUSED, message)
}

async fn connector(roots: Roots) -> Result<TlsConnector, Error> {
    let roots = match roots {
        Roots::Given(roots) => roots,
        // Hundreds of files, perhaps: not on a thread of the runtime.
        Roots::System => tokio::task::spawn_blocking(system_roots)
            .await
            .unwrap_or_else(|error| {
                Err(Error::new(&codes::ROOTS, "reading the root certificates failed").caused_by(error))
            })?,
    };
    // The provider is passed explicitly: with two of them in a program, the implicit choice is a panic.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn system_roots() -> Result<Arc<RootCertStore>, Error> {
    let loaded = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, unusable) = roots.add_parsable_certificates(loaded.certs);
    if usable == 0 {
        let errors: Vec<_> = loaded.errors.iter().map(ToString::to_string).collect();
        let why = if errors.is_empty() {
            "it is empty".to_owned()
        } else {
            errors.join("; ")
        };
        return Err(Error::new(
            &codes::ROOTS,
            format!("no root certificate could be loaded: {why}"),
        ));
    }
    if unusable > 0 || !loaded.errors.is_empty() {
        tracing::warn!(usable, unusable, errors = ?loaded.errors, "some of the system's root certificates could not be read");
    }
    Ok(Arc::new(roots))
}
