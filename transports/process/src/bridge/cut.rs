//! Results that are longer than a CLI passes on.

use capsule_api::{CallId, Content, ToolReply};

/// The reply with its text cut to `most` UTF-16 units, the notice included. What runs below has recorded the whole.
pub(super) fn cut(mut reply: ToolReply, most: usize, call: &CallId) -> ToolReply {
    let texts = || reply.content.iter().filter_map(text);
    let whole: usize = texts().map(units).sum();
    if whole <= most {
        return reply;
    }
    let bytes: usize = texts().map(str::len).sum();
    let notice = format!(
        "\n[Cut here: the result has {whole} characters and at most {most} can be shown. The trace has the whole result of the call {call}.]"
    );
    let mut room = most.saturating_sub(units(&notice));
    let mut notice = Some(notice);
    let mut kept = Vec::new();
    for piece in std::mem::take(&mut reply.content) {
        match (piece, notice.is_some()) {
            (Content::Text(mut text), true) => {
                let end = fits(&text, room);
                room -= units(&text[..end]);
                if end < text.len() {
                    text.truncate(end);
                    text.extend(notice.take());
                }
                kept.push(Content::Text(text));
            }
            (Content::Text(_), false) => {}
            (other, _) => kept.push(other),
        }
    }
    reply.content = kept;
    reply.full_bytes = reply.full_bytes.or(u64::try_from(bytes).ok());
    reply
}

fn text(piece: &Content) -> Option<&str> {
    match piece {
        Content::Text(text) => Some(text),
        _ => None,
    }
}

/// Length as JavaScript counts it.
fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Where to cut so that at most `room` units stay.
fn fits(text: &str, room: usize) -> usize {
    let mut used = 0;
    for (at, char) in text.char_indices() {
        used += char.len_utf16();
        if used > room {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use capsule_api::ToolStatus;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_result_ends_with_a_notice_and_other_kinds_stay() {
        let image = Content::Image {
            media_type: "image/png".into(),
            data: vec![1],
        };
        let mut reply = ToolReply::new(ToolStatus::Failed, "a".repeat(400));
        reply
            .content
            .extend([image.clone(), Content::Text("b".repeat(300)), Content::Text("c".into())]);
        let cut = cut(reply, 600, &CallId::new("call-1"));
        let notice = "\n[Cut here: the result has 701 characters and at most 600 can be shown. The trace has the whole result of the call \
                      call-1.]";
        let kept = "b".repeat(600 - 400 - notice.len()) + notice;
        let wanted = ToolReply {
            content: vec![Content::Text("a".repeat(400)), image, Content::Text(kept)],
            full_bytes: Some(701),
            ..ToolReply::new(ToolStatus::Failed, "")
        };
        assert_eq!(cut, wanted);
    }

    proptest! {
        #[test]
        fn what_is_shown_fits_and_is_a_beginning(text in "[a-zäß€😀]{0,900}", most in 200_usize..700) {
            let shown = cut(ToolReply::text(text.clone()), most, &CallId::new("c")).joined_text();
            prop_assert!(units(&shown) <= most);
            let kept = shown.split("\n[Cut here").next().unwrap();
            prop_assert!(text.starts_with(kept));
            prop_assert_eq!(units(&text) <= most, shown == text);
        }
    }
}
