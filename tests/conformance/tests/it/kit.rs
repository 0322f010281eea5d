//! The kit over every registered transport.

use std::collections::BTreeSet;

use capsule_api::{DriverDescriptor, Registry};
use capsule_transport_kit::{Fixture, Report, Verdict, check_at_once};

use crate::{claude::Claude, codex::Codex, echo::Echo, http::Http, http::On, run::DRIVERS};

/// Cases of one transport that run at the same time: each of the CLI's is a process of some hundred megabytes.
const CASES_AT_ONCE: usize = 3;

/// The transports that can be staged, with their fixtures; none where the peer is not installed.
fn fixtures() -> Vec<(&'static str, Option<Box<dyn Fixture>>)> {
    let claude = capsule_fakes::claude().map(|cli| -> Box<dyn Fixture> { Box::new(Claude { cli }) });
    let codex = capsule_fakes::codex().map(|cli| -> Box<dyn Fixture> { Box::new(Codex { cli }) });
    vec![
        ("claude", claude),
        ("codex", codex),
        ("echo", Some(Box::new(Echo))),
        ("http", Some(Box::new(Http))),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_registered_transport_has_a_fixture_and_conforms() {
    let registry = capsule::transports().expect("transports are linked");
    let fixtures = fixtures();
    let registered: BTreeSet<_> = registry.names().collect();
    let staged: BTreeSet<_> = fixtures.iter().map(|(name, _)| *name).collect();
    assert!(!registered.is_empty(), "no transport is registered");
    assert_eq!(
        registered, staged,
        "registered transports, and those with a fixture here"
    );

    let mut reports: Vec<Report> = Vec::new();
    for (name, fixture) in &fixtures {
        let Some(fixture) = fixture else { continue };
        assert_eq!(fixture.descriptor().name, *name, "the fixture is for another transport");
        let report = check_at_once(&**fixture, CASES_AT_ONCE).await;
        println!("{report}");
        reports.push(report);
    }
    let failed: Vec<_> = reports.iter().filter(|report| !report.conforms()).collect();
    assert!(
        failed.is_empty(),
        "{}",
        failed.iter().map(ToString::to_string).collect::<String>()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_transport_that_owns_its_loop_conforms_on_every_driver() {
    let registry = Registry::<DriverDescriptor>::linked().expect("drivers are linked");
    let with_a_wire = registry.iter().filter(|driver| driver.wire.is_some());
    let registered: BTreeSet<_> = with_a_wire.map(|driver| driver.name).collect();
    assert_eq!(
        registered,
        BTreeSet::from(DRIVERS),
        "drivers with a wire, and those tried"
    );
    for driver in DRIVERS {
        // The API of Ollama has no word for a refusal: it comes as any other text.
        let not_told: &[&str] = if driver == "ollama" {
            &["a_refusal_is_no_answer"]
        } else {
            &[]
        };
        let report = check_at_once(&On(driver), CASES_AT_ONCE).await;
        let failed = |verdict: &Verdict| matches!(verdict, Verdict::Failed(_));
        let failed: Vec<_> = report
            .lines
            .iter()
            .filter(|line| failed(&line.verdict))
            .map(|line| line.case)
            .collect();
        assert_eq!(failed, not_told, "{driver}: {report}");
    }
}
