//! Names that every provider and CLI takes: one alias per tool, the same on every transport.
//!
//! A name that is safe keeps itself. Any other, and every name that a folding of `-` to `_` would merge with another, becomes its safe
//! characters and a hash of the name: so an alias depends on the names alone, not on their order.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

/// With the longest prefix that a CLI puts before it, an alias stays within 64 characters.
const LONGEST: usize = 50;
/// Digits of the hash; more only where fewer would collide.
const HASH_DIGITS: [usize; 4] = [8, 16, 32, 48];

/// The aliases of these names, in their order. Names must differ; so do the aliases, also where `-` counts as `_`.
pub(crate) fn aliases(names: &[&str]) -> Vec<String> {
    let mut shared: HashMap<String, usize> = HashMap::new();
    for name in names.iter().filter(|name| is_safe(name)) {
        *shared.entry(folded(name)).or_default() += 1;
    }
    let keeps = |name: &str| is_safe(name) && shared.get(&folded(name)) == Some(&1);
    let mut taken: HashSet<String> = names
        .iter()
        .filter(|name| keeps(name))
        .map(|name| folded(name))
        .collect();
    let mut alias = |name: &&str| {
        if keeps(name) {
            return (*name).to_owned();
        }
        let hashed = HASH_DIGITS.iter().map(|digits| hashed(name, *digits));
        // Different names share 48 digits of SHA-256 never; a name that spells such an alias out is the last one's own.
        let mut free = hashed.filter(|alias| !taken.contains(&folded(alias)));
        let alias = free.next().unwrap_or_else(|| hashed_whole(name));
        taken.insert(folded(&alias));
        alias
    };
    names.iter().map(&mut alias).collect()
}

fn is_safe(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len()) && name.chars().all(is_plain)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn folded(name: &str) -> String {
    name.replace('-', "_")
}

fn hashed(name: &str, digits: usize) -> String {
    let hash = hashed_whole(name);
    let room = LONGEST - digits - 1;
    let start: String = name
        .chars()
        .take(room)
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    format!("{start}_{}", &hash[..digits])
}

fn hashed_whole(name: &str) -> String {
    let hash = Sha256::digest(name);
    hash[..LONGEST / 2].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn t_01_names_that_a_peer_would_refuse_or_merge_get_aliases_of_their_own() {
        let long = |last: char| format!("{}{last}", "n".repeat(79));
        let names = [
            "fs.read/file",
            "fs_read_file",
            "plain",
            &long('a'),
            &long('b'),
            "wörter",
            "a-b",
            "a_b",
        ];
        let start = "n".repeat(41);
        let found = aliases(&names);
        assert_eq!(
            found,
            [
                format!("fs_read_file_{}", &hashed_whole(names[0])[..8]),
                "fs_read_file".to_owned(),
                "plain".to_owned(),
                format!("{start}_{}", &hashed_whole(names[3])[..8]),
                format!("{start}_{}", &hashed_whole(names[4])[..8]),
                format!("w_rter_{}", &hashed_whole("wörter")[..8]),
                format!("a-b_{}", &hashed_whole("a-b")[..8]),
                format!("a_b_{}", &hashed_whole("a_b")[..8]),
            ]
        );
        assert_eq!(found[7], "a_b_648fa9b3", "an alias never changes");
    }

    proptest! {
        #[test]
        fn t_01_aliases_are_safe_unique_and_do_not_depend_on_order(
            names in prop::collection::hash_set("[a-c_.é-]{1,4}|[a-z_-]{45,60}", 1..12)
        ) {
            let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
            names.sort_unstable();
            let found = aliases(&names);
            let folds: HashSet<String> = found.iter().map(|alias| folded(alias)).collect();
            prop_assert_eq!(folds.len(), names.len());
            prop_assert!(found.iter().all(|alias| is_safe(alias)));
            let backwards: Vec<&str> = names.iter().rev().copied().collect();
            let mut turned = aliases(&backwards);
            turned.reverse();
            prop_assert_eq!(turned, found);
        }
    }
}
