//! Results that are large.

use std::time::Duration;

use capsule_api::{ContextWindow, ConversationSpec, RunEvent, ToolStatus};
use capsule_fakes::{Reply, Script};
use capsule_transport_kit::Entry;
use serde_json::json;

use crate::{
    cli::{CLAUDE, Cli, of_each_cli},
    own_tools::{OwnTools, flood},
    patience::ask_with,
    support::alone,
    watch::resident,
};

of_each_cli!(
    a_result_within_the_clis_reach_arrives_whole,
    a_result_of_ten_megabytes_is_cut_with_a_notice_where_the_cli_takes_less_and_costs_bounded_memory,
);

const MIB: u64 = 1 << 20;

/// What the model is told of a result of `bytes` from a tool that may give `largest`, and how long the trace's copy of it is.
async fn flooded(cli: &Cli, bytes: u64, largest: u64) -> Option<(String, usize)> {
    let script = Script::new()
        .then(Reply::new().call("call-1", "flood", json!({"much": bytes})))
        .then(Reply::text("Read."));
    let scene = cli.scene(script).await?;
    let mut spec = ConversationSpec {
        catalogue: OwnTools::offered(Duration::from_secs(60), largest),
        ..scene.spec()
    };
    // A model that could read it all: else codex would summarise before it asks.
    spec.limits.context = Some(ContextWindow {
        max_tokens: 20_000_000,
        threshold_permille: 900,
    });
    let told = ask_with(&scene, spec, "Read it.").await;
    assert_eq!((told.answer(), told.warnings()), ("Read.", vec![]));
    let recorded = told.log.entries().into_iter().find_map(|entry| match entry {
        Entry::Run(RunEvent::Ended { reply, .. }) => Some((reply.status, reply.joined_text().len())),
        _ => None,
    });
    let (status, recorded) = recorded.unwrap();
    assert_eq!(status, ToolStatus::Passed);
    let [(_, text)] = cli.results(&scene.request(1)).try_into().unwrap();
    Some((text, recorded))
}

async fn a_result_within_the_clis_reach_arrives_whole(cli: &Cli) {
    let Some((text, recorded)) = flooded(cli, 400_000, MIB).await else {
        return;
    };
    assert_eq!(recorded, flood(400_000).len());
    assert!(text.ends_with(&flood(400_000)), "{} characters arrived", text.len());
}

async fn a_result_of_ten_megabytes_is_cut_with_a_notice_where_the_cli_takes_less_and_costs_bounded_memory(cli: &Cli) {
    let test = "a_result_of_ten_megabytes_is_cut_with_a_notice_where_the_cli_takes_less_and_costs_bounded_memory";
    if cli.path().is_none() || !alone(&format!("sizes::{}::{test}", cli.name)) {
        return;
    }
    // What the runtime and a first run take once.
    flooded(cli, 1_000, 16 * MIB).await;
    let before = resident();
    let Some((text, recorded)) = flooded(cli, 10 * MIB, 16 * MIB).await else {
        return;
    };
    let grown = resident().saturating_sub(before);
    assert!(grown < 256 << 20, "{} MiB more", grown >> 20);
    assert_eq!(recorded, flood(10 * MIB).len(), "the trace has the whole");
    if cli.name == CLAUDE.name {
        // More than this it would put into a file that the model cannot read.
        assert!(text.len() <= 500_000, "{} bytes", text.len());
        let (kept, notice) = text.split_once("\n[Cut here: ").unwrap();
        assert!(
            flood(10 * MIB).starts_with(kept) && kept.len() > 490_000,
            "{} bytes",
            kept.len()
        );
        assert!(
            notice.ends_with("The trace has the whole result of the call call-1.]"),
            "{notice}"
        );
    } else {
        assert!(text.ends_with(&flood(10 * MIB)), "{} bytes arrived", text.len());
    }
}
