//! What kind of body came, and its text.

use capsule_guest::Error;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::redirects::Response;

/// Where the declaration of a page's encoding is looked for (the HTML standard's prescan).
const PRESCAN: usize = 1024;

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A page.
    Html,
    /// JSON, of any type that ends so.
    Json,
    /// Any other text.
    Text,
}

/// A body as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// What it is.
    pub kind: Kind,
    /// The media type, without parameters, in lower case; empty where none was said.
    pub media_type: String,
    /// The text. Bytes that are none in its encoding are U+FFFD.
    pub text: String,
}

/// The body of a response as text.
///
/// # Errors
///
/// A sentence for the model where it is no text, or is compressed though nobody asked for that.
pub fn read(response: &Response) -> Result<Body, Error> {
    let said = response.header("content-type").unwrap_or_default();
    let media_type = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if let Some(coding) = response
        .header("content-encoding")
        .filter(|coding| coding != "identity")
    {
        return Err(Error::new(format!(
            "the answer is compressed ({coding}), which was not asked for: it cannot be read"
        )));
    }
    let kind = kind(&media_type, &response.body).ok_or_else(|| {
        Error::new(format!(
            "the answer is {}: this tool shows text only",
            named(&media_type)
        ))
    })?;
    let encoding = encoding(&said, kind, &response.body, response.cut);
    let (text, _, _) = encoding.decode(&response.body);
    let mut text = text.into_owned();
    if response.cut {
        // The last character may be half of one.
        text.truncate(text.trim_end_matches('\u{fffd}').len());
    }
    Ok(Body { kind, media_type, text })
}

fn named(media_type: &str) -> String {
    match media_type {
        "" => "binary".to_owned(),
        known => format!("of the type {}", crate::page::line(known)),
    }
}

/// What a body is; `None` where it is no text.
fn kind(media_type: &str, body: &[u8]) -> Option<Kind> {
    let (major, minor) = media_type.split_once('/').unwrap_or((media_type, ""));
    if matches!(major, "image" | "audio" | "video" | "font") && minor != "svg+xml" {
        return None;
    }
    let sniffed = &body[..body.len().min(8 << 10)];
    let utf_16 = matches!(sniffed, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
    if sniffed.contains(&0) && !utf_16 {
        return None;
    }
    match minor {
        "html" | "xhtml+xml" => return Some(Kind::Html),
        "json" => return Some(Kind::Json),
        other if other.ends_with("+json") => return Some(Kind::Json),
        _ => {}
    }
    let said_text =
        major == "text" || minor.ends_with("xml") || matches!(minor, "javascript" | "yaml" | "x-www-form-urlencoded");
    if said_text || utf_16 {
        return Some(Kind::Text);
    }
    // Nobody said, or said little: what can be read as text is one.
    let valid = match std::str::from_utf8(body) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    let start = String::from_utf8_lossy(&sniffed[..sniffed.len().min(PRESCAN)])
        .trim_start()
        .to_ascii_lowercase();
    let page = media_type.is_empty() && (start.starts_with("<!doctype html") || start.starts_with("<html"));
    valid.then_some(if page { Kind::Html } else { Kind::Text })
}

/// The encoding: what the header says, else what a page declares, else UTF-8 where it is that, else the usual one of old pages.
fn encoding(content_type: &str, kind: Kind, body: &[u8], cut: bool) -> &'static Encoding {
    let declared = charset(content_type.as_bytes()).and_then(Encoding::for_label);
    if let Some(encoding) = declared {
        return encoding;
    }
    if kind == Kind::Html {
        let start = &body[..body.len().min(PRESCAN)];
        if let Some(encoding) = charset(start).and_then(Encoding::for_label) {
            // A declaration that could be read byte by byte is not in UTF-16, whatever it says.
            return encoding.output_encoding();
        }
    }
    match std::str::from_utf8(body) {
        Ok(_) => UTF_8,
        Err(error) if cut && error.error_len().is_none() => UTF_8,
        Err(_) => WINDOWS_1252,
    }
}

/// The name after `charset=`, in a header or at the start of a page.
fn charset(text: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b"charset";
    let at = text
        .windows(KEY.len())
        .position(|window| window.eq_ignore_ascii_case(KEY))?;
    let rest = text[at + KEY.len()..]
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let rest = match rest {
        [b'"' | b'\'', rest @ ..] => rest,
        rest => rest,
    };
    let end = rest
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && !b"-_:.".contains(byte))
        .unwrap_or(rest.len());
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn response(content_type: &str, body: &[u8]) -> Response {
        Response {
            status: 200,
            headers: vec![("content-type".to_owned(), content_type.as_bytes().to_vec())],
            body: body.to_vec(),
            cut: false,
        }
    }

    fn text(content_type: &str, body: &[u8]) -> (Kind, String) {
        let body = read(&response(content_type, body)).unwrap();
        (body.kind, body.text)
    }

    #[test]
    fn types_are_told_apart() {
        let cases = [
            ("text/html; charset=utf-8", Kind::Html),
            ("application/xhtml+xml", Kind::Html),
            ("Application/JSON", Kind::Json),
            ("application/problem+json", Kind::Json),
            ("text/plain", Kind::Text),
            ("application/rss+xml", Kind::Text),
            ("image/svg+xml", Kind::Text),
            ("application/octet-stream", Kind::Text),
            ("", Kind::Text),
        ];
        for (said, kind) in cases {
            assert_eq!(text(said, b"x"), (kind, "x".to_owned()), "{said}");
        }
        assert_eq!(text("", b"\n<!DOCTYPE html><p>x").0, Kind::Html);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let message = |said: &str, body: &[u8]| read(&response(said, body)).unwrap_err().message().to_owned();
        assert_eq!(
            message("image/png", b"x"),
            "the answer is of the type image/png: this tool shows text only"
        );
        assert_eq!(
            message("text/plain", b"a\0"),
            "the answer is of the type text/plain: this tool shows text only"
        );
        assert_eq!(
            message("", b"\xff\xd8\xff"),
            "the answer is binary: this tool shows text only"
        );
        let mut compressed = response("text/html", b"x");
        compressed
            .headers
            .push(("content-encoding".to_owned(), b"gzip".to_vec()));
        assert_eq!(
            read(&compressed).unwrap_err().message(),
            "the answer is compressed (gzip), which was not asked for: it cannot be read"
        );
    }

    #[test]
    fn encodings_are_those_that_are_said_declared_or_seen() {
        let latin = b"caf\xe9";
        assert_eq!(text("text/plain; charset=ISO-8859-1", latin).1, "café");
        assert_eq!(text("text/plain", latin).1, "café");
        assert_eq!(text("text/plain", "café".as_bytes()).1, "café");
        assert_eq!(
            text("text/plain; charset=\"shift_jis\"", b"\x83e\x83X\x83g").1,
            "テスト"
        );
        let page = b"<html><meta charset='windows-1251'><p>\xcf\xf0\xe8\xe2\xe5\xf2";
        assert!(text("text/html", page).1.ends_with("Привет"));
        let equiv = b"<meta http-equiv=content-type content=\"text/html; charset=koi8-r\"><p>\xf0";
        assert!(text("text/html", equiv).1.ends_with('П'));
        assert_eq!(text("text/plain", b"\xff\xfea\0b\0").1, "ab");
        assert_eq!(text("text/plain; charset=nonsense", "é".as_bytes()).1, "é");
    }

    #[test]
    fn a_body_that_was_cut_ends_between_characters() {
        let cut = Response {
            cut: true,
            ..response("text/plain", b"caf\xc3")
        };
        assert_eq!(read(&cut).unwrap().text, "caf");
    }

    proptest! {
        #[test]
        fn any_body_is_text_or_refused(said in "[a-z/+;= -]{0,30}", body in proptest::collection::vec(any::<u8>(), 0..300), cut: bool) {
            let _ = read(&Response { cut, ..response(&said, &body) });
        }
    }
}
