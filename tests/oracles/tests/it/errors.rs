//! Failures of the provider, as the CLI passes them on.

use capsule_api::{ErrorKind, Event, Retry};
use capsule_fakes::{Answer, Close, Fault, Position, Reply, Script, Step};

use crate::support::{Scene, Told, claude};

async fn failing(step: impl Into<Step>) -> Option<(Scene, Told)> {
    let cli = claude()?;
    let script = Script::new().then(step).repeat_last().allow_non_streaming();
    let scene = Scene::with(&cli, script).await;
    let told = scene.ask("Hello?").await;
    Some((scene, told))
}

fn row(told: &Told) -> (&'static str, ErrorKind, Retry) {
    let error = told.error();
    (error.code, error.kind, error.retry)
}

#[tokio::test]
async fn a_refused_key_ends_the_run_at_the_first_sign() {
    let Some((scene, told)) = failing(Answer::error(401, "invalid x-api-key")).await else {
        return;
    };
    assert_eq!(row(&told), ("claude-auth", ErrorKind::Auth, Retry::Never));
    assert_eq!(scene.provider.requests().len(), 1, "no further try with the same key");
}

#[tokio::test]
async fn a_forbidden_model_is_a_refused_credential() {
    let Some((_, told)) = failing(Answer::error(403, "no permission")).await else {
        return;
    };
    assert_eq!(row(&told), ("claude-auth", ErrorKind::Auth, Retry::Never));
}

#[tokio::test]
async fn p_01_an_overloaded_provider_is_an_error_after_the_clis_own_tries() {
    let Some((_, told)) = failing(Answer::error(529, "Overloaded")).await else {
        return;
    };
    assert_eq!(row(&told), ("claude-overloaded", ErrorKind::Overloaded, Retry::Later));
    assert!(
        told.error().context.contains(&("status", "529".into())),
        "{:?}",
        told.error().context
    );
    let retrying = told.log.events().into_iter().filter(|event| {
        matches!(
            event,
            Event::Retrying {
                cause: ErrorKind::Overloaded,
                ..
            }
        )
    });
    assert!(retrying.count() > 0, "its tries are told");
}

#[tokio::test]
async fn p_01_a_refused_request_is_no_answer_although_the_cli_says_success() {
    let Some((_, told)) = failing(Answer::error(400, "bad request on purpose")).await else {
        return;
    };
    assert_eq!(row(&told), ("claude-bad-request", ErrorKind::BadRequest, Retry::Never));
    assert_eq!(told.log.fold().texts(), Vec::<&str>::new());
}

#[tokio::test]
async fn an_account_without_credit_is_told_apart() {
    let answer = Answer::error(400, "Your credit balance is too low to access the Anthropic API.");
    let Some((_, told)) = failing(answer).await else { return };
    assert_eq!(row(&told), ("claude-quota", ErrorKind::Quota, Retry::Never));
}

#[tokio::test]
async fn an_unknown_model_is_told_apart() {
    let Some((_, told)) = failing(Answer::error(404, "model: no-such-model")).await else {
        return;
    };
    assert_eq!(row(&told), ("claude-model", ErrorKind::BadRequest, Retry::Never));
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_told_apart() {
    let answer = Answer::error(400, "prompt is too long: 250000 tokens > 200000 maximum");
    let Some((_, told)) = failing(answer).await else { return };
    assert_eq!(row(&told), ("claude-context", ErrorKind::ContextOverflow, Retry::Never));
}

#[tokio::test]
async fn a_dropped_connection_is_the_networks() {
    let Some((_, told)) = failing(Fault::CloseBeforeHeaders(Close::Reset)).await else {
        return;
    };
    assert_eq!(row(&told), ("claude-network", ErrorKind::Network, Retry::Later));
}

#[tokio::test]
async fn a_stream_that_is_cut_each_time_is_the_networks() {
    let cut = Reply::text(["this answer ", "is going to be cut"]).cut(Position::Events(4), Close::Reset);
    let Some((_, told)) = failing(cut).await else { return };
    assert_eq!(row(&told), ("claude-network", ErrorKind::Network, Retry::Later));
}

#[tokio::test]
async fn a_stream_that_is_cut_once_is_taken_back_and_asked_again() {
    let Some(cli) = claude() else { return };
    let cut = Reply::text(["this answer ", "is going to be cut"]).cut(Position::Events(3), Close::Reset);
    let script = Script::new()
        .then(cut)
        .then(Reply::text("Whole."))
        .allow_non_streaming();
    let scene = Scene::with(&cli, script).await;
    let told = scene.ask("Hello?").await;
    assert_eq!(
        (told.answer(), told.log.fold().texts()),
        ("Whole.", vec!["Whole."]),
        "{:#?}",
        told.log.events()
    );
}

#[tokio::test]
async fn p_02_a_provider_that_comes_back_is_a_completed_run() {
    let Some(cli) = claude() else { return };
    let script = Script::new()
        .then(Answer::error(529, "Overloaded"))
        .then(Reply::text("Back again."));
    let scene = Scene::with(&cli, script).await;
    let told = scene.ask("Hello?").await;
    assert_eq!(told.answer(), "Back again.");
    let started: Vec<_> = told
        .log
        .events()
        .into_iter()
        .filter(|event| matches!(event, Event::RequestStarted { .. }))
        .collect();
    assert_eq!(started, [Event::RequestStarted { n: 1 }]);
}
