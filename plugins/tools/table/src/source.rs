//! Reads and writes CSV (RFC 4180).

use capsule_guest::Error;
use csv::{ReaderBuilder, StringRecord, WriterBuilder};
use files_core::text::{read_whole, without_mark};

use crate::query::Query;

/// The largest file, in bytes: its cells take several times as much memory.
const LARGEST_FILE: u64 = 16 << 20;
/// Columns of a table.
const MOST_COLUMNS: usize = 1000;

/// Named columns, and rows of as many cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<StringRecord>,
}

/// Reads the table that a query is about.
///
/// # Errors
///
/// A sentence for the model: no grant, not there, no text, or rows that do not fit together.
pub(crate) fn read(query: &Query) -> Result<Table, Error> {
    let text = match (&query.path, &query.text) {
        (Some(path), None) => read_whole(path, LARGEST_FILE)?,
        (None, Some(text)) => text.clone(),
        (Some(_), Some(_)) => return Err(Error::new("give either path or text, not both")),
        (None, None) => return Err(Error::new("give the table: path or text")),
    };
    parse(without_mark(&text), query.delimiter.as_deref(), query.header)
}

fn parse(text: &str, delimiter: Option<&str>, header: bool) -> Result<Table, Error> {
    let delimiter = delimiter
        .and_then(|given| given.bytes().next())
        .unwrap_or_else(|| seen(text));
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for row in reader.records() {
        rows.push(row.map_err(|error| Error::new(format!("this is no table: {error}")))?);
    }
    let width = rows.first().map_or(0, StringRecord::len);
    if width > MOST_COLUMNS {
        return Err(Error::new(format!(
            "the table has {width} columns; this tool takes at most {MOST_COLUMNS}"
        )));
    }
    let columns = match header && !rows.is_empty() {
        true => rows.remove(0).iter().map(|name| name.trim().to_owned()).collect(),
        false => (1..=width).map(|at| format!("c{at}")).collect(),
    };
    Ok(Table { columns, rows })
}

/// The delimiter that is most often in the first line; a comma where there is none.
fn seen(text: &str) -> u8 {
    let first = text.lines().next().unwrap_or_default();
    let count = |delimiter: u8| first.bytes().filter(|byte| *byte == delimiter).count();
    let most = [b'|', b';', b'\t', b',']
        .into_iter()
        .max_by_key(|delimiter| count(*delimiter));
    most.unwrap_or(b',')
}

/// One row as CSV, with its line end.
pub(crate) fn line(cells: &[String]) -> String {
    let mut writer = WriterBuilder::new().from_writer(Vec::new());
    let written = writer
        .write_record(cells)
        .and_then(|()| writer.into_inner().map_err(|error| error.into_error().into()));
    // Writing to memory fails for nothing; a row without cells is an empty line.
    written
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_else(|| "\n".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_delimiter_is_seen_in_the_first_line() {
        for (text, delimiter) in [
            ("a,b", b','),
            ("a;b\n1,2;3,4", b';'),
            ("a\tb", b'\t'),
            ("a|b", b'|'),
            ("a", b','),
            ("", b','),
        ] {
            assert_eq!(seen(text), delimiter, "{text}");
        }
    }

    #[test]
    fn rows_of_another_width_are_told_with_their_line() {
        let message = parse("a,b\n1,2\n3\n", None, true).unwrap_err().message().to_owned();
        assert!(
            message.starts_with("this is no table: CSV error: record 2 (line: 3, byte: 8): found record with 1 fields"),
            "{message}"
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(cells in proptest::collection::vec("[a\",\n\r ;é]{1,5}", 1..5)) {
            let text = line(&cells);
            let table = parse(&text, Some(","), false).unwrap();
            let read: Vec<String> = table.rows[0].iter().map(str::to_owned).collect();
            prop_assert_eq!(read, cells);
        }

        #[test]
        fn any_text_is_a_table_or_not(text in any::<String>(), header: bool) {
            let _ = parse(&text, None, header);
        }
    }
}
