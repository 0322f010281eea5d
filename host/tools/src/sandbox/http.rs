//! The policy of `wasi:http`: only what a grant covers, to an address that was checked, with bodies of bounded size.
//!
//! `wasi:http` follows no redirect: the next request is the guest's own, and is held against the same grants. Each request has a connection
//! of its own, to the address that was checked for it. The guest's own time-outs hold, for connecting, for the first byte and between bytes;
//! the call's deadline is around all of them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use capsule_api::{Clock, timeout};
use capsule_net::{NetClient, PlainHttp};
use http::{Method, Request, Response, Uri, header};
use http_body_util::BodyExt as _;
use hyper::client::conn::http1;
use wasmtime_wasi_http::{Error, RequestOptions, Result, WasiBody, WasiHttpHooks, io::TokioIo};

use super::{
    http_body::{Bounded, Direction, Driver, Held, Steady},
    record::CallRecord,
};
use crate::grants::{Checked, network::Target};

/// What comes of a request while its body is still sent.
type Sending = Box<dyn Future<Output = Result<(), Error>> + Send>;
/// What comes of a request.
type Answer = Box<dyn Future<Output = Result<(Response<WasiBody>, Sending)>> + Send>;

/// Requests that one call may have open. Each holds a socket of the host.
const MOST_OPEN: usize = 32;
/// Bytes of a response's head; hyper also wants at least 8 KiB.
const HEAD_BYTES: usize = 256 << 10;

/// The network as one call has it.
pub(super) struct Policy {
    pub(super) record: Arc<CallRecord>,
    pub(super) grants: Arc<Checked>,
    pub(super) net: Arc<NetClient>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) open: Arc<AtomicUsize>,
    /// Whether the guest is a driver: it has its endpoint, and nothing would grant it more.
    pub(super) driver: bool,
}

impl WasiHttpHooks for Policy {
    fn send_request(&mut self, request: Request<WasiBody>, options: Option<RequestOptions>, _: Sending) -> Answer {
        match self.admit(request) {
            Ok(admitted) => Box::new(self.exchange(options.unwrap_or_default()).send(admitted)),
            Err(refused) => Box::new(std::future::ready(Err(refused))),
        }
    }
}

impl Policy {
    /// The request as it may be sent: covered by a grant, with the credentials of the gateway. Resolves and connects nothing.
    fn admit(&self, mut request: Request<WasiBody>) -> Result<Request<WasiBody>> {
        let target = Target::of(request.uri()).ok_or(Error::HttpRequestUriInvalid)?;
        // Only the origin is told: path and query may hold a secret.
        let what = format!("an HTTP request to {target}");
        if !self.grants.network.iter().any(|grant| grant.admits(&target)) {
            let why = match self.driver {
                true => "a driver may reach the host of its endpoint alone".to_owned(),
                false => format!("no grant covers it; `capabilities.network.allow: [{target}]` would"),
            };
            self.record.deny(format!("{what} was denied: {why}"));
            return Err(Error::HttpRequestDenied);
        }
        if request.method() == Method::CONNECT {
            self.record
                .deny(format!("{what} was denied: a tunnel is none, whatever is granted"));
            return Err(Error::HttpRequestMethodInvalid);
        }
        for gateway in self.grants.secrets.iter().filter(|gateway| gateway.serves(&target)) {
            if !gateway.yields && request.headers().contains_key(&gateway.header) {
                self.record.deny(format!(
                    "{what} was denied: it sets the header `{}`, which the host sets with the secret {}; leave it out",
                    gateway.header, gateway.name
                ));
                return Err(Error::HttpRequestDenied);
            }
        }
        for gateway in self.grants.secrets.iter().filter(|gateway| gateway.serves(&target)) {
            if !request.headers().contains_key(&gateway.header) {
                request.headers_mut().insert(gateway.header.clone(), gateway.value());
            }
        }
        Ok(request)
    }

    fn exchange(&self, options: RequestOptions) -> Exchange {
        Exchange {
            options,
            record: Arc::clone(&self.record),
            net: Arc::clone(&self.net),
            clock: Arc::clone(&self.clock),
            open: Arc::clone(&self.open),
            limit: self.grants.limits.http_body,
            plain: match self.driver {
                true => PlainHttp::ThisMachine,
                // A grant of `http://…` was asked of a person.
                false => PlainHttp::Anywhere,
            },
        }
    }
}

/// What one request needs on its way.
struct Exchange {
    options: RequestOptions,
    record: Arc<CallRecord>,
    net: Arc<NetClient>,
    clock: Arc<dyn Clock>,
    open: Arc<AtomicUsize>,
    limit: u64,
    plain: PlainHttp,
}

/// A place among the requests that a call may have open.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn take(open: &Arc<AtomicUsize>) -> Option<Self> {
        let taken = Self(Arc::clone(open));
        let before = open.fetch_add(1, Ordering::Relaxed);
        (before < MOST_OPEN).then_some(taken)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Exchange {
    async fn send(self, request: Request<WasiBody>) -> Result<(Response<WasiBody>, Sending)> {
        let open = Open::take(&self.open).ok_or(Error::ConnectionLimitReached)?;
        let uri = request.uri().clone();
        let connect = self.connect(&uri);
        let stream = match self.options.connect_timeout {
            Some(limit) => timeout(&*self.clock, limit, connect)
                .await
                .map_err(|_| Error::ConnectionTimeout)?,
            None => connect.await,
        }?;
        let shaken = http1::Builder::new()
            .max_buf_size(HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await;
        let (mut sender, driver) = shaken?;
        let driver = Driver::start(driver);
        let (record, limit) = (Arc::clone(&self.record), self.limit);
        let request = on_the_wire(request, |body| {
            Bounded::new(body, limit, Direction::Request, Arc::clone(&record))
        })?;
        let sending = sender.send_request(request);
        let response = match self.options.first_byte_timeout {
            Some(limit) => timeout(&*self.clock, limit, sending)
                .await
                .map_err(|_| Error::ConnectionReadTimeout)?,
            None => sending.await,
        };
        let response = response.map_err(|cause| sent_too_much(&record, limit).unwrap_or_else(|| cause.into()))?;
        let (patience, clock) = (self.options.between_bytes_timeout, self.clock);
        let response = response.map(|body| {
            let body = Bounded::new(body, limit, Direction::Response, record);
            // The connection, and the place, are there as long as the body.
            let body = Held::new(body, (driver, open));
            match patience {
                Some(limit) => Steady::new(body, limit, clock).boxed_unsync(),
                None => body.boxed_unsync(),
            }
        });
        Ok((response, Box::new(std::future::ready(Ok(())))))
    }

    async fn connect(&self, uri: &Uri) -> Result<Box<dyn capsule_net::Stream>> {
        use capsule_net::codes;
        let connected = self.net.connect(uri, self.plain).await;
        connected.map_err(|error| {
            let origin = Target::of(uri).map(|target| target.to_string()).unwrap_or_default();
            match error.code {
                code if code == codes::ADDRESS_REFUSED.id => {
                    self.record.deny(format!(
                        "an HTTP request to {origin} was denied: {}; only an address that a grant writes out may be inside",
                        error.message
                    ));
                    Error::DestinationIpProhibited
                }
                code if code == codes::URL_REFUSED.id => {
                    self.record
                        .deny(format!("an HTTP request to {origin} was denied: {}", error.message));
                    Error::HttpRequestUriInvalid
                }
                code if code == codes::DNS.id => Error::DnsError {
                    rcode: None,
                    info_code: None,
                },
                code if code == codes::TLS.id => Error::TlsProtocolError,
                code if code == codes::CONNECT.id => Error::ConnectionRefused,
                _ => Error::InternalError(Some(error.message.clone())),
            }
        })
    }
}

fn sent_too_much(record: &CallRecord, limit: u64) -> Option<Error> {
    use super::record::LimitHit;
    (record.limit() == Some(LimitHit::HttpBody(limit))).then_some(Error::HttpRequestBodySize(Some(limit)))
}

/// The request as it is written: its target without scheme and host.
fn on_the_wire<B>(request: Request<WasiBody>, body: impl FnOnce(WasiBody) -> B) -> Result<Request<B>> {
    let (mut head, sent) = request.into_parts();
    head.uri = match head.uri.path_and_query() {
        Some(target) => Uri::from(target.clone()),
        None => Uri::from_static("/"),
    };
    if !head.headers.contains_key(header::HOST) {
        return Err(Error::HttpRequestUriInvalid);
    }
    Ok(Request::from_parts(head, body(sent)))
}
