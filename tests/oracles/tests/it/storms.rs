//! Cancels at random moments, many of them. Whatever the moment: the tree is gone and reaped within five seconds, nothing is left, and the
//! next run works.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use capsule_api::{ConversationSpec, Input, Outcome};
use capsule_fakes::{Reply, Script};
use futures_util::future::join_all;
use serde_json::json;

use crate::{
    cli::{Cli, of_each_cli},
    misbehaviour::without_tools,
    support::{Scene, Under, alone, names_in},
    watch::{descriptors, processes, reapers},
};

of_each_cli!(
    p_11_a_hundred_cancels_of_the_real_cli_at_random_moments_leave_nothing,
    p_11_a_hundred_cancels_of_a_misbehaving_cli_at_random_moments_leave_nothing,
);

/// What a cancelled run may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);
const CANCELS: usize = 100;

/// A small generator, so that a failing run can be repeated: `CAPSULE_TEST_SEED`.
struct Random(Mutex<u64>);

impl Random {
    fn new() -> (Self, u64) {
        let seed = std::env::var("CAPSULE_TEST_SEED").ok();
        let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
        (Self(Mutex::new(seed)), seed)
    }

    fn below(&self, end: u64) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % end
    }
}

/// One run that is cancelled after `moment`; nothing of it may be left.
async fn cancelled(scene: &Scene, spec: ConversationSpec, prompt: &str, moment: Duration) {
    let what = format!("{prompt:?}, cancelled after {moment:?}");
    let mut talk = scene.open(spec).await;
    let (under, io) = Under::new();
    let stop = async {
        // The moment is the stimulus here, not a wait for something.
        tokio::time::sleep(moment).await;
        under.cancel();
        Instant::now()
    };
    let (outcome, since) = tokio::join!(talk.0.turn(Input::text(prompt), io), stop);
    let took = since.elapsed();
    // A run that is over before its moment has its own outcome.
    let early = !matches!(outcome, Ok(Outcome::Cancelled));
    assert!(early || took < GONE_WITHIN, "{what}: gone after {took:?}");
    assert!(outcome.is_ok(), "{what}: {outcome:?}");
    assert_eq!((under.tools.live(), processes(scene)), (0, vec![]), "{what}");
    talk.close().await;
    assert_eq!(names_in(&scene.run_dir()), Vec::<String>::new(), "{what}");
}

/// What this process has that could leak: descriptors, threads that wait for CLIs, tasks.
fn holdings() -> (usize, usize, usize) {
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    (descriptors(), reapers(), tasks)
}

/// `CANCELS` of them, in lanes with a scene each, then one run per lane that is let to its end. The first scene is before that, for what
/// stays: caches, the runtime's threads.
async fn storm(mut scenes: Vec<Scene>, one: impl AsyncFn(&Scene, usize), works: impl AsyncFn(&Scene)) {
    let first = scenes.pop().unwrap();
    one(&first, 0).await;
    first.provider.shutdown().await;
    let listening = scenes.len();
    let (before, ..) = holdings();
    let runs = scenes.iter().enumerate().map(async |(lane, scene)| {
        for n in (lane..CANCELS).step_by(listening) {
            one(scene, n).await;
        }
        works(scene).await;
    });
    join_all(runs).await;
    for scene in scenes {
        scene.provider.shutdown().await;
    }
    let after = holdings();
    let quiet = after.0 + listening <= before && (after.1, after.2) == (0, 0);
    assert!(
        quiet,
        "{before} descriptors before, {listening} of them listening; descriptors, reapers, tasks after: {after:?}"
    );
}

async fn p_11_a_hundred_cancels_of_the_real_cli_at_random_moments_leave_nothing(cli: &Cli) {
    const LANES: usize = 2;
    let test = "p_11_a_hundred_cancels_of_the_real_cli_at_random_moments_leave_nothing";
    if cli.path().is_none() || !alone(&format!("storms::{}::{test}", cli.name)) {
        return;
    }
    let (random, seed) = Random::new();
    println!("seed {seed}");
    let script = || {
        Script::new()
            .then(Reply::text(["a ", "b ", "c"]).call("call-1", "echo", json!({"text": "a"})))
            .then(Reply::text("d").call("call-2", "sleep", json!({})))
            .forever()
    };
    let mut scenes = Vec::new();
    for _ in 0..=LANES {
        scenes.extend(cli.scene(script()).await);
    }
    let one = async |scene: &Scene, _| {
        let moment = Duration::from_millis(random.below(900));
        cancelled(scene, scene.spec(), "Go.", moment).await;
    };
    // The script has no end: a run that works reaches the tool that sleeps.
    let works = async |scene: &Scene| {
        let mut talk = scene.open(scene.spec()).await;
        talk.cancelled_in_calls("Go.", 1).await;
        talk.close().await;
    };
    storm(scenes, one, works).await;
}

async fn p_11_a_hundred_cancels_of_a_misbehaving_cli_at_random_moments_leave_nothing(cli: &Cli) {
    const LANES: usize = 10;
    const WAYS: [&str; 8] = [
        "answer",
        "stay",
        "silence",
        "odd output",
        "leave a child",
        "ignore signals",
        "read to the end",
        "silence",
    ];
    let test = "p_11_a_hundred_cancels_of_a_misbehaving_cli_at_random_moments_leave_nothing";
    if !alone(&format!("storms::{}::{test}", cli.name)) {
        return;
    }
    let (random, seed) = Random::new();
    println!("seed {seed}");
    let mut scenes = Vec::new();
    for _ in 0..=LANES {
        scenes.push(cli.faked(json!({})).await);
    }
    let one = async |scene: &Scene, n: usize| {
        let moment = Duration::from_millis(random.below(200));
        cancelled(scene, without_tools(scene), WAYS[n % WAYS.len()], moment).await;
    };
    let works = async |scene: &Scene| {
        assert_eq!(scene.ask_as(without_tools(scene), "answer").await.answer(), "Fine.");
    };
    storm(scenes, one, works).await;
}
