//! Where guests run: a call is polled once where it was made, and goes to a runtime of its own only when it waits or computes for long.
//!
//! Guests on the host's own runtime would starve its timers and sockets: measured, two spinning guests on two workers delay a 5 ms timer
//! by 600 ms even though they yield every 10 ms.

use std::{
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::JoinHandle,
};

/// Threads for host calls that block (file system). A hung file system holds some for ever; then others wait, and the host does not.
const BLOCKING_THREADS: usize = 64;

/// A future that can go to another thread.
pub(super) type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The runtime was shut down under the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShutDown;

/// The sandbox's own runtime.
pub(super) struct GuestRuntime {
    handle: Handle,
    runtime: Mutex<Option<Runtime>>,
}

impl GuestRuntime {
    pub(super) fn new() -> std::io::Result<Self> {
        let workers = thread::available_parallelism().map_or(2, Into::into);
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("capsule-guest")
            .enable_all()
            .build()?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
        })
    }

    /// Runs `work`: at once where it can finish without waiting, else on this runtime. Dropping the future drops the work, at its next
    /// yield if it is computing.
    ///
    /// # Panics
    /// Where the work panics.
    pub(super) async fn run<T: Send + 'static>(&self, mut work: Work<T>) -> Result<T, ShutDown> {
        {
            // Timers and blocking calls that the work starts here belong to this runtime, where it may go on.
            let _here = self.handle.enter();
            // The waker may do nothing: work that is pending is polled again, by the runtime that gets it.
            if let Poll::Ready(value) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return Ok(value);
            }
        }
        let mut task = AbortOnDrop(self.handle.spawn(work));
        match (&mut task.0).await {
            Ok(value) => Ok(value),
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(ShutDown),
            },
        }
    }

    /// Ends the runtime and waits for its threads, but no longer than `grace`. Calls in flight end as shut down. Blocks.
    pub(super) fn shut_down(&self, grace: Duration) {
        if let Some(runtime) = self.take() {
            runtime.shutdown_timeout(grace);
        }
    }

    fn take(&self) -> Option<Runtime> {
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for GuestRuntime {
    fn drop(&mut self) {
        // Dropping a runtime waits for its blocking threads, which an async context must not do.
        if let Some(runtime) = self.take() {
            runtime.shutdown_background();
        }
    }
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
