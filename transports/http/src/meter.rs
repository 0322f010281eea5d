//! What a conversation has used, what it cost, and the limits on both.

use capsule_api::{Limit, Usage, serde_json::Value};
use serde::{Deserialize, Serialize};

/// Prices per million tokens, in a currency of the author's choice. Tokens without a price have no cost that could be told.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prices {
    pub(crate) input: f64,
    pub(crate) output: f64,
    pub(crate) cache_read: Option<f64>,
    pub(crate) cache_write: Option<f64>,
}

impl Prices {
    /// The cost in millionths of the currency; `None` where tokens were used that have no price.
    pub(crate) fn cost_micros(&self, usage: &Usage) -> Option<u64> {
        // A price per million tokens is a price per token in millionths.
        let part = |tokens: u64, price: Option<f64>| match (tokens, price) {
            (0, _) => Some(0.0),
            (tokens, price) => price.map(|price| tokens as f64 * price),
        };
        let sum = part(usage.input, Some(self.input))?
            + part(usage.output, Some(self.output))?
            + part(usage.cache_read, self.cache_read)?
            + part(usage.cache_write, self.cache_write)?;
        Some(sum.round() as u64)
    }

    /// Whether every kind of token has a price.
    pub(crate) fn is_complete(&self) -> bool {
        self.cache_read.is_some() && self.cache_write.is_some()
    }
}

/// Counts of the whole conversation, as they are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Spent {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Spent {
    fn add(&mut self, request: Usage) {
        self.input = self.input.saturating_add(request.input);
        self.output = self.output.saturating_add(request.output);
        self.cache_read = self.cache_read.saturating_add(request.cache_read);
        self.cache_write = self.cache_write.saturating_add(request.cache_write);
    }

    fn tokens(self) -> u64 {
        let parts = [self.input, self.output, self.cache_read, self.cache_write];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    fn usage(self) -> Usage {
        Usage {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            ..Usage::default()
        }
    }
}

/// What a conversation may use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowance {
    /// Tokens of the whole conversation, of every kind.
    pub(crate) tokens: Option<u64>,
    /// Cost of the whole conversation, in millionths.
    pub(crate) cost_micros: Option<u64>,
    pub(crate) prices: Option<Prices>,
}

/// Counts what is used.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    turn: Usage,
    spent: Spent,
}

impl Meter {
    /// Goes on from what was used before.
    pub(crate) fn with_spent(spent: Spent) -> Self {
        let turn = Usage::default();
        Self { turn, spent }
    }

    pub(crate) fn spent(&self) -> Spent {
        self.spent
    }

    /// A new turn begins.
    pub(crate) fn begin(&mut self) {
        self.turn = Usage::default();
    }

    /// Adds the counts of one request and returns those of the turn.
    pub(crate) fn add(&mut self, request: Usage, answered: bool, allowance: &Allowance) -> Usage {
        self.spent.add(request);
        let turn = &mut self.turn;
        turn.requests += u32::from(answered);
        turn.add_tokens(request);
        turn.cost_micros = allowance.prices.and_then(|prices| prices.cost_micros(turn));
        *turn
    }

    /// The limit that is reached, so that nothing more may be asked.
    pub(crate) fn reached(&self, allowance: &Allowance) -> Option<Limit> {
        if allowance.tokens.is_some_and(|most| self.spent.tokens() >= most) {
            return Some(Limit::Tokens);
        }
        let cost = allowance
            .prices
            .and_then(|prices| prices.cost_micros(&self.spent.usage()));
        let over = allowance.cost_micros.zip(cost).is_some_and(|(most, cost)| cost >= most);
        over.then_some(Limit::Cost)
    }
}

/// Finds a model that makes the same failing call again and again.
///
/// An answer that makes a call once or more, all of them in vain, is one failure of it. An answer without it, or in which it passed, ends
/// the row: to run tests, change something and run them again is work, not a circle.
#[derive(Debug, Default)]
pub(crate) struct SameFailure {
    rows: Vec<(String, Value, u32)>,
}

impl SameFailure {
    /// Takes the calls of one answer, each with whether it failed. Returns the longest row.
    pub(crate) fn answer<'a>(&mut self, calls: impl Iterator<Item = (&'a str, &'a Value, bool)> + Clone) -> u32 {
        let before = std::mem::take(&mut self.rows);
        let row = |rows: &[(String, Value, u32)], name: &str, input: &Value| {
            let found = rows.iter().find(|(n, i, _)| n == name && i == input);
            found.map(|(_, _, count)| *count)
        };
        for (name, input, _) in calls.clone() {
            let passed = calls.clone().any(|(n, i, failed)| !failed && n == name && i == input);
            if !passed && row(&self.rows, name, input).is_none() {
                let count = row(&before, name, input).unwrap_or(0).saturating_add(1);
                self.rows.push((name.to_owned(), input.clone(), count));
            }
        }
        self.rows.iter().map(|(_, _, count)| *count).max().unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;
