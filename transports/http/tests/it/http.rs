//! A small HTTP client for loopback, without the host's address policy.

use capsule_api::{
    Bytes, Code, Error, ErrorKind, HttpBody, HttpClient, Retry, async_trait,
    http::{Request, Response, header},
};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet};

const NET: Code = Code {
    id: "net-failed",
    kind: ErrorKind::Network,
    meaning: "The connection failed.",
    remedy: "Look at the connection.",
};

pub(crate) struct Client;

struct Body {
    incoming: Incoming,
    _connection: JoinSet<()>,
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(&NET, error.to_string()).retry(Retry::Later).caused_by(error)
}

#[async_trait]
impl HttpClient for Client {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Box<dyn HttpBody>>, Error> {
        let authority = request.uri().authority().unwrap().to_string();
        let stream = TcpStream::connect(&authority).await.map_err(failed)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        let mut task = JoinSet::new();
        task.spawn(async move { drop(connection.await) });
        request.headers_mut().insert(header::HOST, authority.parse().unwrap());
        let answer = sender.send_request(request.map(Full::new)).await.map_err(failed)?;
        Ok(answer.map(|incoming| {
            let body: Box<dyn HttpBody> = Box::new(Body {
                incoming,
                _connection: task,
            });
            body
        }))
    }
}

#[async_trait]
impl HttpBody for Body {
    async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        while let Some(frame) = self.incoming.frame().await {
            if let Ok(data) = frame.map_err(failed)?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}
