use super::*;
use proptest::prelude::*;

#[test]
fn a_page_is_shown_as_it_reads() {
    let page = r#"<!DOCTYPE html><html><head><title> Pumps &amp;
        valves</title><style>p { color: red }</style><script>alert("<p>no</p>")</script></head>
        <body><h1>Pumps</h1><p>The <b>pump</b> runs, see <a href="/log">the log</a>.</p>
        <ul><li>one<li>two</ul>
        <table><tr><th>part<th>stock<tr><td>valve<td>3</table>
        <pre>  kept
    as is</pre></body></html>"#;
    let expected = "Title: Pumps & valves

# Pumps

The **pump** runs, see [the log][1].
* one
* two

part  stock
valve 3

  kept
    as is

[1]: /log
";
    assert_eq!(readable(page), expected);
}

#[test]
fn a_page_that_is_only_text_is_that_text() {
    assert_eq!(readable("just &lt;text&gt;"), "just <text>\n");
    assert_eq!(readable(""), "\n");
}

#[test]
fn a_page_of_a_hundred_thousand_levels_is_shown_without_its_layout() {
    let deep = format!("{}inside{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
    assert_eq!(readable(&deep), "inside\n");
    // End tags that close nothing make it no flatter.
    let disguised = format!("{}inside", "<div></x>".repeat(100_000));
    assert_eq!(readable(&disguised), "inside\n");
    let script = format!("{}<script>no<p>no</p></script>yes", "<i>".repeat(1000));
    assert_eq!(readable(&script), "yes\n");
}

#[test]
fn many_tables_side_by_side_end() {
    let table = "<table><tr><td>a<td><table><tr><td>b<td>c</table></table>".repeat(200);
    assert!(readable(&table).contains('c'));
}

#[test]
fn what_is_written_beside_the_rules_is_read_all_the_same() {
    for page in [
        "<",
        "<<>>",
        "<p",
        "</",
        "<!--",
        "<title>",
        "<title>x",
        "&",
        "&#xffffffff;",
        "<td>x",
        "<table><a>x",
    ] {
        let _ = readable(page);
    }
}

/// Pieces of pages, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<table>"),
        Just("</table>"),
        Just("<tr>"),
        Just("<td colspan=3>"),
        Just("<td colspan=99999999>"),
        Just("</td>"),
        Just("<ul>"),
        Just("<li>"),
        Just("</ul>"),
        Just("<ol start=-5>"),
        Just("<blockquote>"),
        Just("<pre>"),
        Just("</pre>"),
        Just("<a href=x>"),
        Just("</a>"),
        Just("<img alt='y' src=z>"),
        Just("<h1>"),
        Just("</h1>"),
        Just("<p>"),
        Just("<br>"),
        Just("<script>"),
        Just("</script>"),
        Just("<style>"),
        Just("<title>"),
        Just("</title>"),
        Just("<!--"),
        Just("-->"),
        Just("<svg>"),
        Just("<math>"),
        Just("<template>"),
        Just("<select>"),
        Just("<option>"),
        Just("<b>"),
        Just("</b>"),
        Just("word"),
        Just(" "),
        Just("\n"),
        Just("漢字"),
        Just("e\u{301}"),
        Just("&nbsp;"),
        Just("\u{200d}"),
        Just("<sup>"),
        Just("<dl><dt>"),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_page_is_shown_and_no_longer_than_it_may_be(page in pieces()) {
        let text = readable(&page);
        prop_assert!(text.len() <= 4000 + 200 * page.len(), "{} of {}", text.len(), page.len());
    }

    #[test]
    fn any_text_is_shown(page in any::<String>()) {
        let _ = readable(&page);
        let _ = bare(&page);
    }
}
