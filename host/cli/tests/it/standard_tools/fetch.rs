//! `fetch` and `fetch-post`, against a real site on loopback.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{call, refused, said, with};
use crate::{
    site::{Page, Site},
    support::Sandbox,
};

/// Must turn up nowhere but on the wire.
const SECRET: &str = "tk-81c0ffee42";

fn page(head: &'static str, body: impl Into<Vec<u8>>) -> Page {
    (head, body.into())
}

/// The example, granted this site and no other; `more` are further lines of `capabilities`.
fn granted(site: &Site, more: &str) -> Sandbox {
    let sandbox = with("fetch-demo").env("TOKEN", SECRET);
    let origin = site.origin();
    let mut manifest = "name: c\nversion: 0.1.0\ninference: {transport: echo}\n".to_owned();
    manifest.push_str("tools:\n  - {name: fetch, component: tools/fetch.wasm}\n  - {name: fetch-post, component: tools/fetch-post.wasm}\n");
    let _ = write!(manifest, "capabilities:\n  network: {{allow: [\"{origin}\"]}}\n{more}");
    sandbox.write("c/capsule.yaml", manifest);
    sandbox
}

fn at(site: &Site, path: &str) -> Value {
    json!({"url": format!("{}{path}", site.origin())})
}

#[test]
fn a_page_is_read_as_text_and_json_as_it_is() {
    let site = Site::start([
        (
            "/a",
            page(
                "200 OK\r\ncontent-type: text/html; charset=iso-8859-1",
                &b"<h1>Caf\xe9</h1><p>Open <a href=/b>now</a>."[..],
            ),
        ),
        (
            "/b",
            page(
                "200 OK\r\ncontent-type: application/json",
                "{\"z\": 1, \"a\": 9007199254740993}",
            ),
        ),
        ("/c", page("404 Not Found\r\ncontent-type: text/plain", "no such page")),
        ("/d", page("200 OK\r\ncontent-type: image/png", "x")),
    ]);
    let sandbox = granted(&site, "");
    let origin = site.origin();
    let text = format!("HTTP 200 · {origin}/a · text/html\n\n# Café\n\nOpen [now][1].\n\n[1]: /b");
    assert_eq!(said(&sandbox, "fetch", &at(&site, "/a")).trim_end(), text);
    let data = format!(
        "{{\"status\":200,\"url\":\"{origin}/b\",\"content_type\":\"application/json\",\"body\":{{\"z\": 1, \"a\": 9007199254740993}}}}"
    );
    assert_eq!(said(&sandbox, "fetch", &at(&site, "/b")), data);
    let missing = format!("HTTP 404 · {origin}/c · text/plain\n\nno such page");
    assert_eq!(said(&sandbox, "fetch", &at(&site, "/c")), missing);
    let image = format!(
        "tool 'fetch' failed: HTTP 200 from {origin}/d: the answer is of the type image/png: this tool shows text only"
    );
    assert_eq!(
        refused(&sandbox, "fetch", &at(&site, "/d")),
        ("failed".to_owned(), image)
    );
}

#[test]
fn a_host_that_is_not_granted_is_denied_also_after_a_redirect() {
    let other = Site::start([("/", page("200 OK", "inside"))]);
    let hidden = format!("{}/", other.origin());
    let head: &'static str = Box::leak(format!("302 Found\r\nlocation: {hidden}").into_boxed_str());
    let site = Site::start([("/go", page(head, ""))]);
    let sandbox = granted(&site, "");

    let told = other.origin();
    let why = format!(
        "{told} was not asked: it is not granted\n(an HTTP request to {told} was denied: no grant covers it; \
         `capabilities.network.allow: [{told}]` would)"
    );
    let direct = refused(&sandbox, "fetch", &json!({"url": hidden}));
    assert_eq!(direct, ("denied".to_owned(), format!("tool 'fetch' failed: {why}")));
    let redirected = refused(&sandbox, "fetch", &at(&site, "/go"));
    let why = format!("tool 'fetch' failed: after a redirect to {told}: {why}");
    assert_eq!(redirected, ("denied".to_owned(), why));
    let by_name = refused(&sandbox, "fetch", &json!({"url": "http://localhost/"}));
    assert_eq!(by_name.0, "denied");
    assert_eq!(other.asked(), []);
}

#[test]
fn redirects_within_the_grants_are_followed_and_the_last_address_is_told() {
    let site = Site::start([
        ("/a", page("301 Moved\r\nlocation: b?q=1", "")),
        ("/b?q=1", page("302 Found\r\nlocation: /c", "")),
        ("/c", page("200 OK\r\ncontent-type: text/plain", "there")),
        ("/round", page("302 Found\r\nlocation: /round", "")),
    ]);
    let sandbox = granted(&site, "");
    let there = format!("HTTP 200 · {}/c · text/plain\n\nthere", site.origin());
    assert_eq!(said(&sandbox, "fetch", &at(&site, "/a")), there);
    let (status, text) = refused(&sandbox, "fetch", &at(&site, "/round"));
    assert_eq!(status, "failed");
    assert_eq!(
        text,
        "tool 'fetch' failed: more than 5 redirects were answered: not followed further"
    );
}

#[test]
fn a_secret_goes_to_its_host_and_is_seen_by_nobody() {
    let site = Site::start([("/", page("200 OK\r\ncontent-type: text/plain", "welcome"))]);
    let secrets = format!(
        "  secrets:\n    TOKEN: {{from: env, hosts: [\"{}\"], header: \"Authorization: Bearer {{}}\"}}\n",
        site.origin()
    );
    let sandbox = granted(&site, &secrets);
    let ran = call(&sandbox, "fetch", &at(&site, "/")).code(0);
    assert!(!format!("{ran:?}").contains(SECRET), "{ran:?}");
    let asked = site.asked();
    assert_eq!(asked[0].headers["authorization"], format!("Bearer {SECRET}"));
    assert_eq!(asked[0].headers["user-agent"], "capsule-fetch/0.1.0");

    let mut own = at(&site, "/");
    own["headers"] = json!({"Authorization": "Bearer mine"});
    let (status, text) = refused(&sandbox, "fetch", &own);
    assert_eq!(status, "failed");
    assert!(
        text.contains("the header 'Authorization' is not set by this tool"),
        "{text}"
    );
    assert_eq!(site.asked().len(), 1);
}

#[test]
fn json_and_text_are_posted_as_they_are() {
    let site = Site::start([
        (
            "/new",
            page("201 Created\r\ncontent-type: application/json", "{\"id\": 7}"),
        ),
        ("/form", page("303 See Other\r\nlocation: /done", "")),
        ("/done", page("200 OK\r\ncontent-type: text/plain", "thanks")),
    ]);
    let sandbox = granted(&site, "");
    let mut create = at(&site, "/new");
    create["json"] = json!({"name": "Amélie"});
    create["headers"] = json!({"X-Trace": "1"});
    let created = format!(
        "{{\"status\":201,\"url\":\"{}/new\",\"content_type\":\"application/json\",\"body\":{{\"id\": 7}}}}",
        site.origin()
    );
    assert_eq!(said(&sandbox, "fetch-post", &create), created);
    let mut form = at(&site, "/form");
    form["text"] = json!("a=b&c=d".repeat(2000));
    form["content_type"] = json!("application/x-www-form-urlencoded");
    let thanks = format!("HTTP 200 · {}/done · text/plain\n\nthanks", site.origin());
    assert_eq!(said(&sandbox, "fetch-post", &form), thanks);

    let asked = site.asked();
    let lines: Vec<&str> = asked.iter().map(|asked| asked.line.as_str()).collect();
    assert_eq!(
        lines,
        ["POST /new HTTP/1.1", "POST /form HTTP/1.1", "GET /done HTTP/1.1"]
    );
    assert_eq!(asked[0].body, "{\"name\":\"Amélie\"}");
    assert_eq!(
        (&*asked[0].headers["content-type"], &*asked[0].headers["x-trace"]),
        ("application/json", "1")
    );
    assert_eq!(asked[1].body, "a=b&c=d".repeat(2000));
    assert_eq!(asked[2].body, "");
}

#[test]
fn an_answer_that_does_not_come_and_one_that_does_not_end_are_bounded() {
    let long = "x".repeat(6 << 20);
    let site = Site::start([("/long", page("200 OK\r\ncontent-type: text/plain", long))]);
    let sandbox = granted(&site, "");
    let mut silent = at(&site, "/silent");
    silent["timeout_seconds"] = json!(1);
    let (status, text) = refused(&sandbox, "fetch", &silent);
    assert_eq!(status, "failed");
    assert!(text.contains("has not answered"), "{text}");

    let said = said(&sandbox, "fetch", &at(&site, "/long"));
    let end = "\n[bytes 0 to 65536 of 5242880; go on with offset 65536]\n[the answer is longer: only its first 5242880 bytes were read]";
    assert!(said.ends_with(end), "{}", &said[said.len() - 300..]);
    // And with less than that granted, the sandbox's own limit is told.
    let sandbox = granted(&site, "  limits: {http_body: 1MiB}\n");
    let (status, text) = refused(&sandbox, "fetch", &at(&site, "/long"));
    assert_eq!(status, "failed");
    assert!(text.contains("limits.http_body"), "{text}");
}
