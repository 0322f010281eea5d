//! Ctrl-C, SIGTERM and SIGHUP: the first asks the task to stop, the second leaves at once.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use capsule_api::{Cancel, CancelReason, Error};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
};

use crate::failure;

/// What ended the run from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Interrupt,
    Terminate,
}

impl Signal {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// Listens as long as it lives.
pub(crate) struct Signals {
    seen: Arc<AtomicU8>,
    listener: JoinHandle<()>,
}

impl Signals {
    /// Cancels the task at the first signal. At the second the process ends: children go with it, since each has a parent-death signal.
    pub(crate) fn cancel(cancel: Cancel) -> Result<Self, Error> {
        let install = |kind| signal(kind).map_err(|error| failure::internal("listen for signals", &error));
        let mut interrupt = install(SignalKind::interrupt())?;
        let mut terminate = install(SignalKind::terminate())?;
        // A terminal that was closed: nobody reads any more, and the run has to end as cleanly as at SIGTERM.
        let mut hangup = install(SignalKind::hangup())?;
        let seen = Arc::new(AtomicU8::new(0));
        let tell = seen.clone();
        let listener = tokio::spawn(async move {
            loop {
                let signal = tokio::select! {
                    _ = interrupt.recv() => Signal::Interrupt,
                    _ = terminate.recv() => Signal::Terminate,
                    _ = hangup.recv() => Signal::Terminate,
                };
                if tell.swap(signal.exit_code(), Ordering::AcqRel) != 0 {
                    std::process::exit(signal.exit_code().into());
                }
                cancel.cancel(CancelReason::Caller);
            }
        });
        Ok(Self { seen, listener })
    }

    /// The last signal that came.
    pub(crate) fn seen(&self) -> Option<Signal> {
        match self.seen.load(Ordering::Acquire) {
            0 => None,
            143 => Some(Signal::Terminate),
            _ => Some(Signal::Interrupt),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.listener.abort();
    }
}
