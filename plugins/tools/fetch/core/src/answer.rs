//! How an answer is shown.

use capsule_guest::{Error, Json, Output, StateEffect};

use crate::body::{self, Body, Kind};
use crate::page::{cut, line, readable};
use crate::redirects::Fetched;

/// Bytes shown where nothing else is asked for.
pub const DEFAULT_BYTES: u64 = 64 << 10;
/// Bytes shown at most: half of the output limit that a tool has by default.
pub const MOST_BYTES: u64 = 512 << 10;

/// How an answer is wanted.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Turns a page into text; none shows its source.
    pub page: Option<fn(&str) -> String>,
    /// Bytes of the text to pass over.
    pub offset: u64,
    /// Bytes of the text to show.
    pub most: u64,
    /// What the request did to the world.
    pub effect: StateEffect,
}

/// The readable text of pages: a shape's `page`.
pub const READABLE: fn(&str) -> String = readable;

/// Shows an answer: a line with status, address and type, an empty line, and the text; JSON that fits as one object with these.
///
/// # Errors
///
/// A sentence for the model where the answer is no text, or ends before the offset.
pub fn output(fetched: Fetched, shape: &Shape) -> Result<Output, Error> {
    let url = fetched.url.to_string();
    let status = fetched.response.status;
    let body = body::read(&fetched.response).map_err(|why| why.within(&format!("HTTP {status} from {url}: ")))?;
    let shown = show(&fetched, &body, shape)?;
    let summary = format!("HTTP {status}, {} bytes", fetched.response.body.len());
    Ok(shown
        .summary(summary)
        .state_effect(shape.effect)
        .resource_id(url)
        .metadata("http_status", status.to_string()))
}

fn show(fetched: &Fetched, body: &Body, shape: &Shape) -> Result<Output, Error> {
    let Fetched { url, response } = fetched;
    let most = shape.most.clamp(1, MOST_BYTES) as usize;
    let whole = shape.offset == 0 && !response.cut && body.text.len() <= most;
    if body.kind == Kind::Json && whole && body.text.parse::<Json>().is_ok() {
        let head = [("url", url.as_str()), ("content_type", &body.media_type)];
        let head = head.map(|(key, value)| format!("\"{key}\":{}", Json::from(value)));
        // The body as it came: numbers keep their digits, and keys their order.
        let (status, head, body) = (response.status, head.join(","), body.text.trim());
        return Ok(Output::text(format!("{{\"status\":{status},{head},\"body\":{body}}}")));
    }
    let text = match (body.kind, shape.page) {
        (Kind::Html, Some(page)) => page(&body.text),
        _ => body.text.clone(),
    };
    let part = part(&text, shape.offset, most)?;
    let media_type = if body.media_type.is_empty() {
        "no type"
    } else {
        &body.media_type
    };
    let mut shown = format!(
        "HTTP {} · {url} · {}\n\n{}",
        response.status,
        line(media_type),
        part.text
    );
    if part.text.is_empty() {
        shown.push_str("[no content]");
    }
    if let Some(next) = part.next {
        shown.push_str(&format!(
            "\n[bytes {} to {next} of {}; go on with offset {next}]",
            part.from,
            text.len()
        ));
    }
    if response.cut {
        shown.push_str(&format!(
            "\n[the answer is longer: only its first {} bytes were read]",
            response.body.len()
        ));
    }
    let output = Output::text(shown).truncated(part.next.is_some() || response.cut);
    Ok(match part.next {
        Some(next) => output.metadata("next_offset", next.to_string()),
        None => output,
    })
}

struct Part<'a> {
    text: &'a str,
    from: usize,
    /// Where the rest begins, where there is one.
    next: Option<usize>,
}

/// A part of a text that begins and ends between characters. It has one at least, so that a reader goes on.
fn part(text: &str, offset: u64, most: usize) -> Result<Part<'_>, Error> {
    let end = text.len();
    let from = usize::try_from(offset).ok().filter(|from| *from <= end);
    let mut from =
        from.ok_or_else(|| Error::new(format!("offset {offset} is after the end: the text has {end} bytes")))?;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let rest = &text[from..];
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let (text, is_cut) = cut(rest, most.max(first));
    Ok(Part {
        text,
        from,
        next: is_cut.then_some(from + text.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirects::Response;
    use proptest::prelude::*;
    use url::Url;

    fn fetched(status: u16, content_type: &str, body: &str) -> Fetched {
        Fetched {
            url: Url::parse("https://example.org/a").unwrap(),
            response: Response {
                status,
                headers: vec![("content-type".to_owned(), content_type.as_bytes().to_vec())],
                body: body.as_bytes().to_vec(),
                cut: false,
            },
        }
    }

    const ALL: Shape = Shape {
        page: Some(READABLE),
        offset: 0,
        most: DEFAULT_BYTES,
        effect: StateEffect::Read,
    };

    fn said(output: Output, status: u16, bytes: usize) -> Result<Output, Error> {
        Ok(output
            .summary(format!("HTTP {status}, {bytes} bytes"))
            .state_effect(StateEffect::Read)
            .resource_id("https://example.org/a")
            .metadata("http_status", status.to_string()))
    }

    #[test]
    fn a_page_is_shown_as_text_or_as_its_source() {
        let page = fetched(404, "text/html", "<h1>Gone</h1>");
        let text = Output::text("HTTP 404 · https://example.org/a · text/html\n\n# Gone\n");
        assert_eq!(output(page.clone(), &ALL), said(text, 404, 13));
        let source = Output::text("HTTP 404 · https://example.org/a · text/html\n\n<h1>Gone</h1>");
        assert_eq!(output(page, &Shape { page: None, ..ALL }), said(source, 404, 13));
    }

    #[test]
    fn json_is_one_object_with_the_body_as_it_came() {
        let json = fetched(
            200,
            "application/json; charset=utf-8",
            "{\"z\": 1.10, \"a\": 9007199254740993}\n",
        );
        let text = r#"{"status":200,"url":"https://example.org/a","content_type":"application/json","body":{"z": 1.10, "a": 9007199254740993}}"#;
        assert_eq!(output(json, &ALL), said(Output::text(text), 200, 35));
        let broken = fetched(200, "application/json", "{\"a\":");
        let text = "HTTP 200 · https://example.org/a · application/json\n\n{\"a\":";
        assert_eq!(output(broken, &ALL), said(Output::text(text), 200, 5));
    }

    #[test]
    fn a_long_text_comes_in_parts() {
        let long = fetched(200, "text/plain", "abcdéf");
        let first = Output::text(
            "HTTP 200 · https://example.org/a · text/plain\n\nabcd\n[bytes 0 to 4 of 7; go on with offset 4]",
        )
        .truncated(true)
        .metadata("next_offset", "4");
        assert_eq!(output(long.clone(), &Shape { most: 5, ..ALL }), said(first, 200, 7));
        let rest = Output::text("HTTP 200 · https://example.org/a · text/plain\n\néf");
        assert_eq!(output(long.clone(), &Shape { offset: 4, ..ALL }), said(rest, 200, 7));
        let after = Err(Error::new("offset 8 is after the end: the text has 7 bytes"));
        assert_eq!(output(long, &Shape { offset: 8, ..ALL }), after);
    }

    #[test]
    fn what_was_not_read_to_its_end_says_so() {
        let mut cut = fetched(200, "application/json", "[1");
        cut.response.cut = true;
        let text = "HTTP 200 · https://example.org/a · application/json\n\n[1\n[the answer is longer: only its first 2 bytes were read]";
        assert_eq!(output(cut, &ALL), said(Output::text(text).truncated(true), 200, 2));
        let empty = Output::text("HTTP 204 · https://example.org/a · no type\n\n[no content]");
        assert_eq!(output(fetched(204, "", ""), &ALL), said(empty, 204, 0));
    }

    proptest! {
        #[test]
        fn parts_make_the_whole(text in "[a-cé漢]{0,40}", most in 1usize..9) {
            let mut whole = String::new();
            let mut offset = 0;
            loop {
                let part = part(&text, offset, most).unwrap();
                whole.push_str(part.text);
                match part.next {
                    Some(next) => { prop_assert!(next as u64 > offset); offset = next as u64; }
                    None => break,
                }
            }
            prop_assert_eq!(whole, text);
        }
    }
}
