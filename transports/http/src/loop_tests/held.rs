//! Conversations that the provider holds.

use super::*;

#[tokio::test]
async fn what_the_provider_holds_is_not_sent_again() {
    let mut named = calls("work", 1);
    if let Ok(Response { content, .. }) = &mut named {
        *content = vec![ContentBlock::ToolCall {
            id: "theirs".to_owned(),
            name: "work".to_owned(),
            input: json!({}),
        }];
    }
    let mut stand = Stand::new([held(named, "r1"), held(answer("one"), "r2"), held(answer("two"), "r3")]);
    stand.turn("go").await.unwrap();
    stand.turn("go on").await.unwrap();
    let expected = [(1, None), (1, Some("r1".to_owned())), (1, Some("r2".to_owned()))];
    assert_eq!(stand.asked(), expected);
}

#[tokio::test]
async fn calls_under_ids_of_our_own_are_told_with_the_whole_conversation() {
    let mut stand = Stand::new([held(calls("work", 1), "r1"), held(answer("one"), "r2")]);
    stand.turn("go").await.unwrap();
    assert_eq!(stand.asked(), [(1, None), (3, None)]);
}

#[tokio::test]
async fn a_conversation_that_the_provider_lost_is_sent_again_once() {
    let lost = || fails(ErrorKind::ConversationLost);
    let mut stand = Stand::new([held(answer("one"), "r1"), lost(), held(answer("two"), "r2"), lost()]);
    stand.turn("go").await.unwrap();
    assert_eq!(stand.turn("go on").await.unwrap(), completed("two"));
    assert_eq!(warnings(&stand.log), ["http-continuation-lost"]);
    assert_eq!(stand.asked(), [(1, None), (1, Some("r1".to_owned())), (3, None)]);

    let error = stand.turn("and on").await.unwrap_err();
    assert_eq!((error.kind, stand.asked().len()), (ErrorKind::ConversationLost, 5));
}
