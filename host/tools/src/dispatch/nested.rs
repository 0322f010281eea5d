//! Tools that call tools: the same chain, under the call that makes it.

use capsule_api::{ToolReply, ToolStatus};

/// Metadata of a reply to a call that was refused before anything ran; the value says why.
pub(crate) const REFUSED: &str = "refused";

/// The calls that a call is inside of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stack {
    /// Declared names and whether the tool is exclusive, outermost first.
    callers: Vec<(String, bool)>,
}

impl Stack {
    /// Calls between a call made here and the model.
    pub(super) fn depth(&self) -> u32 {
        u32::try_from(self.callers.len()).unwrap_or(u32::MAX)
    }

    /// This stack with one more call on it.
    pub(super) fn inside(&self, name: &str, exclusive: bool) -> Self {
        let mut callers = self.callers.clone();
        callers.push((name.to_owned(), exclusive));
        Self { callers }
    }

    /// Whether the calls above hold the order of calls already, so that one made here must not wait for it.
    pub(super) fn is_nested(&self) -> bool {
        !self.callers.is_empty()
    }

    /// A refusal, if this tool must not be called from here. `deepest` is how many calls may be in one another, the model's included.
    pub(super) fn refusal(&self, name: &str, exclusive: bool, deepest: u32) -> Option<ToolReply> {
        let path = || {
            let names = self.callers.iter().map(|(name, _)| name.as_str());
            names.chain([name]).collect::<Vec<_>>().join(" -> ")
        };
        let (why, what) = if self.callers.iter().any(|(caller, _)| caller == name) {
            ("cycle", format!("it would call itself ({})", path()))
        } else if self.depth() >= deepest {
            (
                "depth",
                format!("calls may be {deepest} deep ({}; `limits.registry_depth`)", path()),
            )
        } else if exclusive && self.callers.iter().any(|(_, exclusive)| !exclusive) {
            (
                "exclusive",
                "it runs alone, and the tool that calls it does not: declare that one exclusive too".to_owned(),
            )
        } else {
            return None;
        };
        let mut reply = ToolReply::new(ToolStatus::Denied, format!("tool '{name}' was not run: {what}"));
        reply.metadata.push((REFUSED.into(), why.into()));
        Some(reply)
    }
}
