//! The conformance kit over this transport, on each driver.

use capsule_transport_kit::{Verdict, assert_conforms, check};

use crate::fixture::{Http, On};

#[tokio::test(flavor = "multi_thread")]
async fn the_transport_conforms() {
    assert_conforms(&Http).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_transport_conforms_on_the_other_drivers() {
    // The API of Ollama has no word for a refusal: it comes as any other text.
    let not_told: [(&str, &[&str]); 3] = [
        ("openai", &[]),
        ("openai-responses", &[]),
        ("ollama", &["a_refusal_is_no_answer"]),
    ];
    for (driver, not_told) in not_told {
        let report = check(&On(driver)).await;
        let failed = report
            .lines
            .iter()
            .filter(|line| matches!(line.verdict, Verdict::Failed(_)));
        let failed: Vec<_> = failed.map(|line| line.case).collect();
        assert_eq!(failed, not_told, "{driver}: {report}");
    }
}
