//! Summarises older turns with the conversation's own driver, so that it fits the context window again.

use capsule_api::{Catalogue, ContentBlock, Error, Event, Message, Outcome, Request, StopReason};

use crate::{
    answer::Ids,
    ask::{Answered, Asker, Nowhere, Turn},
    codes,
    compact::{self, Done},
    conversation::HttpConversation,
    rules::text_of,
};

/// Of what may stand in a conversation before it is summarised, the share that stays as it is: two fifths.
fn share(tokens: u64) -> u64 {
    tokens / 5 * 2
}

impl HttpConversation {
    /// Before a request: summarises older turns if the conversation is larger than the capsule allows. `Some`: the turn must end.
    pub(crate) async fn make_room(&mut self, turn: &Turn<'_>) -> Option<Outcome> {
        let window = self.spec.limits.context?;
        if self.tried.summary_failed || self.tokens() <= window.compact_above() {
            return None;
        }
        match self.compact(turn).await {
            Done::Interrupted(outcome) => Some(outcome),
            Done::Smaller | Done::Nothing => None,
        }
    }

    /// The estimated size of the next request.
    fn tokens(&self) -> u64 {
        let frame = compact::frame(&self.frame());
        let messages = compact::characters(self.history.messages());
        self.estimate.tokens(frame + messages)
    }

    /// A request with everything but messages.
    fn frame(&self) -> Request {
        let mut request = self.request();
        request.messages.clear();
        request
    }

    /// Puts a summary in place of the older turns. A failure is survived: the conversation stays as it is.
    pub(crate) async fn compact(&mut self, turn: &Turn<'_>) -> Done {
        let before = self.tokens();
        let room = self
            .spec
            .limits
            .context
            .map_or(before, |window| window.compact_above().min(before));
        let keep = self.estimate.characters(share(room));
        let Some(plan) = compact::plan(self.history.messages(), keep) else {
            return Done::Nothing;
        };
        let most = usize::try_from(self.estimate.characters(room)).unwrap_or(usize::MAX);
        let older = compact::transcript(&self.history.messages()[..plan.cut], most);
        let error = match self.summarise(turn, older).await {
            Ok(Summary::Interrupted(outcome)) => return Done::Interrupted(outcome),
            Ok(Summary::Text(summary)) => {
                let whole = self.history.clone();
                self.history.compact(plan, &summary);
                let after = self.tokens();
                if after < before {
                    turn.io.events.emit(Event::Compacted { before, after });
                    return Done::Smaller;
                }
                self.history = whole;
                Error::new(&codes::NO_SUMMARY, "the summary is longer than what it sums up")
            }
            Err(error) => error,
        };
        self.tried.summary_failed = true;
        let message = format!("older turns could not be summarised: {error}");
        let code = codes::NO_SUMMARY.id;
        turn.io.events.emit(Event::Warning { code, message });
        Done::Nothing
    }

    async fn summarise(&mut self, turn: &Turn<'_>, older: String) -> Result<Summary, Error> {
        let request = Request {
            system: Some(compact::INSTRUCTIONS.to_owned()),
            messages: vec![Message::User {
                content: vec![ContentBlock::Text { text: older }],
            }],
            tools: Vec::new(),
            continuation_id: None,
            ..self.frame()
        };
        let mut asker = Asker {
            shared: &self.shared,
            turn,
            said: &Nowhere::events(),
            catalogue: &Catalogue::default(),
            ids: &mut Ids::default(),
            meter: &mut self.meter,
        };
        let response = match asker.ask(&request).await? {
            Answered::Interrupted(outcome) => return Ok(Summary::Interrupted(outcome)),
            Answered::Response(response, _) => response,
        };
        let text = text_of(&response.content);
        let usable = matches!(response.stop_reason, StopReason::EndTurn | StopReason::MaxTokens);
        if !usable || text.trim().is_empty() {
            let stop = response.stop_reason.as_str();
            let message = format!("the model gave no summary (it stopped with `{stop}`)");
            return Err(Error::new(&codes::NO_SUMMARY, message));
        }
        Ok(Summary::Text(text))
    }
}

enum Summary {
    Interrupted(Outcome),
    Text(String),
}
