//! The file `.env`: one `NAME=value` per line.

/// A line that is none. It never holds the line's text, which may be a secret.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) line: usize,
    pub(crate) why: &'static str,
}

/// Reads the lines in order; a later line of the same name counts. Values are taken as they are: nothing in them is expanded.
pub(crate) fn parse(text: &str) -> Result<Vec<(String, String)>, Malformed> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut pairs = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let pair = pair(line.trim()).map_err(|why| Malformed { line: index + 1, why })?;
        pairs.extend(pair);
    }
    Ok(pairs)
}

fn pair(line: &str) -> Result<Option<(String, String)>, &'static str> {
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let exported = line
        .strip_prefix("export")
        .filter(|rest| rest.starts_with(char::is_whitespace));
    let (name, value) = exported
        .unwrap_or(line)
        .split_once('=')
        .ok_or("expected `NAME=value`; there is no `=`")?;
    let name = name.trim();
    if !is_name(name) {
        return Err("the name before `=` may have only letters, digits and `_`, and may not begin with a digit");
    }
    Ok(Some((name.to_owned(), value_of(value.trim())?)))
}

/// Whether `text` can name a variable: letters, digits and `_`, no digit first.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn value_of(text: &str) -> Result<String, &'static str> {
    match text.chars().next() {
        Some('\'') => {
            let (value, rest) = text[1..].split_once('\'').ok_or("the closing `'` is missing")?;
            nothing_more(rest)?;
            Ok(value.to_owned())
        }
        Some('"') => double_quoted(&text[1..]),
        // A comment needs a space before it, so that `#` may be part of a value.
        _ if text.starts_with('#') => Ok(String::new()),
        _ => {
            let comment = text.char_indices().zip(text.chars().skip(1));
            let end = comment
                .filter(|((_, before), hash)| before.is_whitespace() && *hash == '#')
                .map(|((index, _), _)| index)
                .next();
            Ok(text[..end.unwrap_or(text.len())].trim_end().to_owned())
        }
    }
}

fn double_quoted(text: &str) -> Result<String, &'static str> {
    let mut value = String::new();
    let mut rest = text.chars();
    loop {
        match rest.next().ok_or("the closing `\"` is missing")? {
            '"' => break,
            '\\' => value.push(match rest.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(same @ ('"' | '\\' | '$')) => same,
                _ => return Err("in double quotes `\\` goes before n, r, t, `\"`, `\\` or `$`"),
            }),
            other => value.push(other),
        }
    }
    nothing_more(rest.as_str())?;
    Ok(value)
}

fn nothing_more(rest: &str) -> Result<(), &'static str> {
    let rest = rest.trim_start();
    if rest.is_empty() || rest.starts_with('#') {
        Ok(())
    } else {
        Err("there is text after the closing quote")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(line: &str) -> Result<String, &'static str> {
        parse(line)
            .map(|pairs| pairs[0].1.clone())
            .map_err(|malformed| malformed.why)
    }

    #[test]
    fn quotes_comments_and_export_are_understood() {
        let text = "\u{feff}# keys\n\nexport A=one # a comment\r\nB = \"two # \\\"quoted\\\"\\n\"  # comment\nC='$three\\n'\nD=x#y\nE=\nF=a=b\nG= # none\n";
        let expected = [
            ("A", "one"),
            ("B", "two # \"quoted\"\n"),
            ("C", "$three\\n"),
            ("D", "x#y"),
            ("E", ""),
            ("F", "a=b"),
            ("G", ""),
        ];
        let expected: Vec<_> = expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(parse(text), Ok(expected));
    }

    #[test]
    fn a_malformed_line_is_named_by_its_number() {
        let why = "expected `NAME=value`; there is no `=`";
        assert_eq!(parse("A=1\nsk-secret\n"), Err(Malformed { line: 2, why }));
        assert_eq!(one("A='open"), Err("the closing `'` is missing"));
        assert_eq!(one("A=\"open"), Err("the closing `\"` is missing"));
        assert_eq!(one("A='x'y"), Err("there is text after the closing quote"));
        assert!(one("A=\"\\q\"").is_err());
        assert!(one("1A=x").is_err());
        assert!(one("A B=x").is_err());
        assert!(one("=x").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_quoted_reads_back_as_the_same(value in "[^\r\n\t]*") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            prop_assert_eq!(one(&format!("A=\"{quoted}\"")), Ok(value));
        }
    }
}
