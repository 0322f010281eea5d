//! Patterns for file names: `*` for any characters, `?` for one.

/// Whether the whole of `name` is what `pattern` describes. Takes at most the product of their lengths in steps.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // After the last star: where the pattern goes on, and the name's character that the star has not taken yet.
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                p += 1;
                star = Some((p, n));
                continue;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
                continue;
            }
            _ => {}
        }
        let Some((after, taken)) = star else {
            return false;
        };
        star = Some((after, taken + 1));
        (p, n) = (after, taken + 1);
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name) in [
            ("*.rs", "lib.rs"),
            ("*", ""),
            ("a?c", "aéc"),
            ("*a*b*", "xxaxxbxx"),
            ("a*b*b", "abbb"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("*.rs", "lib.rsx"), ("?", ""), ("", "a"), ("a*b", "abc"), ("A", "a")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    /// The definition, without its cost in mind.
    fn slow(pattern: &[char], name: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|taken| slow(rest, &name[taken..])),
            Some((c, rest)) => name
                .split_first()
                .is_some_and(|(first, name)| (*c == '?' || c == first) && slow(rest, name)),
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_definition(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(matches(&pattern, &name), slow(&chars(&pattern), &chars(&name)));
        }
    }
}
