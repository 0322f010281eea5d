//! The errors that a driver makes of a status that is not 200.

use capsule_api::{ErrorKind, WireFormat, http};

use super::DriverFixture;

pub(super) fn check(driver: &DriverFixture, format: WireFormat) -> Vec<String> {
    let quoted = format!(
        "{{\"error\":{{\"message\":\"no: {}\"}}}}",
        driver.key.unwrap_or("no key")
    );
    let bodies = ["", "<html>Bad gateway</html>", "null", "{\"error\":", quoted.as_str()];
    let statuses = [400_u16, 401, 403, 404, 413, 429, 500, 502, 503, 529];
    let mut problems = Vec::new();
    for status in statuses {
        for body in bodies {
            let response = http::Response::builder().status(status).body(());
            let head = response.expect("these are statuses").into_parts().0;
            let error = (format.refusal)(&head, body.as_bytes());
            let kind = error.kind;
            // What the transport takes out of every text before anyone sees it may be in there: only the code counts here.
            if !driver.descriptor.codes.iter().any(|code| code.id == error.code) {
                problems.push(format!(
                    "status {status}: the descriptor does not list the code `{}`",
                    error.code
                ));
            } else if !fits(status, kind) {
                problems.push(format!(
                    "status {status} with {body:?} is of the kind `{}`",
                    kind.as_str()
                ));
            }
        }
    }
    problems
}

/// Whether a failure of this kind is what the status says.
fn fits(status: u16, kind: ErrorKind) -> bool {
    match status {
        401 => kind == ErrorKind::Auth,
        // A gateway on the way says 403 too.
        403 => matches!(kind, ErrorKind::Auth | ErrorKind::BadRequest | ErrorKind::Protocol),
        429 => matches!(kind, ErrorKind::RateLimited | ErrorKind::Quota),
        500.. => matches!(
            kind,
            ErrorKind::Overloaded | ErrorKind::Protocol | ErrorKind::Network | ErrorKind::Crashed
        ),
        _ => !matches!(kind, ErrorKind::Bug | ErrorKind::Storage | ErrorKind::Crashed),
    }
}
