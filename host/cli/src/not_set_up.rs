//! What stands in a transport's place where it could not be built and nothing is going to run.

use capsule_api::{Capabilities, Conversation, ConversationSpec, Error, Probe, Transport, async_trait};

/// Says why there is no transport.
pub(crate) struct NotSetUp {
    pub(crate) why: Error,
    /// What the transport could do at most.
    pub(crate) at_most: Capabilities,
}

#[async_trait]
impl Transport for NotSetUp {
    fn capabilities(&self) -> Capabilities {
        self.at_most
    }

    async fn probe(&self, _: bool) -> Probe {
        let mut probe = Probe::usable();
        probe.usable = Err(self.why.clone());
        probe
    }

    async fn open(&self, _: ConversationSpec) -> Result<Box<dyn Conversation>, Error> {
        Err(self.why.clone())
    }
}
