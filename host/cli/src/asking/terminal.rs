//! Lines that a person types, read without a thread: one that waits in `read` could not be ended and would hold up the end of the program.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use capsule_api::async_trait;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{QueueSelector, tcflush},
};
use tokio::io::{Interest, unix::AsyncFd};

use super::Lines;

/// A terminal gives at most this many bytes of a line in one piece.
const LONGEST_LINE: usize = 4096;

/// Standard input, where it is a terminal that hands out whole lines.
#[derive(Default)]
pub(super) struct Terminal {
    /// Opened at the first question: the runtime has to be there.
    input: Option<AsyncFd<OwnedFd>>,
}

#[async_trait]
impl Lines for Terminal {
    fn forget(&mut self) {
        // Where it fails, an old line may answer the question; the person sees it there.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }

    async fn next(&mut self) -> io::Result<Option<String>> {
        let input = match self.input.take() {
            Some(input) => input,
            None => registered(io::stdin().as_fd().try_clone_to_owned()?)?,
        };
        let input = self.input.insert(input);
        loop {
            let mut ready = input.readable().await?;
            // The descriptor is shared with other programs, so it stays in blocking mode; it is asked once more before each read.
            if !has_line(input.get_ref())? {
                ready.clear_ready();
                continue;
            }
            let mut line = [0; LONGEST_LINE];
            let n = rustix::io::read(input.get_ref(), &mut line)?;
            if n == 0 {
                return Ok(None);
            }
            let text = String::from_utf8_lossy(&line[..n]);
            return Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()));
        }
    }
}

fn registered(input: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open for as long as it lives, always names the same descriptor, and is not taken out before the `AsyncFd` ends.
    let registered = unsafe { AsyncFd::register_with_interest(input, Interest::READABLE) };
    Ok(registered?)
}

fn has_line(input: &OwnedFd) -> io::Result<bool> {
    let mut asked = [PollFd::new(input, PollFlags::IN)];
    Ok(poll(&mut asked, Some(&Timespec::default()))? > 0)
}
