//! Transport `parrot`: answers with its input.
#![warn(missing_docs)]

use std::time::Duration;

use capsule_api::{
    Billing, BlockKind, Capabilities, Code, Conversation, ConversationSpec, Error, ErrorKind, Event, Input, Outcome,
    Probe, Transport, TurnIo, Usage, async_trait, register,
    serde_json::{Value, json},
};
use serde::Deserialize;

/// What every instance can do.
const CAPABILITIES: Capabilities = Capabilities {
    streams: false,
    thinking: false,
    usage: true,
    resumes: false,
    parallel_tools: false,
    interrupts: true,
    host_owns_loop: false,
};

const NO_TEXT: Code = Code {
    id: "parrot-no-text",
    kind: ErrorKind::BadRequest,
    meaning: "The input holds a file, and `parrot` takes text.",
    remedy: "Send text.",
};

register! {
    TransportDescriptor {
        name: "parrot",
        family: "example",
        summary: "Answers with its input.",
        at_most: CAPABILITIES,
        stops_within: Duration::from_secs(1),
        settings_schema: schema,
        example: "transport: parrot\nending: \"!\"\n",
        recognises: None,
        codes: &[&NO_TEXT],
        build: |settings, services| Ok(Box::new(settings.decode::<Parrot>(&*services.secrets)?)),
    }
}

fn schema(_: Option<&Value>) -> Value {
    json!({
        "type": "object",
        "properties": {"ending": {"type": "string", "default": "", "description": "Written after the text."}},
        "additionalProperties": false,
    })
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parrot {
    #[serde(default)]
    ending: String,
}

#[async_trait]
impl Transport for Parrot {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    async fn probe(&self, _online: bool) -> Probe {
        Probe::usable()
    }

    async fn open(&self, _: ConversationSpec) -> Result<Box<dyn Conversation>, Error> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl Conversation for Parrot {
    async fn turn(&mut self, input: Input, io: TurnIo) -> Result<Outcome, Error> {
        if io.cancel.is_cancelled() {
            return Ok(Outcome::Cancelled);
        }
        let input = input
            .as_text()
            .ok_or_else(|| Error::new(&NO_TEXT, "the input holds a file"))?;
        let text = format!("{}{}", input, self.ending);
        io.events.emit(Event::Started {
            model: None,
            peer: None,
            billing: Billing::Free,
            resumed: false,
        });
        io.events.emit(Event::RequestStarted { n: 1 });
        let block = io.events.block();
        io.events.emit(Event::Block {
            block,
            kind: BlockKind::Text,
            text: text.clone(),
        });
        io.events.emit(Event::RequestEnded {
            n: 1,
            stop: "end_turn".into(),
        });
        io.events.emit(Event::Usage(Usage {
            requests: 1,
            ..Usage::default()
        }));
        Ok(Outcome::Completed { text })
    }
}
