//! Connections that have not shown yet that they may ask.

use std::collections::VecDeque;

use tokio::task::AbortHandle;

use super::io::Exchange;

/// Those of a listener, the oldest first. Holds no more than twice as many as there are connections.
#[derive(Default)]
pub(super) struct Newcomers(VecDeque<(Exchange, AbortHandle)>);

impl Newcomers {
    pub(super) fn add(&mut self, exchange: Exchange, task: AbortHandle, connections: usize) {
        if self.0.len() >= 2 * connections.max(1) {
            self.0
                .retain(|(exchange, task)| !exchange.was_admitted() && !task.is_finished());
        }
        self.0.push_back((exchange, task));
    }

    /// Ends the oldest, so that its place is free for whoever comes now. Nothing where everybody has shown it.
    pub(super) fn end_oldest(&mut self) {
        while let Some((exchange, task)) = self.0.pop_front() {
            if !exchange.was_admitted() && !task.is_finished() {
                task.abort();
                return;
            }
        }
    }
}
