//! Whether there was a standard output when the program began.
//!
//! Before `main`, the standard library opens `/dev/null` in the place of each standard stream that is closed, so that no file of the
//! program's gets its number. From then on every write succeeds, and an answer that nobody gets looks like one that was read. So this
//! looks earlier.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output was closed. Always false where the system has no such hook.
pub(crate) fn stdout() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

#[cfg(target_os = "linux")]
extern "C" fn look() {
    let closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    CLOSED.store(closed, Ordering::Relaxed);
}

// SAFETY: what the loader finds in this section are C functions, called once, on the only thread there is; where it passes them the program's
// arguments, one without parameters leaves these alone. This one makes a system call and stores a value; it needs nothing that the
// standard library sets up.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
