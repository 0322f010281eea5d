use capsule_transport_kit::{ManualClock, NoSecrets};
use serde_json::json;

use super::*;

/// A person who types these lines and then nothing more, or who never answers.
struct Person(VecDeque<&'static str>, bool);

#[async_trait]
impl Lines for Person {
    async fn next(&mut self) -> io::Result<Option<String>> {
        match self.0.pop_front() {
            None if self.1 => std::future::pending().await,
            line => Ok(line.map(str::to_owned)),
        }
    }
}

const LIMIT: Duration = Duration::from_secs(60);

fn asking(answers: &[&str], person: Option<Person>, clock: ManualClock) -> Asking {
    Asking {
        turn: Mutex::new(Turn {
            answers: answers.iter().map(|answer| (*answer).to_owned()).collect(),
            person: person.map(|person| Box::new(person) as Box<dyn Lines>),
        }),
        shown: Shown::Directly,
        secrets: Arc::new(NoSecrets),
        clock: Arc::new(clock),
        within: LIMIT,
    }
}

fn question(schema: Option<Value>) -> Question {
    Question {
        prompt: "How many?".to_owned(),
        schema,
    }
}

fn types(lines: &[&'static str]) -> Option<Person> {
    Some(Person(lines.iter().copied().collect(), false))
}

#[tokio::test]
async fn answers_of_the_command_line_come_first_and_in_their_order() {
    let asking = asking(&["one", "two"], types(&["three"]), ManualClock::new());
    for expected in ["one", "two", "three"] {
        assert_eq!(asking.ask(question(None)).await, Ok(json!(expected)));
    }
    assert_eq!(
        asking.ask(question(None)).await,
        Err(NoAnswer::NobodyThere),
        "the input ended"
    );
}

#[tokio::test]
async fn without_a_person_the_questions_after_the_last_answer_have_none() {
    let asking = asking(&["one"], None, ManualClock::new());
    assert_eq!(asking.ask(question(None)).await, Ok(json!("one")));
    assert_eq!(asking.ask(question(None)).await, Err(NoAnswer::NobodyThere));
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again() {
    let schema = json!({"type": "integer", "minimum": 1});
    let asking = asking(&[], types(&["many", "0", "3"]), ManualClock::new());
    assert_eq!(asking.ask(question(Some(schema))).await, Ok(json!(3)));
}

#[tokio::test]
async fn an_answer_of_the_command_line_that_does_not_fit_is_none() {
    let schema = json!({"type": "integer"});
    let asking = asking(&["many", "3"], None, ManualClock::new());
    assert_eq!(
        asking.ask(question(Some(schema.clone()))).await,
        Err(NoAnswer::NobodyThere)
    );
    assert_eq!(asking.ask(question(Some(schema))).await, Ok(json!(3)));
}

#[tokio::test]
async fn a_schema_of_text_takes_the_line_as_it_stands() {
    let schema = json!({"type": "string", "minLength": 2});
    let asking = asking(&[], types(&["7", "77"]), ManualClock::new());
    assert_eq!(asking.ask(question(Some(schema))).await, Ok(json!("77")));
}

#[tokio::test]
async fn a_question_that_nobody_answers_times_out_and_so_does_one_behind_it() {
    let clock = ManualClock::new();
    let asking = asking(&[], Some(Person(VecDeque::new(), true)), clock.clone());
    let time = async {
        clock.sleepers(2).await;
        clock.advance(LIMIT);
    };
    let (first, second, ()) = tokio::join!(asking.ask(question(None)), asking.ask(question(None)), time);
    assert_eq!((first, second), (Err(NoAnswer::TimedOut), Err(NoAnswer::TimedOut)));
}

#[tokio::test]
async fn a_question_that_is_withdrawn_lets_the_next_one_be_asked_and_the_view_go_on() {
    let (view, mut asked) = mpsc::channel(1);
    let mut asking = asking(&[], Some(Person(VecDeque::new(), true)), ManualClock::new());
    asking.shown = Shown::View(view);
    for _ in 0..2 {
        let mut seen = None;
        let asks = asking.ask(question(None));
        let sees = async {
            let Asked { text, shown, over } = asked.recv().await.unwrap();
            assert_eq!(text, "? How many?\n> ");
            shown.send(()).unwrap();
            seen = Some(over);
        };
        tokio::select! {
            _ = asks => panic!("nobody answers"),
            () = sees => {}
        }
        assert!(seen.unwrap().await.is_err(), "the question is over");
    }
}
