//! What another process needs to go on.

use capsule_api::{
    Error, Message, ResumeState,
    serde_json::{self, json},
};
use serde::{Deserialize, Serialize};

use crate::{
    codes,
    history::{Held, History},
    meter::Spent,
};

/// Version of the data. Version 1 had the messages alone.
const VERSION: u32 = 2;

/// Who held the conversation: what is held by one provider or model is nothing to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Peer {
    pub(crate) peer: String,
    pub(crate) model: Option<String>,
}

#[derive(Deserialize)]
struct Data {
    messages: Vec<Message>,
    #[serde(default)]
    summarised: bool,
    #[serde(default)]
    held: Option<HeldBy>,
    #[serde(default)]
    spent: Spent,
}

#[derive(Deserialize)]
struct HeldBy {
    #[serde(flatten)]
    held: Held,
    by: Peer,
}

/// What there is to go on from; valid also in the middle of a turn.
pub(crate) fn write(history: &History, spent: Spent, peer: &Peer) -> Option<ResumeState> {
    let mut whole = history.clone();
    whole.close_open_calls();
    if whole.is_empty() {
        return None;
    }
    let mut data = json!({
        "messages": whole.messages(),
        "summarised": whole.summarised(),
        "spent": spent,
    });
    if let Some(held) = whole.held() {
        data["held"] = json!({"id": held.id, "messages": held.messages, "by": peer});
    }
    Some(ResumeState {
        transport: "http".to_owned(),
        version: VERSION,
        data,
    })
}

/// Goes on from what [`write`] gave, in this version or an older one.
///
/// # Errors
/// It is another transport's, of a newer version, or not what it should be.
pub(crate) fn read(state: &ResumeState, peer: &Peer) -> Result<(History, Spent), Error> {
    let lost = |why: String| Error::new(&codes::CONVERSATION_LOST, format!("the kept conversation {why}"));
    if state.transport != "http" {
        return Err(lost(format!("belongs to the transport `{}`", state.transport)));
    }
    if !(1..=VERSION).contains(&state.version) {
        return Err(lost(format!(
            "has version {}; this program reads 1 to {VERSION}",
            state.version
        )));
    }
    let data = serde_json::from_value(state.data.clone());
    let data: Data = data.map_err(|error| lost("cannot be read".to_owned()).caused_by(error))?;
    let held = data.held.filter(|held| held.by == *peer).map(|held| held.held);
    Ok((History::of(data.messages, data.summarised, held), data.spent))
}

#[cfg(test)]
mod tests {
    use capsule_api::ContentBlock;

    use super::*;

    fn peer(model: &str) -> Peer {
        Peer {
            peer: "a driver".to_owned(),
            model: Some(model.to_owned()),
        }
    }

    fn talk() -> History {
        let mut history = History::default();
        history.begin(vec![ContentBlock::text("go")]);
        let thinking = ContentBlock::Thinking {
            text: "hm".to_owned(),
            signature: Some("seal".to_owned()),
            redacted: None,
        };
        history.assistant(vec![thinking, ContentBlock::text("gone")]);
        history.hold(Some("resp_1".to_owned()));
        history
    }

    #[test]
    fn h_09_reasoning_keeps_its_seal_and_the_provider_its_conversation() {
        let state = write(&talk(), Spent::default(), &peer("m")).unwrap();
        let (history, _) = read(&state, &peer("m")).unwrap();
        assert_eq!((history.messages(), history.held()), (talk().messages(), talk().held()));
    }

    #[test]
    fn what_one_provider_holds_is_nothing_to_another() {
        let state = write(&talk(), Spent::default(), &peer("m")).unwrap();
        let (history, _) = read(&state, &peer("another")).unwrap();
        assert_eq!((history.unseen(), history.held()), (talk().messages(), None));
    }

    #[test]
    fn a_state_of_version_1_is_read() {
        let messages = json!([{"role": "user", "content": [{"type": "text", "text": "go"}]}]);
        let state = ResumeState {
            transport: "http".to_owned(),
            version: 1,
            data: json!({"messages": messages}),
        };
        let (history, spent) = read(&state, &peer("m")).unwrap();
        assert_eq!((json!(history.messages()), spent), (messages, Spent::default()));
    }
}
