//! Failures of the provider, as codex passes them on.

use capsule_api::{ErrorKind, Event, Outcome, Retry};
use capsule_fakes::{Answer, Close, Fault, Position, Reply, Script, Step};

use crate::{
    codex_tools::{scene, warnings},
    support::{Scene, Told, codex},
};

async fn failing(step: impl Into<Step>) -> Option<(Scene, Told)> {
    let cli = codex()?;
    let scene = scene(&cli, Script::new().then(step).repeat_last()).await;
    let told = scene.ask("Hello?").await;
    Some((scene, told))
}

fn row(told: &Told) -> (&'static str, ErrorKind, Retry) {
    let error = told.error();
    (error.code, error.kind, error.retry)
}

#[tokio::test]
async fn codex_a_refused_key_ends_the_run_at_the_first_sign() {
    let Some((scene, told)) = failing(Answer::error(401, "invalid key")).await else {
        return;
    };
    assert_eq!(row(&told), ("codex-auth", ErrorKind::Auth, Retry::Never));
    assert_eq!(scene.provider.requests().len(), 1, "no further try with the same key");
}

#[tokio::test]
async fn codex_a_forbidden_model_is_a_refused_credential() {
    let Some((_, told)) = failing(Answer::error(403, "no permission")).await else {
        return;
    };
    assert_eq!(row(&told), ("codex-auth", ErrorKind::Auth, Retry::Never));
}

#[tokio::test]
async fn p_01_codex_failing_providers_are_errors_after_the_clis_own_tries() {
    for (status, code, kind, tries) in [
        (429, "codex-rate-limited", ErrorKind::RateLimited, 0),
        (500, "codex-overloaded", ErrorKind::Overloaded, 3),
        (503, "codex-overloaded", ErrorKind::Overloaded, 3),
        (529, "codex-overloaded", ErrorKind::Overloaded, 3),
    ] {
        let Some((scene, told)) = failing(Answer::error(status, "not now")).await else {
            return;
        };
        assert_eq!(row(&told), (code, kind, Retry::Later), "{status}");
        let retrying = told
            .log
            .events()
            .into_iter()
            .filter(|event| matches!(event, Event::Retrying { cause, .. } if *cause == kind));
        assert_eq!(retrying.count(), tries, "{status}: its tries are told");
        assert_eq!(scene.provider.requests().len(), tries + 1, "{status}");
    }
}

#[tokio::test]
async fn p_01_codex_a_refused_request_is_no_answer() {
    let Some((_, told)) = failing(Answer::error(400, "bad request on purpose")).await else {
        return;
    };
    assert_eq!(row(&told), ("codex-bad-request", ErrorKind::BadRequest, Retry::Never));
    assert_eq!(told.error().message, "bad request on purpose");
    assert_eq!(told.log.fold().texts(), Vec::<&str>::new());
}

#[tokio::test]
async fn codex_an_unknown_model_is_told_apart() {
    let Some((_, told)) = failing(Answer::error(404, "model: no-such-model")).await else {
        return;
    };
    assert_eq!(row(&told), ("codex-model", ErrorKind::BadRequest, Retry::Never));
}

#[tokio::test]
async fn codex_a_dropped_connection_is_the_networks() {
    let Some((_, told)) = failing(Fault::CloseBeforeHeaders(Close::Reset)).await else {
        return;
    };
    assert_eq!(row(&told), ("codex-network", ErrorKind::Network, Retry::Later));
}

#[tokio::test]
async fn codex_a_stream_that_is_cut_each_time_is_the_networks() {
    let cut = Reply::text(["this answer ", "is going to be cut"]).cut(Position::Content, Close::Reset);
    let Some((_, told)) = failing(cut).await else { return };
    assert_eq!(row(&told), ("codex-network", ErrorKind::Network, Retry::Later));
    assert_eq!(
        told.log.fold().texts(),
        ["this answer is going to be cut"],
        "the last try's part stays"
    );
}

#[tokio::test]
async fn codex_a_stream_that_is_cut_once_is_taken_back_and_asked_again() {
    let Some(cli) = codex() else { return };
    for position in [Position::Content, Position::Events(5)] {
        let cut = Reply::text(["this answer ", "is going to be cut"]).cut(position, Close::Reset);
        let scene = scene(&cli, Script::new().then(cut).then(Reply::text("Whole."))).await;
        let told = scene.ask("Hello?").await;
        assert_eq!(
            (told.answer(), told.log.fold().texts()),
            ("Whole.", vec!["Whole."]),
            "{:#?}",
            told.log.events()
        );
    }
}

#[tokio::test]
async fn p_02_codex_a_provider_that_comes_back_is_a_completed_run() {
    let Some(cli) = codex() else { return };
    let script = Script::new()
        .then(Answer::error(529, "Overloaded"))
        .then(Reply::text("Back again."));
    let scene = scene(&cli, script).await;
    let told = scene.ask("Hello?").await;
    assert_eq!(told.answer(), "Back again.");
    let events = told.log.events();
    let started = events
        .iter()
        .filter(|event| matches!(event, Event::RequestStarted { .. }));
    assert_eq!(started.collect::<Vec<_>>(), [&Event::RequestStarted { n: 1 }]);
    let retrying = events
        .iter()
        .any(|event| matches!(event, Event::Retrying { attempt: 1, .. }));
    assert!(retrying, "{events:#?}");
}

#[tokio::test]
async fn codex_an_answer_that_is_cut_by_its_limit_is_truncated() {
    let Some(cli) = codex() else { return };
    let scene = scene(&cli, Script::new().then(Reply::text("half an ans").stop("max_tokens"))).await;
    let told = scene.ask("Write.").await;
    let partial = "half an ans".to_owned();
    assert_eq!(told.outcome.as_ref().unwrap(), &Outcome::Truncated { partial });
}

#[tokio::test]
async fn codex_a_filtered_answer_is_a_refusal_and_is_not_tried_again() {
    let Some(cli) = codex() else { return };
    let scene = scene(&cli, Script::new().then(Reply::text("I can").stop("content_filter"))).await;
    let told = scene.ask("Do harm.").await;
    let text = "I can".to_owned();
    assert_eq!(told.outcome.as_ref().unwrap(), &Outcome::Refused { text });
    assert_eq!(scene.provider.requests().len(), 1);
}

#[tokio::test]
async fn codex_an_answer_without_text_is_told() {
    let Some(cli) = codex() else { return };
    // The CLI says nothing of a refusal that the model writes instead of a text.
    let scene = scene(&cli, Script::new().then(Reply::text("I can't.").stop("refusal"))).await;
    let told = scene.ask("Do harm.").await;
    assert_eq!(told.answer(), "");
    let events = told.log.events();
    let codes: Vec<_> = warnings(&events).iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, ["codex-empty-answer"]);
}
