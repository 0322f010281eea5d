//! Tool calls while they stream. Their ids and indexes are what endpoints get wrong most: which call a piece belongs to is decided here.

use capsule_api::{
    BlockDelta, BlockStart, Error, StreamItem,
    serde_json::{self, Value},
};

use crate::codes;

/// The most arguments of one call that are held, in bytes.
const MAX_ARGUMENTS: usize = 64 << 20;

/// A call as far as it came. Nothing is said of it before its id is known or the answer is over: an id may come after the arguments.
#[derive(Debug)]
pub(crate) struct Call {
    block: u32,
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    started: bool,
}

/// What one chunk says of a call.
#[derive(Debug, Default)]
pub(crate) struct Piece<'a> {
    pub(crate) index: Option<u64>,
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
}

impl Call {
    pub(crate) fn new(block: u32, index: Option<u64>) -> Self {
        Self {
            block,
            index,
            id: String::new(),
            name: String::new(),
            arguments: String::new(),
            started: false,
        }
    }

    /// Takes a piece. The first id and the first name that are none other than empty count.
    pub(crate) fn take(&mut self, piece: &Piece<'_>, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        for (known, said) in [(&mut self.id, piece.id), (&mut self.name, piece.name)] {
            if known.is_empty() {
                said.clone_into(known);
            }
        }
        if self.arguments.len() + piece.arguments.len() > MAX_ARGUMENTS {
            let message = format!("the arguments of a call are larger than {} MiB", MAX_ARGUMENTS >> 20);
            return Err(Error::new(&codes::PROTOCOL, message));
        }
        // Nothing can follow a whole object: what looks like one more is the same, said again.
        if begins_object(piece.arguments) && self.is_whole() {
            return self.whole(piece.arguments, out);
        }
        self.arguments.push_str(piece.arguments);
        if self.started {
            self.input(piece.arguments.to_owned(), out);
        } else if !self.id.is_empty() && !self.name.is_empty() {
            self.start(out);
        }
        Ok(())
    }

    /// Takes the whole arguments, in place of the pieces so far.
    pub(crate) fn whole(&mut self, arguments: &str, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        arguments.clone_into(&mut self.arguments);
        if self.started {
            let delta = BlockDelta::WholeInput(Value::String(self.arguments.clone()));
            let index = self.block;
            out.push(StreamItem::Delta { index, delta });
        }
        self.take(&Piece::default(), out)
    }

    /// The call is over: says it, with or without an id.
    pub(crate) fn end(&mut self, out: &mut Vec<StreamItem>) {
        if !self.started {
            self.start(out);
        }
        out.push(StreamItem::Ended { index: self.block });
    }

    fn start(&mut self, out: &mut Vec<StreamItem>) {
        self.started = true;
        let (id, name) = (self.id.clone(), self.name.clone());
        let block = BlockStart::Call { id, name };
        out.push(StreamItem::Started {
            index: self.block,
            block,
        });
        self.input(self.arguments.clone(), out);
    }

    fn input(&self, piece: String, out: &mut Vec<StreamItem>) {
        if !piece.is_empty() {
            let delta = BlockDelta::Input(piece);
            out.push(StreamItem::Delta {
                index: self.block,
                delta,
            });
        }
    }

    fn is_whole(&self) -> bool {
        self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<Value>(&self.arguments).is_ok_and(|value| value.is_object())
    }

    /// Whether the piece, which could be this call's, begins another one.
    fn ends_before(&self, piece: &Piece<'_>) -> bool {
        if piece.name.is_empty() || self.name.is_empty() {
            return false;
        }
        let same_id = piece.id == self.id;
        let other_id = !piece.id.is_empty() && !self.id.is_empty() && !same_id;
        if other_id || piece.name != self.name {
            return true;
        }
        let said_again = same_id && !self.id.is_empty() && piece.arguments == self.arguments;
        begins_object(piece.arguments) && !said_again && self.is_whole()
    }
}

fn begins_object(arguments: &str) -> bool {
    arguments.trim_start().starts_with('{')
}

/// The calls of an answer whose pieces name their call by an index, by an id, by their place, or not at all.
#[derive(Debug, Default)]
pub(crate) struct Calls(Vec<Call>);

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes what one chunk says. `next` is the block that follows the last one.
    pub(crate) fn chunk(
        &mut self,
        pieces: &[Piece<'_>],
        next: &mut u32,
        out: &mut Vec<StreamItem>,
    ) -> Result<(), Error> {
        let mut taken = Vec::new();
        for (place, piece) in pieces.iter().enumerate() {
            // Two entries of one chunk that both have a name are two calls, whatever their ids.
            let known = self.candidate(piece, place, pieces.len());
            let known = known.filter(|at| piece.name.is_empty() || !taken.contains(at));
            let at = known.filter(|at| !self.0[*at].ends_before(piece)).unwrap_or_else(|| {
                self.0.push(Call::new(*next, piece.index));
                *next += 1;
                self.0.len() - 1
            });
            taken.push(at);
            self.0[at].take(piece, out)?;
        }
        Ok(())
    }

    /// All calls are over.
    pub(crate) fn end(&mut self, out: &mut Vec<StreamItem>) {
        for call in &mut self.0 {
            call.end(out);
        }
    }

    /// The call that a piece seems to go on with.
    fn candidate(&self, piece: &Piece<'_>, place: usize, of: usize) -> Option<usize> {
        let last = |is: &dyn Fn(&Call) -> bool| self.0.iter().rposition(is);
        if piece.index.is_some() {
            return last(&|call| call.index == piece.index);
        }
        match (piece.id, piece.name) {
            ("", "") if of > 1 && of == self.0.len() => Some(place),
            ("", "") => last(&|_| true),
            // A name again and nothing else that tells: goes on only with a call that is not whole.
            ("", name) => {
                let at = last(&|_| true)?;
                let call = &self.0[at];
                (call.name == name && !call.arguments.is_empty() && !call.is_whole()).then_some(at)
            }
            (id, "") => last(&|call| call.id == id)
                .or_else(|| self.0.iter().position(|call| call.id.is_empty()))
                .or_else(|| last(&|_| true)),
            (id, _) => last(&|call| call.id == id),
        }
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
