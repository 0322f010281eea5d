//! One module per wire format: what it accepts, and how a reply looks on it.

pub(crate) mod anthropic;

use bytes::Bytes;

/// A request that breaks a rule of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The status of the answer.
    pub(crate) status: u16,
    /// The error's type.
    pub(crate) kind: &'static str,
    /// What is wrong, in the API's words where they are known.
    pub(crate) message: String,
}

/// A script's tool that the request does not offer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the script calls the tool `{name}`, but the request offers only: {offered}")]
pub(crate) struct NotOffered {
    /// The script's name.
    pub(crate) name: String,
    /// The offered names.
    pub(crate) offered: String,
}

/// A server-sent event with a name, as bytes.
pub(crate) fn sse(event: Option<&str>, data: &str) -> Bytes {
    let name = event.map_or_else(String::new, |event| format!("event: {event}\n"));
    Bytes::from(format!("{name}data: {data}\n\n"))
}

/// The offered name that a script's bare name stands for: equal, or ending with `__<name>`, as
/// command-line clients prefix the names of an MCP server's tools.
pub(crate) fn resolve<'a>(name: &str, offered: impl Iterator<Item = &'a str> + Clone) -> Result<String, NotOffered> {
    let suffix = format!("__{name}");
    let found = offered
        .clone()
        .find(|&tool| tool == name)
        .or_else(|| offered.clone().find(|tool| tool.ends_with(&suffix)));
    found.map(str::to_owned).ok_or_else(|| NotOffered {
        name: name.to_owned(),
        offered: offered.collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_name_wins_over_a_prefixed_one() {
        let offered = ["mcp__a__read", "read"].into_iter();
        assert_eq!(resolve("read", offered), Ok("read".to_owned()));
    }

    #[test]
    fn a_prefixed_name_is_found() {
        let offered = ["mcp__a__spread", "mcp__a__read"].into_iter();
        assert_eq!(resolve("read", offered), Ok("mcp__a__read".to_owned()));
    }

    #[test]
    fn a_name_that_only_ends_alike_is_not_offered() {
        let expected = NotOffered {
            name: "read".to_owned(),
            offered: "spread".to_owned(),
        };
        assert_eq!(resolve("read", ["spread"].into_iter()), Err(expected));
    }
}
