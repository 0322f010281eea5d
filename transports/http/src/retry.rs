//! When a failed request is made again, and how long that waits. Pure.

use std::{
    io,
    time::{Duration, Instant, SystemTime},
};

use capsule_api::{Error, Retry, http};

/// Retries where nothing listens on this machine: a server that is just being started may need one, and others do not come up by waiting.
const RETRIES_OF_REFUSED: u32 = 1;

/// The policy: exponential with full jitter; what the provider asks for is honoured up to the longest delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Tries after the first.
    pub(crate) max_retries: u32,
    /// Upper end of the first delay.
    pub(crate) initial_delay: Duration,
    /// The longest delay.
    pub(crate) max_delay: Duration,
    /// From the first failure of a request to the start of its last try, at most.
    pub(crate) max_elapsed: Duration,
}

/// The tries of one request.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    made: u32,
    first_failure: Option<Instant>,
}

impl Tries {
    /// After a failure: the number of the next try (the first retry is 1) and how long it waits; `None` where another one makes no sense,
    /// or the provider asks to wait for longer than there is time.
    pub(crate) fn next(&mut self, policy: &Policy, retry: Retry, now: Instant, chance: f64) -> Option<(u32, Duration)> {
        self.made += 1;
        let first = *self.first_failure.get_or_insert(now);
        let left = policy.max_elapsed.saturating_sub(now.saturating_duration_since(first));
        if matches!(retry, Retry::After(asked) if asked > left) {
            return None;
        }
        let delay = policy.delay(retry, self.made, chance)?;
        (delay <= left).then_some((self.made, delay))
    }
}

impl Policy {
    /// The policy after this failure of a request to `endpoint`.
    pub(crate) fn after(mut self, error: &Error, endpoint: Option<http::Uri>) -> Self {
        let here = endpoint.as_ref().and_then(http::Uri::host).is_some_and(is_loopback);
        if here && is_refused(error) {
            self.max_retries = self.max_retries.min(RETRIES_OF_REFUSED);
        }
        self
    }

    /// The delay before try number `attempt` (the first retry is 1), or `None` where another try makes no sense. `chance` is the jitter,
    /// from 0 to 1.
    pub(crate) fn delay(&self, retry: Retry, attempt: u32, chance: f64) -> Option<Duration> {
        if attempt > self.max_retries {
            return None;
        }
        let chance = chance.clamp(0.0, 1.0);
        match retry {
            Retry::Never => None,
            Retry::Later => {
                let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
                let ceiling = self.initial_delay.saturating_mul(doubled).min(self.max_delay);
                Some(ceiling.mul_f64(chance))
            }
            Retry::After(asked) => {
                // A little later than asked, so that all who were told the same second do not come in the same instant.
                let spread = self
                    .initial_delay
                    .min(asked.max(Duration::from_millis(100)))
                    .mul_f64(chance);
                Some(asked.saturating_add(spread).min(self.max_delay))
            }
        }
    }
}

/// What the system says, where no connection could be made.
pub(crate) fn io_cause(error: &Error) -> Option<&io::Error> {
    error.source.as_deref()?.downcast_ref()
}

/// Whether nothing listens at the address.
pub(crate) fn is_refused(error: &Error) -> bool {
    io_cause(error).is_some_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether a status stands for something that may pass.
pub(crate) fn worth_another_try(status: http::StatusCode) -> bool {
    match status.as_u16() {
        408 | 409 | 425 | 429 => true,
        501 | 505 => false,
        code => (500..600).contains(&code),
    }
}

/// What `Retry-After` asks for: seconds, or the time until a date.
pub(crate) fn retry_after(headers: &http::HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    // A date in the past means "now".
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy {
        max_retries: 6,
        initial_delay: Duration::from_secs(1),
        max_delay: Duration::from_secs(20),
        max_elapsed: Duration::from_secs(60),
    };

    #[test]
    fn h_07_delays_double_up_to_the_longest_and_end_with_the_budget() {
        let ceilings: Vec<_> = (1..=7).map(|n| POLICY.delay(Retry::Later, n, 1.0)).collect();
        let expected = [1, 2, 4, 8, 16, 20].map(|s| Some(Duration::from_secs(s)));
        assert_eq!(ceilings[..6], expected);
        assert_eq!(ceilings[6], None);
    }

    #[test]
    fn a_port_of_this_machine_where_nothing_listens_is_tried_twice_and_every_other_failure_as_the_policy_says() {
        let failed =
            |kind: io::ErrorKind| Error::new(&crate::codes::IDLE, "no connection").caused_by(io::Error::from(kind));
        let retries =
            |error: &Error, uri: &'static str| POLICY.after(error, Some(http::Uri::from_static(uri))).max_retries;
        let (refused, reset) = (
            failed(io::ErrorKind::ConnectionRefused),
            failed(io::ErrorKind::ConnectionReset),
        );
        for here in ["http://127.0.0.1:11434/api", "http://localhost:1/", "http://[::1]:1/"] {
            assert_eq!((retries(&refused, here), retries(&reset, here)), (1, 6), "{here}");
        }
        assert_eq!(retries(&refused, "https://x.example/"), 6);
        let never = Policy {
            max_retries: 0,
            ..POLICY
        };
        assert_eq!(
            never.after(&refused, Some(http::Uri::from_static("http://[::1]:1/"))),
            never
        );
    }

    #[test]
    fn h_07_jitter_spreads_over_the_whole_delay() {
        assert_eq!(POLICY.delay(Retry::Later, 3, 0.0), Some(Duration::ZERO));
        assert_eq!(POLICY.delay(Retry::Later, 3, 0.5), Some(Duration::from_secs(2)));
    }

    #[test]
    fn h_07_what_the_provider_asks_for_is_the_least_and_the_longest_delay_the_most() {
        let asked = |s| Retry::After(Duration::from_secs(s));
        assert_eq!(POLICY.delay(asked(7), 1, 0.0), Some(Duration::from_secs(7)));
        assert_eq!(POLICY.delay(asked(7), 1, 0.5), Some(Duration::from_millis(7500)));
        assert_eq!(POLICY.delay(asked(3600), 1, 1.0), Some(POLICY.max_delay));
        assert_eq!(POLICY.delay(Retry::Never, 1, 1.0), None);
    }

    #[test]
    fn h_07_the_budget_is_one_of_time_too() {
        let start = Instant::now();
        let mut tries = Tries::default();
        let mut next = |retry, at| tries.next(&POLICY, retry, start + Duration::from_secs(at), 1.0);
        assert_eq!(
            next(Retry::Later, 100),
            Some((1, Duration::from_secs(1))),
            "counted from the first failure"
        );
        assert_eq!(next(Retry::Later, 140), Some((2, Duration::from_secs(2))));
        assert_eq!(next(Retry::Later, 157), None, "four seconds do not fit into three");
    }

    #[test]
    fn h_07_a_wait_beyond_the_budget_is_not_begun() {
        let after =
            |seconds| Tries::default().next(&POLICY, Retry::After(Duration::from_secs(seconds)), Instant::now(), 0.0);
        assert_eq!(after(60), Some((1, POLICY.max_delay)));
        assert_eq!(after(61), None);
    }

    #[test]
    fn h_07_retry_after_is_read_as_seconds_and_as_a_date() {
        let now = httpdate::parse_http_date("Wed, 21 Oct 2015 07:28:00 GMT").unwrap();
        let read = |value: &str| {
            let mut headers = http::HeaderMap::new();
            headers.insert(http::header::RETRY_AFTER, value.parse().unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(read("1"), Some(Duration::from_secs(1)));
        assert_eq!(read("Wed, 21 Oct 2015 07:28:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(read("Wed, 21 Oct 2015 07:27:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("soon"), None);
        assert_eq!(retry_after(&http::HeaderMap::new(), now), None);
    }

    #[test]
    fn h_07_statuses_that_may_pass_are_told_from_those_that_stay() {
        let tried: Vec<_> = (400..600)
            .filter(|code| worth_another_try(http::StatusCode::from_u16(*code).unwrap()))
            .collect();
        assert_eq!(tried[..4], [408, 409, 425, 429]);
        assert_eq!(
            tried[4..],
            (500..600).filter(|code| ![501, 505].contains(code)).collect::<Vec<_>>()[..]
        );
    }
}
