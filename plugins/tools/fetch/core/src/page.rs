//! The readable text of a page.

use std::{collections::BTreeMap, fmt::Write as _};

/// Columns of the text. Tables and quotations are laid out in these; paragraphs are broken here.
const WIDTH: usize = 100;
/// The longest part of a page that is read, in bytes.
pub const MOST_BYTES: usize = 2 << 20;
/// Elements that may lie in one another. A page that is deeper is shown without its layout: what lays it out takes memory for each level.
const DEEPEST: usize = 256;

/// The text of a page as a person would read it: its title, then headings, paragraphs, lists and tables, with links numbered and listed at the end.
/// Scripts and styles are left out.
#[must_use]
pub fn readable(html: &str) -> String {
    let (html, _) = cut(html, MOST_BYTES);
    let mut text = String::new();
    if let Some(title) = title(html) {
        let _ = write!(text, "Title: {title}\n\n");
    }
    text.push_str(tidy(&laid_out(html)).trim_matches('\n'));
    text.push('\n');
    text
}

fn laid_out(html: &str) -> String {
    if depth(html) > DEEPEST {
        return bare(html);
    }
    let config = html2text::config::plain()
        .allow_width_overflow()
        .no_link_wrapping()
        .no_table_borders();
    config
        .string_from_read(html.as_bytes(), WIDTH)
        .unwrap_or_else(|_| bare(html))
}

/// How deep elements lie in one another, at most. An end tag closes an open element of its name and nothing else; elements without an end
/// tag count too, so it may say more.
fn depth(html: &str) -> usize {
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    let (mut now, mut deepest) = (0usize, 0);
    for part in html.split('<').skip(1) {
        match part.as_bytes().first() {
            Some(b'/') => {
                if let Some(count @ 1..) = open.get_mut(&name(&part[1..])) {
                    *count -= 1;
                    now -= 1;
                }
            }
            Some(byte) if byte.is_ascii_alphabetic() && !is_void(part) => {
                *open.entry(name(part)).or_default() += 1;
                now += 1;
            }
            _ => {}
        }
        deepest = deepest.max(now);
    }
    deepest
}

/// The name that a tag begins with, in small letters.
fn name(tag: &str) -> String {
    let end = tag.find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>'));
    tag[..end.unwrap_or(tag.len())].to_ascii_lowercase()
}

/// Whether the element has no end tag, or can do without one in the usual way of writing.
fn is_void(tag: &str) -> bool {
    const NAMES: [&str; 20] = [
        "area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta", "option", "p",
        "source", "td", "th", "tr", "wbr",
    ];
    let name = tag
        .split(|c: char| !c.is_ascii_alphanumeric())
        .next()
        .unwrap_or_default();
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The text between the tags, without scripts and styles; a line for each piece.
fn bare(html: &str) -> String {
    let mut text = String::new();
    let mut skipped: Option<&str> = None;
    for part in html.split('<').filter(|part| !part.is_empty()) {
        let (tag, rest) = part.split_once('>').unwrap_or((part, ""));
        let name = tag
            .split(|c: char| c.is_ascii_whitespace() || c == '/' && !tag.starts_with('/'))
            .next()
            .unwrap_or_default();
        match skipped {
            Some(open)
                if name
                    .strip_prefix('/')
                    .is_some_and(|name| name.eq_ignore_ascii_case(open)) =>
            {
                skipped = None
            }
            Some(_) => continue,
            None => {
                skipped = ["script", "style"]
                    .into_iter()
                    .find(|known| known.eq_ignore_ascii_case(name))
            }
        }
        if skipped.is_none() && !rest.trim().is_empty() {
            text.push_str(rest.trim());
            text.push('\n');
        }
    }
    text
}

/// The title of a page, as one line.
fn title(html: &str) -> Option<String> {
    const OPEN: &str = "<title";
    let (start, _) = cut(html, 64 << 10);
    let lower = start.to_ascii_lowercase();
    let open = lower.find(OPEN)?;
    let from = open + lower[open..].find('>')? + 1;
    let to = from + lower[from..].find("</title")?;
    // The same reader resolves what is written as `&amp;`.
    let escaped = start[from..to].replace('<', "&lt;");
    let text = html2text::config::plain_no_decorate()
        .allow_width_overflow()
        .string_from_read(escaped.as_bytes(), 10_000)
        .ok()?;
    let title = line(&text);
    (!title.is_empty()).then_some(title)
}

/// A text as one line of at most 300 characters.
pub(crate) fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}

/// Without spaces at the ends of lines, and without more than one empty line at once.
fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines() {
        let line = line.trim_end();
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            tidy.push_str(line);
            tidy.push('\n');
        }
    }
    tidy
}

/// The start of a text, cut at a character, and whether it was cut.
pub(crate) fn cut(text: &str, most: usize) -> (&str, bool) {
    if text.len() <= most {
        return (text, false);
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], true)
}

#[cfg(test)]
mod tests;
