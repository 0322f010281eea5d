//! Failures of the provider, as the CLI passes them on.

use capsule_api::{ErrorKind, Event, Outcome, Retry};
use capsule_fakes::{Answer, Close, Fault, Position, Reply, Script, Step};

use crate::{
    cli::{CLAUDE, CODEX, Cli, of_each_cli},
    support::{Scene, Told},
};

of_each_cli!(
    a_refused_key_ends_the_run_at_the_first_sign,
    a_forbidden_model_is_a_refused_credential,
    an_unknown_model_is_told_apart,
    p_01_a_refused_request_is_no_answer_whatever_the_cli_calls_it,
    p_01_failing_providers_are_errors_after_the_clis_own_tries,
    p_02_a_provider_that_comes_back_is_a_completed_run,
    a_dropped_connection_is_the_networks,
    a_stream_that_is_cut_each_time_is_the_networks,
    a_stream_that_is_cut_once_is_taken_back_and_asked_again,
    an_answer_that_is_cut_by_its_limit_is_truncated,
);

/// A run whose every request gets this; `None` where the CLI is not installed.
async fn failing(cli: &Cli, step: impl Into<Step>) -> Option<(Scene, Told)> {
    let script = Script::new().then(step).repeat_last().allow_non_streaming();
    let scene = cli.scene(script).await?;
    let told = scene.ask("Hello?").await;
    Some((scene, told))
}

fn assert_row(told: &Told, code: &str, kind: ErrorKind, retry: Retry) {
    let error = told.error();
    assert_eq!((error.code, error.kind, error.retry), (code, kind, retry));
}

async fn a_refused_key_ends_the_run_at_the_first_sign(cli: &Cli) {
    let Some((scene, told)) = failing(cli, Answer::error(401, "invalid key")).await else {
        return;
    };
    assert_row(&told, &cli.code("auth"), ErrorKind::Auth, Retry::Never);
    assert_eq!(scene.provider.requests().len(), 1, "no further try with the same key");
}

async fn a_forbidden_model_is_a_refused_credential(cli: &Cli) {
    let Some((_, told)) = failing(cli, Answer::error(403, "no permission")).await else {
        return;
    };
    assert_row(&told, &cli.code("auth"), ErrorKind::Auth, Retry::Never);
}

async fn an_unknown_model_is_told_apart(cli: &Cli) {
    let Some((_, told)) = failing(cli, Answer::error(404, "model: no-such-model")).await else {
        return;
    };
    assert_row(&told, &cli.code("model"), ErrorKind::BadRequest, Retry::Never);
}

async fn p_01_a_refused_request_is_no_answer_whatever_the_cli_calls_it(cli: &Cli) {
    let Some((_, told)) = failing(cli, Answer::error(400, "bad request on purpose")).await else {
        return;
    };
    assert_row(&told, &cli.code("bad-request"), ErrorKind::BadRequest, Retry::Never);
    let message = &told.error().message;
    assert!(message.contains("bad request on purpose"), "{message}");
    assert_eq!(told.log.fold().texts(), Vec::<&str>::new());
}

async fn p_01_failing_providers_are_errors_after_the_clis_own_tries(cli: &Cli) {
    let rows = [
        (429, "rate-limited", ErrorKind::RateLimited),
        (500, "overloaded", ErrorKind::Overloaded),
        (503, "overloaded", ErrorKind::Overloaded),
        (529, "overloaded", ErrorKind::Overloaded),
    ];
    let runs = rows.map(|(status, code, kind)| async move {
        let Some((scene, told)) = failing(cli, Answer::error(status, "not now")).await else {
            return;
        };
        assert_row(&told, &cli.code(code), kind, Retry::Later);
        let retrying = told.log.events().into_iter();
        let retrying = retrying.filter(|event| matches!(event, Event::Retrying { cause, .. } if *cause == kind));
        // Without a `retry-after`, codex gives up at once.
        let told_of = if status == 429 && cli.name == CODEX.name { 0 } else { 1 };
        let tries = scene.provider.requests().len();
        assert_eq!(retrying.count(), tries - 1, "{status}: its tries are told");
        assert!((told_of..=3).contains(&(tries - 1)), "{status}: {tries} tries");
    });
    futures_util::future::join_all(runs).await;
}

async fn p_02_a_provider_that_comes_back_is_a_completed_run(cli: &Cli) {
    let script = Script::new()
        .then(Answer::error(529, "Overloaded"))
        .then(Reply::text("Back again."));
    let Some(scene) = cli.scene(script).await else { return };
    let told = scene.ask("Hello?").await;
    assert_eq!(told.answer(), "Back again.");
    let events = told.log.events();
    let started = events
        .iter()
        .filter(|event| matches!(event, Event::RequestStarted { .. }));
    assert_eq!(started.collect::<Vec<_>>(), [&Event::RequestStarted { n: 1 }]);
    let retrying = |event: &Event| {
        matches!(
            event,
            Event::Retrying {
                attempt: 1,
                cause: ErrorKind::Overloaded,
                ..
            }
        )
    };
    assert!(events.iter().any(retrying), "{events:#?}");
}

async fn a_dropped_connection_is_the_networks(cli: &Cli) {
    let Some((_, told)) = failing(cli, Fault::CloseBeforeHeaders(Close::Reset)).await else {
        return;
    };
    assert_row(&told, &cli.code("network"), ErrorKind::Network, Retry::Later);
}

async fn a_stream_that_is_cut_each_time_is_the_networks(cli: &Cli) {
    let cut = Reply::text(["this answer ", "is going to be cut"]).cut(cli.first_piece(), Close::Reset);
    let Some((_, told)) = failing(cli, cut).await else {
        return;
    };
    assert_row(&told, &cli.code("network"), ErrorKind::Network, Retry::Later);
}

async fn a_stream_that_is_cut_once_is_taken_back_and_asked_again(cli: &Cli) {
    for position in [Position::Events(3), cli.first_piece(), Position::Content] {
        let cut = Reply::text(["this answer ", "is going to be cut"]).cut(position, Close::Reset);
        let script = Script::new().then(cut).then(Reply::text("Whole."));
        let Some(scene) = cli.scene(script.allow_non_streaming()).await else {
            return;
        };
        let told = scene.ask("Hello?").await;
        assert_eq!(
            (told.answer(), told.log.fold().texts()),
            ("Whole.", vec!["Whole."]),
            "cut at {position:?}: {:#?}",
            told.log.events()
        );
    }
}

async fn an_answer_that_is_cut_by_its_limit_is_truncated(cli: &Cli) {
    let script = Script::new().then(Reply::text("half an ans").stop("max_tokens"));
    let Some(scene) = cli.scene(script).await else { return };
    let mut spec = scene.spec();
    spec.limits.output_tokens = 4321;
    let told = scene.ask_as(spec, "Write.").await;
    let partial = "half an ans".to_owned();
    assert_eq!(told.outcome.as_ref().unwrap(), &Outcome::Truncated { partial });
    if cli.name == CLAUDE.name {
        // The other has no way to pass the limit on.
        assert_eq!(scene.request(0)["max_tokens"], 4321);
    }
}

#[tokio::test]
async fn claude_an_account_without_credit_is_told_apart() {
    let answer = Answer::error(400, "Your credit balance is too low to access the Anthropic API.");
    let Some((_, told)) = failing(&CLAUDE, answer).await else {
        return;
    };
    assert_row(&told, "claude-quota", ErrorKind::Quota, Retry::Never);
}

#[tokio::test]
async fn claude_a_prompt_that_is_too_long_is_told_apart() {
    let answer = Answer::error(400, "prompt is too long: 250000 tokens > 200000 maximum");
    let Some((_, told)) = failing(&CLAUDE, answer).await else {
        return;
    };
    assert_row(&told, "claude-context", ErrorKind::ContextOverflow, Retry::Never);
}

#[tokio::test]
async fn claude_a_refusal_is_an_outcome_of_its_own() {
    let script = Script::new().then(Reply::text("I can't.").stop("refusal"));
    let Some(scene) = CLAUDE.scene(script).await else {
        return;
    };
    let told = scene.ask("Do harm.").await;
    let text = "I can't.".to_owned();
    assert_eq!(told.outcome.as_ref().unwrap(), &Outcome::Refused { text });
}

#[tokio::test]
async fn codex_the_part_of_the_last_try_stays() {
    let cut = Reply::text(["this answer ", "is going to be cut"]).cut(Position::Content, Close::Reset);
    let Some((_, told)) = failing(&CODEX, cut).await else {
        return;
    };
    assert_eq!(told.error().code, "codex-network");
    assert_eq!(told.log.fold().texts(), ["this answer is going to be cut"]);
}

#[tokio::test]
async fn codex_a_filtered_answer_is_a_refusal_and_is_not_tried_again() {
    let script = Script::new().then(Reply::text("I can").stop("content_filter"));
    let Some(scene) = CODEX.scene(script).await else { return };
    let told = scene.ask("Do harm.").await;
    let text = "I can".to_owned();
    assert_eq!(told.outcome.as_ref().unwrap(), &Outcome::Refused { text });
    assert_eq!(scene.provider.requests().len(), 1);
}

#[tokio::test]
async fn codex_an_answer_without_text_is_told() {
    // The CLI says nothing of a refusal that the model writes instead of a text.
    let script = Script::new().then(Reply::text("I can't.").stop("refusal"));
    let Some(scene) = CODEX.scene(script).await else { return };
    let told = scene.ask("Do harm.").await;
    assert_eq!((told.answer(), told.warnings()), ("", vec!["codex-empty-answer"]));
}
