//! Standard output and error of a guest. Neither reaches the host's own.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamError},
};

use super::record::{CallRecord, LimitHit};

/// Room that a guest is told of at each check.
const ROOM: usize = 64 << 10;

/// Standard output: counted, and kept of a command alone (the result of any other tool is what it returns). More than the limit ends the call.
#[derive(Clone)]
pub(super) struct Stdout {
    pub(super) record: Arc<CallRecord>,
    pub(super) limit: u64,
    pub(super) keep: bool,
}

/// Standard error: its tail is kept for the error text.
#[derive(Clone)]
pub(super) struct Stderr {
    pub(super) record: Arc<CallRecord>,
}

impl OutputStream for Stdout {
    fn write(&mut self, bytes: Bytes) -> Result<(), StreamError> {
        if self.record.stdout(bytes.len()) > self.limit {
            self.record.hit(LimitHit::Output(self.limit));
            return Err(StreamError::trap("standard output is over its limit"));
        }
        if self.keep {
            self.record.print(&bytes);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        Ok(())
    }

    fn check_write(&mut self) -> Result<usize, StreamError> {
        Ok(ROOM)
    }
}

impl OutputStream for Stderr {
    fn write(&mut self, bytes: Bytes) -> Result<(), StreamError> {
        self.record.stderr(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        Ok(())
    }

    fn check_write(&mut self) -> Result<usize, StreamError> {
        Ok(ROOM)
    }
}

macro_rules! always_ready {
    ($stream:ty) => {
        #[async_trait]
        impl Pollable for $stream {
            async fn ready(&mut self) {}
        }

        impl IsTerminal for $stream {
            fn is_terminal(&self) -> bool {
                false
            }
        }

        impl StdoutStream for $stream {
            fn p2_stream(&self) -> Box<dyn OutputStream> {
                Box::new(self.clone())
            }

            /// Used by other versions of WASI only, which are not linked.
            fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
                Box::new(tokio::io::sink())
            }
        }
    };
}

always_ready!(Stdout);
always_ready!(Stderr);
