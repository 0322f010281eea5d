//! The values that a filter works on.

use capsule_guest::{Error, Json};
use files_core::text::{read_whole, without_mark};
use jaq_json::{Val, read};

/// The largest file, in bytes: its values take several times as much memory.
const LARGEST_FILE: u64 = 16 << 20;
/// How deep arrays and objects may lie in one another. The reader calls itself for each level, on a stack that ends.
const DEEPEST: usize = 500;

/// A value of the arguments.
pub(crate) fn of_value(value: &Json) -> Result<Val, Error> {
    read::parse_single(value.to_string().as_bytes())
        .map_err(|error| Error::new(format!("the input is not JSON: {error}")))
}

/// The values of a file, or one array of them.
pub(crate) fn of_file(path: &str, slurp: bool) -> Result<Vec<Val>, Error> {
    let text = read_whole(path, LARGEST_FILE)?;
    let text = without_mark(&text);
    if is_deeper(text.as_bytes(), DEEPEST) {
        return Err(Error::new(format!(
            "'{path}' has more than {DEEPEST} arrays and objects inside one another"
        )));
    }
    let values: Result<Vec<Val>, _> = read::parse_many(text.as_bytes()).collect();
    let values = values.map_err(|error| Error::new(format!("'{path}' is not JSON: {error}")))?;
    Ok(match slurp {
        true => vec![values.into_iter().collect()],
        false => values,
    })
}

/// Whether more than `most` brackets are open at once. Those in strings do not count.
fn is_deeper(text: &[u8], most: usize) -> bool {
    let (mut open, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_string = false,
            (true, _) => {}
            (false, b'"') => in_string = true,
            (false, b'[' | b'{') => open += 1,
            (false, b']' | b'}') => open = open.saturating_sub(1),
            (false, _) => {}
        }
        if open > most {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_where_they_are_open_and_not_in_a_string() {
        assert!(is_deeper(b"[[[", 2));
        assert!(!is_deeper(b"[][][][]", 1));
        assert!(!is_deeper(br#"["[[[", "\"[["]"#, 1));
        assert!(is_deeper(br#"{"a": "\\", "b": [["#, 2));
    }
}
