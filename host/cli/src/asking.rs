//! Questions of tools: answered by `--answer`, else by whoever sits at the terminal.
//!
//! One question at a time, in the order in which they are asked. A question is shown on standard error and its answer is read from standard
//! input, each only where that is a terminal.

mod terminal;

use std::{
    collections::VecDeque,
    io::{self, IsTerminal as _},
    sync::Arc,
    time::Duration,
};

use capsule_api::{Caller, Clock, NoAnswer, Question, Secrets, async_trait, timeout};
use serde_json::Value;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::view::plain;

/// Where lines of a person come from. Cancel-safe: a line is taken whole or not at all.
#[async_trait]
trait Lines: Send {
    /// Forgets what was typed before anything was asked.
    fn forget(&mut self) {}

    /// The next line without its end; `None` where there will be none.
    async fn next(&mut self) -> io::Result<Option<String>>;
}

/// Where questions are shown.
#[derive(Clone)]
pub(crate) enum Shown {
    /// By the view of the run, between its own lines.
    View(mpsc::Sender<Asked>),
    /// On standard error at once.
    Directly,
}

/// Lines for the view to show.
pub(crate) struct Asked {
    /// The lines, as they came from the tool; the last one of a question is where a person types.
    pub(crate) text: String,
    /// Told that they are on the screen; closed where nobody waits for that any more.
    pub(crate) shown: oneshot::Sender<()>,
    /// Resolves when nothing more is typed here, and the cursor is at the beginning of a line. What happens meanwhile is shown then.
    pub(crate) over: oneshot::Receiver<()>,
}

/// Answers of the command line, then those of a person.
pub(crate) struct Asking {
    turn: Mutex<Turn>,
    shown: Shown,
    secrets: Arc<dyn Secrets>,
    clock: Arc<dyn Clock>,
    /// The longest wait for an answer, the questions before it included: a peer that times the call knows of one wait.
    within: Duration,
}

/// What one question at a time has.
struct Turn {
    answers: VecDeque<String>,
    person: Option<Box<dyn Lines>>,
}

/// The caller of a task: `answers` in their order, and after them a person, where standard input and standard error are a terminal.
pub(crate) fn caller(
    answers: &[String],
    shown: Shown,
    secrets: Arc<dyn Secrets>,
    (clock, within): (Arc<dyn Clock>, Duration),
) -> Arc<dyn Caller> {
    let both = io::stdin().is_terminal() && io::stderr().is_terminal();
    let person = both.then(|| Box::new(terminal::Terminal::default()) as Box<dyn Lines>);
    let answers = answers.iter().cloned().collect();
    Arc::new(Asking {
        turn: Mutex::new(Turn { answers, person }),
        shown,
        secrets,
        clock,
        within,
    })
}

#[async_trait]
impl Caller for Asking {
    async fn ask(&self, question: Question) -> Result<Value, NoAnswer> {
        match timeout(&*self.clock, self.within, self.in_turn(&question)).await {
            Ok(answered) => answered,
            Err(_) => {
                self.note("no answer came in time (`lifecycle.input_timeout`) to", &question)
                    .await;
                Err(NoAnswer::TimedOut)
            }
        }
    }
}

impl Asking {
    async fn in_turn(&self, question: &Question) -> Result<Value, NoAnswer> {
        let mut turn = self.turn.lock().await;
        let Turn { answers, person } = &mut *turn;
        if let Some(answer) = answers.pop_front() {
            match acceptable(&answer, question.schema.as_ref()) {
                Ok(answer) => return Ok(answer),
                Err(why) => {
                    self.note(&format!("the answer {answer:?} does not fit ({why})"), question)
                        .await
                }
            }
        } else if let Some(person) = person {
            person.forget();
            return self.ask_person(&mut **person, question).await;
        } else {
            self.note("nobody is there to answer; `--answer TEXT` answers", question)
                .await;
        }
        Err(NoAnswer::NobodyThere)
    }

    async fn ask_person(&self, person: &mut dyn Lines, question: &Question) -> Result<Value, NoAnswer> {
        let schema = question.schema.as_ref();
        let as_json = schema.map_or(String::new(), |schema| format!("\n(that fits {schema})"));
        let mut open = self.put(format!("? {}{as_json}\n> ", question.prompt)).await;
        let answered = self.answer(person, question).await;
        open.line_ended = answered.is_ok();
        answered
    }

    /// A line about a question.
    async fn note(&self, what: &str, question: &Question) {
        self.put(format!("! {what}: {}\n", question.prompt)).await.line_ended = true;
    }

    /// Shows lines; the view goes on when what this returns is dropped.
    async fn put(&self, text: String) -> Open {
        let (end, over) = oneshot::channel();
        let mut open = Open {
            line_ended: false,
            view: None,
        };
        if let Shown::View(view) = &self.shown {
            let (shown, seen) = oneshot::channel();
            let asked = Asked {
                text: text.clone(),
                shown,
                over,
            };
            // A view that has ended shows nothing; then the lines are shown here.
            if view.send(asked).await.is_ok() && seen.await.is_ok() {
                open.view = Some(end);
                return open;
            }
        }
        self.write(&text);
        open
    }

    /// Lines until one is acceptable. Not even a person's end of input is an answer.
    async fn answer(&self, person: &mut dyn Lines, question: &Question) -> Result<Value, NoAnswer> {
        loop {
            let line = person.next().await.map_err(|error| {
                self.write(&format!("no answer can be read: {error}"));
                NoAnswer::NobodyThere
            })?;
            let line = line.ok_or(NoAnswer::NobodyThere)?;
            match acceptable(&line, question.schema.as_ref()) {
                Ok(answer) => return Ok(answer),
                Err(why) => self.write(&format!("that does not fit: {why}\n> ")),
            }
        }
    }

    /// On standard error, without what a terminal would obey and without secrets.
    fn write(&self, text: &str) {
        use io::Write as _;
        let mut err = io::stderr().lock();
        // Without standard error there is nobody to tell; the question then times out.
        let _ = err.write_all(plain(&self.secrets.redact(text)).as_bytes());
        let _ = err.flush();
    }
}

/// Lines on the screen. The view goes on when this is dropped.
struct Open {
    /// Whether the cursor is at the beginning of a line.
    line_ended: bool,
    /// Tells the view by being dropped.
    view: Option<oneshot::Sender<()>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.line_ended {
            use io::Write as _;
            // Without standard error there is no line to end.
            let _ = io::stderr().write_all(b"\n");
        }
    }
}

/// The answer, if it fits. Without a schema it is the text as it stands; a schema that takes text takes the line, any other the line as JSON.
fn acceptable(line: &str, schema: Option<&Value>) -> Result<Value, String> {
    let text = Value::String(line.to_owned());
    let Some(schema) = schema else {
        return Ok(text);
    };
    let validator = jsonschema::validator_for(schema).map_err(|error| format!("its schema is not one: {error}"))?;
    if validator.is_valid(&text) {
        return Ok(text);
    }
    let value: Value = serde_json::from_str(line).map_err(|_| "it is not JSON".to_owned())?;
    match validator.validate(&value) {
        Ok(()) => Ok(value),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
