use std::sync::Arc;

use super::*;

fn result(status: Status) -> ToolResult {
    ToolResult {
        status,
        summary: None,
        data: None,
        data_path: None,
        truncated: false,
        metadata: Vec::new(),
    }
}

fn reply_to(result: ToolResult) -> ToolReply {
    let limits = Limits {
        output: 1024,
        ..Limits::default()
    };
    reply(
        "t",
        Ended::Returned(result),
        &CallRecord::new(Arc::new(capsule_api::SystemClock)),
        &limits,
    )
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.into(), value.into())
}

#[test]
fn data_comes_before_the_summary_and_something_is_always_said() {
    let summary = Some("in short".to_owned());
    let both = ToolResult {
        data: Some("at length".into()),
        summary: summary.clone(),
        ..result(Status::Passed)
    };
    let short = ToolResult {
        summary,
        ..result(Status::Passed)
    };
    assert_eq!(reply_to(both), ToolReply::text("at length"));
    assert_eq!(reply_to(short), ToolReply::text("in short"));
    assert_eq!(
        reply_to(result(Status::Passed)),
        ToolReply::text("tool returned no data")
    );
}

#[test]
fn a_result_in_a_file_says_that_it_was_not_read() {
    let in_file = ToolResult {
        data_path: Some("/out/x".into()),
        ..result(Status::Passed)
    };
    assert_eq!(
        reply_to(in_file),
        ToolReply::text("the tool left its result in the file `/out/x`, which this host does not read")
    );
}

#[test]
fn metadata_is_kept_and_truncation_is_part_of_it() {
    let cut = ToolResult {
        data: Some("part".into()),
        truncated: true,
        metadata: vec![pair("state_effect", "read")],
        ..result(Status::Passed)
    };
    let metadata = vec![pair("state_effect", "read"), pair("truncated", "true")];
    assert_eq!(
        reply_to(cut),
        ToolReply {
            metadata,
            ..ToolReply::text("part")
        }
    );
}

#[test]
fn metadata_over_the_output_limit_is_left_out() {
    let large = ToolResult {
        data: Some("x".into()),
        metadata: vec![pair("a", "1"), pair("b", &"x".repeat(1023)), pair("c", "3")],
        ..result(Status::Passed)
    };
    assert_eq!(reply_to(large).metadata, [pair("a", "1")]);
    let many = ToolResult {
        data: Some("x".into()),
        metadata: vec![pair("", ""); 1000],
        ..result(Status::Passed)
    };
    assert_eq!(reply_to(many).metadata.len(), 1024 / ENTRY);
}

#[test]
fn a_failed_result_that_says_denied_is_denied_and_a_passed_one_is_not() {
    let denied = |status| {
        reply_to(ToolResult {
            data: Some("x".into()),
            metadata: vec![pair("denied", "true")],
            ..result(status)
        })
        .status
    };
    assert_eq!(denied(Status::Failed), ToolStatus::Denied);
    assert_eq!(denied(Status::Error), ToolStatus::Denied);
    assert_eq!(denied(Status::Passed), ToolStatus::Passed);
}

#[test]
fn images_and_sounds_are_passed_on_as_what_they_are() {
    let typed = |media: &str, data: &str| {
        let result = ToolResult {
            data: Some(data.into()),
            metadata: vec![pair("content_type", media)],
            ..result(Status::Passed)
        };
        reply_to(result).content
    };
    let (media_type, data) = ("image/png".to_owned(), vec![0, 1, 2]);
    assert_eq!(typed("image/png", "AAEC"), [Content::Image { media_type, data }]);
    let (media_type, data) = ("audio/wav".to_owned(), vec![0, 1, 2]);
    assert_eq!(typed("audio/wav", "AAEC\n"), [Content::Audio { media_type, data }]);
    assert_eq!(typed("image/png", "not base64"), [Content::Text("not base64".into())]);
    assert_eq!(typed("text/csv", "AAEC"), [Content::Text("AAEC".into())]);
}

#[test]
fn an_image_over_the_limit_is_cut_as_text_with_its_size() {
    let data = "A".repeat(2000);
    let result = ToolResult {
        data: Some(data.clone()),
        metadata: vec![pair("content_type", "image/png")],
        ..result(Status::Passed)
    };
    let reply = reply_to(result);
    let text = format!(
        "{}\n[cut: the first 1024 of 2000 bytes; `limits.output` is 1KiB]",
        &data[..1024]
    );
    assert_eq!(
        (reply.content, reply.full_bytes),
        (vec![Content::Text(text)], Some(2000))
    );
}

#[test]
fn what_was_denied_before_a_trap_is_said() {
    let record = CallRecord::new(Arc::new(capsule_api::SystemClock));
    record.deny("an HTTP request to https://example.com was denied: no grant covers it".into());
    let trap = Ended::Stopped(wasmtime::Error::new(Trap::UnreachableCodeReached));
    let text = "tool 't' trapped: wasm trap: wasm `unreachable` instruction executed; \
        before that, an HTTP request to https://example.com was denied: no grant covers it";
    assert_eq!(
        reply("t", trap, &record, &Limits::default()),
        ToolReply::new(ToolStatus::Trapped, text)
    );
}

#[test]
fn a_guest_that_exits_has_returned_no_result() {
    let exit = Ended::Stopped(wasmtime::Error::new(I32Exit(3)));
    let text = "tool 't' exited with code 3 in place of returning a result";
    assert_eq!(
        reply(
            "t",
            exit,
            &CallRecord::new(Arc::new(capsule_api::SystemClock)),
            &Limits::default()
        ),
        ToolReply::new(ToolStatus::Trapped, text)
    );
}
