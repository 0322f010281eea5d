//! A tool's own part of the grants, what it is configured with, and the report on both.

use std::{sync::Arc, time::Duration};

use capsule_api::ToolStatus;
use capsule_tools::{ClockGrant, Mode, NarrowedLimits, Narrowing, Preopen, Profile, RandomGrant};

use crate::{
    attacks_network::Server,
    guests,
    guests_net::Fetch,
    support::{Capsule, said},
};

fn preopen(host: std::path::PathBuf, guest: &str, mode: Mode) -> Preopen {
    let guest = guest.to_owned();
    Preopen { host, guest, mode }
}

#[tokio::test]
async fn a_tool_with_a_block_of_its_own_has_what_it_names_and_the_others_have_all() {
    let server = Server::with_body("hello").await;
    let fetch = Fetch::http(&server.authority()).build();
    let mut capsule = Capsule::with("all", &fetch)
        .tool("some", &fetch)
        .tool("none", &fetch)
        .tool("env", guests::environment().build_with_data("nothing there"));
    capsule.options.env = Arc::new(|_| Some("Ulm".to_owned()));
    capsule.grants.network = vec![server.origin(), "https://api.test".into()];
    capsule.grants.env = vec!["CITY".into()];
    capsule.sources[1].capabilities = Some(Narrowing {
        network: vec![server.origin()],
        ..Narrowing::default()
    });
    capsule.sources[2].capabilities = Some(Narrowing::default());
    let turn = capsule.turn();
    for name in ["all", "some"] {
        assert_eq!(turn.ask(name).await, said(ToolStatus::Passed, "hello"));
    }
    assert_eq!(turn.ask("none").await.0, ToolStatus::Denied);
    assert_eq!(turn.ask("env").await, said(ToolStatus::Passed, "Ulm"));
    capsule.sources[3].capabilities = Some(Narrowing::default());
    assert_eq!(capsule.turn().ask("env").await.0, ToolStatus::Failed);
}

/// Nothing goes along with a call from one tool to another, neither more nor less.
#[tokio::test]
async fn a_nested_call_has_the_grants_of_the_tool_that_is_called() {
    let environment = || guests::environment().build_with_data("nothing there");
    let mut capsule = Capsule::with("rich", guests::delegates().build_with_data("env-none"))
        .tool("poor", guests::delegates().build_with_data("env-all"))
        .tool("env-none", environment())
        .tool("env-all", environment());
    capsule.options.env = Arc::new(|_| Some("Ulm".to_owned()));
    capsule.grants.env = vec!["CITY".into()];
    for poor in [1, 2] {
        capsule.sources[poor].capabilities = Some(Narrowing::default());
    }
    let turn = capsule.turn();
    let text = "tool 'rich' failed: tool 'env-none' failed: nothing there";
    assert_eq!(turn.ask("rich").await, said(ToolStatus::Failed, text));
    assert_eq!(turn.ask("poor").await, said(ToolStatus::Passed, "Ulm"));
}

#[test]
fn a_block_that_asks_for_more_than_the_capsule_has_is_a_load_error_that_names_both() {
    let mut capsule = Capsule::with("tool", guests::echo().build());
    let (data, inside) = (capsule.directory("data"), capsule.directory("data/inside"));
    let other = capsule.directory("other");
    capsule.grants.filesystem = vec![preopen(data.clone(), "/data", Mode::Ro)];
    capsule.grants.network = vec!["*.api.test".into()];
    capsule.options.env = Arc::new(|_| Some(String::new()));
    capsule.grants.env = vec!["TZ".into()];
    capsule.sources[0].capabilities = Some(Narrowing {
        filesystem: vec![
            preopen(inside, "/in", Mode::Ro),
            preopen(data.clone(), "/data", Mode::Rw),
            preopen(other.clone(), "/other", Mode::Ro),
        ],
        network: vec!["eu.api.test".into(), "api.test".into()],
        env: vec!["TZ".into(), "HOME".into()],
        secrets: vec!["TOKEN".into()],
        limits: NarrowedLimits {
            memory: Some(1 << 20),
            deadline: Some(Duration::from_secs(61)),
            ..NarrowedLimits::default()
        },
    });
    let folder = capsule.dir.path().canonicalize().unwrap();
    let wrong = [
        "`limits.deadline` has `61s`, which is more than the capsule's (1m)".to_owned(),
        format!(
            "`filesystem` has `{0}/data rw`, which is more than the capsule's (`{0}/data ro`)",
            folder.display()
        ),
        format!(
            "`filesystem` has `{0}/other ro`, which is more than the capsule's (`{0}/data ro`)",
            folder.display()
        ),
        "`network.allow` has `https://api.test`, which is more than the capsule's (`https://*.api.test`)".to_owned(),
        "`env.allow` has `HOME`, which is more than the capsule's (`TZ`)".to_owned(),
        "`secrets` has `TOKEN`, which is more than the capsule's (nothing)".to_owned(),
    ];
    let errors = capsule.load().unwrap_err();
    let told: Vec<_> = errors.iter().map(|error| (error.code, error.message.clone())).collect();
    let who = format!("tool `tool` ({})", capsule.path("tool.wasm").display());
    assert_eq!(told, wrong.map(|what| ("tool-grant-wider", format!("{who}: {what}"))));
}

#[tokio::test]
async fn a_limit_of_a_tool_holds_for_its_calls_alone() {
    let mut capsule = Capsule::with("small", guests::balloon().build()).tool("large", guests::balloon().build());
    capsule.grants.limits.memory = 16 << 20;
    capsule.sources[0].capabilities = Some(Narrowing {
        limits: NarrowedLimits {
            memory: Some(1 << 20),
            ..NarrowedLimits::default()
        },
        ..Narrowing::default()
    });
    let turn = capsule.turn();
    for (name, limit) in [("small", "1MiB"), ("large", "16MiB")] {
        let text = format!("tool '{name}' was stopped: it ran into the memory limit of {limit} (`limits.memory`)");
        assert_eq!(turn.ask(name).await, said(ToolStatus::Trapped, &text));
    }
}

#[tokio::test]
async fn a_tool_reads_its_own_configuration_and_no_other() {
    let mut capsule = Capsule::with("one", guests::configured().build_with_data("city"))
        .tool("other", guests::configured().build_with_data("city"));
    capsule.sources[0].config.insert("city".into(), "Ulm".into());
    let turn = capsule.turn();
    assert_eq!(turn.ask("one").await, said(ToolStatus::Passed, "Ulm"));
    assert_eq!(
        turn.ask("other").await,
        said(ToolStatus::Failed, "tool 'other' failed: city")
    );
}

#[tokio::test]
async fn a_fixed_clock_shows_its_time_in_each_call() {
    let year_2026 = Duration::from_secs(1_767_225_600);
    let told = guests::guest(
        "(call $now (i32.const 512))
         (call $ret (i64.ne (i64.load (i32.const 512)) (i64.const 1767225600)) (i32.const 64) (global.get $data))",
    )
    .imports(
        "wasi:clocks/wall-clock@0.2.3",
        r#"(import "wasi:clocks/wall-clock@0.2.3" "now" (func $now (param i32)))"#,
    );
    let mut capsule = Capsule::with("now", told.build());
    assert_eq!(capsule.turn().ask("now").await.0, ToolStatus::Failed);
    capsule.grants.clock = ClockGrant::Fixed(year_2026);
    let turn = capsule.turn();
    for _ in 0..2 {
        assert_eq!(turn.ask("now").await.0, ToolStatus::Passed);
    }
}

#[tokio::test]
async fn seeded_random_numbers_are_the_same_in_each_call_and_others_are_not() {
    let mut capsule = Capsule::with("draws", guests::draws().build());
    let turn = capsule.turn();
    assert_ne!(turn.ask("draws").await, turn.ask("draws").await);
    let mut drawn = Vec::new();
    for seed in [7, 7, 8] {
        capsule.grants.random = RandomGrant::Seeded(seed);
        let turn = capsule.turn();
        let first = turn.ask("draws").await;
        assert_eq!(turn.ask("draws").await, first);
        drawn.push(first);
    }
    assert_eq!(drawn[0], drawn[1]);
    assert_ne!(drawn[0], drawn[2]);
}

#[test]
fn the_report_holds_what_is_declared_against_what_a_component_can_use() {
    let mut capsule = Capsule::with("pure", guests::echo().build())
        .tool("fetch", guests::requests().build())
        .tool("env", guests::environment().build());
    capsule.options.env = Arc::new(|_| None);
    capsule.grants.env = vec!["CITY".into()];
    let toolbox = capsule.load().unwrap();
    let told: Vec<_> = toolbox
        .reports()
        .iter()
        .map(|tool| {
            (
                tool.name.as_str(),
                tool.profile,
                tool.may.as_slice(),
                tool.notes.as_slice(),
            )
        })
        .collect();
    let unused = "it is granted environment variables and cannot use them: it does not import wasi:cli/environment";
    let see = ["see the environment variables CITY (not set: CITY)".to_owned()];
    let in_vain = [
        "it imports wasi:http/outgoing-handler, and no grant gives it the network".to_owned(),
        unused.to_owned(),
    ];
    assert_eq!(
        told,
        [
            ("pure", Profile::Pure, [].as_slice(), [unused.to_owned()].as_slice()),
            ("fetch", Profile::Wasi, [].as_slice(), in_vain.as_slice()),
            ("env", Profile::Wasi, see.as_slice(), [].as_slice()),
        ]
    );
}
