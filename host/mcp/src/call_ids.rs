//! Ids of calls: the caller's own where it sends one, so that its events and ours speak of the same call.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use capsule_api::CallId;

/// Longer ids of a caller are not taken over.
const LONGEST: usize = 256;
/// Ids remembered; once it is full, calls get ids of our own, which need no memory to be unique.
const REMEMBERED: usize = 10_000;

/// Hands out ids that are unique for the life of a service.
#[derive(Debug)]
pub(crate) struct CallIds {
    prefix: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    made: u64,
    seen: HashSet<String>,
}

impl CallIds {
    pub(crate) fn new(prefix: String) -> Self {
        Self {
            prefix,
            state: Mutex::default(),
        }
    }

    /// An id for a call that its caller knows as `wanted`. Where that was used before, it gets a suffix: the same call sent twice runs
    /// twice, and both are told apart.
    pub(crate) fn next(&self, wanted: Option<&str>) -> CallId {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Ours have a prefix of their own; a caller's that looks like one is not taken over.
        let usable = |id: &&str| !id.is_empty() && id.len() <= LONGEST && !id.starts_with(&self.prefix);
        let Some(wanted) = wanted.filter(usable).filter(|_| state.seen.len() < REMEMBERED) else {
            state.made += 1;
            return CallId::new(format!("{}{}", self.prefix, state.made));
        };
        let mut id = wanted.to_owned();
        let mut n = 1;
        while !state.seen.insert(id.clone()) {
            n += 1;
            id = format!("{wanted}#{n}");
        }
        CallId::new(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_callers_id_is_kept_and_its_repetition_told_apart() {
        let ids = CallIds::new("mcp-".into());
        let wanted = [
            Some("toolu_1"),
            None,
            Some("toolu_1"),
            Some("toolu_1#2"),
            Some("mcp-1"),
            Some(""),
        ];
        let given: Vec<_> = wanted.iter().map(|id| ids.next(*id).to_string()).collect();
        assert_eq!(
            given,
            ["toolu_1", "mcp-1", "toolu_1#2", "toolu_1#2#2", "mcp-2", "mcp-3"]
        );
    }

    proptest! {
        #[test]
        fn no_id_is_given_twice(wanted in prop::collection::vec(prop::option::of("[a#2-]{0,3}|mcp-[1-9]"), 0..60)) {
            let ids = CallIds::new("mcp-".into());
            let given: HashSet<_> = wanted.iter().map(|id| ids.next(id.as_deref())).collect();
            prop_assert_eq!(given.len(), wanted.len());
        }
    }
}
