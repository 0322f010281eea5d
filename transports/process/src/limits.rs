//! What a CLI must be told of the tools' own limits.

use std::time::Duration;

use capsule_api::{Catalogue, Limits};

/// What a call may take beyond its tool's own limit, so that the tool's end is told before the CLI gives up.
const MARGIN: Duration = Duration::from_secs(5);
/// CLIs count in timers that hold no more than 31 bits of milliseconds; one that is longer fires at once.
const MOST: Duration = Duration::from_secs(24 * 24 * 3600);

/// The CLI's own limit on a tool call: the longest of the tools' limits, the time that the call may wait for the caller, and 5 s; at most
/// 24 days.
pub fn call_limit(catalogue: &Catalogue, limits: &Limits) -> Duration {
    let longest = catalogue.tools.iter().map(|tool| tool.longest).max();
    let longest = longest.unwrap_or_default();
    longest.saturating_add(limits.answer).saturating_add(MARGIN).min(MOST)
}

/// The longest result of any tool, in bytes.
pub fn largest_result(catalogue: &Catalogue) -> u64 {
    catalogue
        .tools
        .iter()
        .map(|tool| tool.largest)
        .max()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use capsule_api::{Annotations, ToolSpec};

    use super::*;

    fn catalogue(tools: &[(Duration, u64)]) -> Catalogue {
        let tool = |(longest, largest): &(Duration, u64)| ToolSpec {
            name: "tool".into(),
            alias: "tool".into(),
            description: String::new(),
            input_schema: serde_json::json!({"type": "object"}),
            annotations: Annotations::default(),
            longest: *longest,
            largest: *largest,
        };
        Catalogue {
            tools: tools.iter().map(tool).collect(),
        }
    }

    #[test]
    fn m_03_a_call_may_take_its_tools_time_and_the_wait_for_an_answer() {
        let limits = Limits {
            answer: Duration::from_secs(100),
            ..Limits::default()
        };
        let tools = catalogue(&[(Duration::from_secs(30), 10), (Duration::from_secs(75), 5)]);
        assert_eq!(call_limit(&tools, &limits), Duration::from_secs(180));
        assert_eq!(largest_result(&tools), 10);
        let endless = catalogue(&[(Duration::MAX, 0)]);
        assert_eq!(call_limit(&endless, &limits), Duration::from_secs(2_073_600));
    }
}
