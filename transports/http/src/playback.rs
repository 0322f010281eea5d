//! Answers requests from a recording, through the decoder that would have read the provider.

use capsule_api::{
    Billing, Driver, DriverDescriptor, DriverOut, Error, Playback, Recorded, Registry, Request, Response, Services,
    WireFormat, async_trait, http,
};

use crate::{
    codes, taping,
    wire_driver::{Decoding, refusal},
};

/// A recording in a provider's place.
pub(crate) struct PlaybackDriver {
    pub(crate) playback: Box<dyn Playback>,
    pub(crate) services: Services,
}

#[async_trait]
impl Driver for PlaybackDriver {
    async fn request(&self, request: &Request, out: &mut dyn DriverOut) -> Result<Response, Error> {
        if let Some((code, message)) = self.playback.remark(request) {
            out.warning(code, message);
        }
        match self.playback.next(request)? {
            Recorded::Response(response) => {
                taping::whole(&self.services, request, &response);
                Ok(response)
            }
            Recorded::Stream {
                wire,
                status,
                chunks,
                timed,
            } => {
                let format = wire_format(&wire)?;
                taping::again(&self.services, request, (&wire, status), &chunks);
                if status != 200 {
                    let body: Vec<u8> = chunks.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
                    return Err(refusal(format, &head(status)?, &body, self.services.clock.as_ref()));
                }
                let started = self.services.clock.now();
                let mut decoding = Decoding::new(format);
                for (at, bytes) in chunks {
                    if timed {
                        let passed = self.services.clock.now().saturating_duration_since(started);
                        self.services.clock.sleep(at.saturating_sub(passed)).await;
                    }
                    decoding.bytes(&bytes, out)?;
                }
                decoding.end(out)?;
                decoding.response()
            }
            other => {
                let message = format!("the recording answers with {other:?}, which is not known here");
                Err(Error::new(&codes::NO_WIRE, message))
            }
        }
    }

    fn billing(&self) -> Billing {
        Billing::Free
    }
}

fn wire_format(name: &str) -> Result<WireFormat, Error> {
    let driver = Registry::<DriverDescriptor>::linked()?.get(name)?;
    driver.wire.ok_or_else(|| {
        let message = format!("the recording was made with the driver `{name}`, which has no wire format");
        Error::new(&codes::NO_WIRE, message)
    })
}

fn head(status: u16) -> Result<http::response::Parts, Error> {
    let response = http::Response::builder().status(status).body(());
    let response = response.map_err(|error| {
        let message = format!("the recording has the status {status}, which is none");
        Error::new(&codes::NO_WIRE, message).caused_by(error)
    })?;
    Ok(response.into_parts().0)
}
