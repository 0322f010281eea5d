//! The example capsule of each driver: it runs against a provider that speaks the driver's format, and its tape is the recording of that.

use std::{fs, path::Path};

use capsule_fakes::{Reply, Script, Usage};
use serde_json::{Value, json};

use crate::{
    peer::{KEY, Peer},
    support::{ROOT, Sandbox, copy},
};

const ANSWER: &str = "Bonjour, Amélie !\nこんにちは、Kenjiさん！";

/// An example, with what its provider has to be told and can do.
struct Example {
    name: &'static str,
    key: Option<&'static str>,
    reasons: bool,
}

const EXAMPLES: [Example; 4] = [
    Example {
        name: "anthropic",
        key: Some("ANTHROPIC_API_KEY"),
        reasons: true,
    },
    Example {
        name: "ollama",
        key: None,
        reasons: true,
    },
    Example {
        name: "openai",
        key: Some("OPENAI_API_KEY"),
        reasons: false,
    },
    Example {
        name: "openai-responses",
        key: Some("OPENAI_API_KEY"),
        reasons: true,
    },
];

/// What the model says: it reads the list, greets both, and answers with what it was told.
fn story(reasons: bool) -> Script {
    let begun = match reasons {
        true => Reply::new().thinking(["I need ", "the list ", "first."].as_slice(), "c2VhbA=="),
        false => Reply::new(),
    };
    let usage = |input_tokens, output_tokens| Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    };
    let greet = |name: &str, language: &str| json!({"name": name, "language": language});
    Script::new()
        .then(
            begun
                .and_text(["Let me ", "see who ", "is here."].as_slice())
                .call("call-1", "read-file", json!({"path": "/notes/guests.md"}))
                .usage(usage(640, 58)),
        )
        .then(
            Reply::new()
                .call("call-2", "hello", greet("Amélie", "French"))
                .call("call-3", "hello", greet("Kenji", "Japanese"))
                .usage(usage(735, 74)),
        )
        .then(Reply::text(["Bonjour, ", "Amélie !\n", "こんにちは、Kenjiさん！"].as_slice()).usage(usage(840, 22)))
}

/// The sandbox with the examples where the documents have them.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    copy(
        &Path::new(ROOT).join("plugins/capsules"),
        &sandbox.work("plugins/capsules"),
    );
    sandbox
}

/// A tape without its times, and with each answer in one piece: both are the network's.
fn told(tape: &str) -> Value {
    let mut tape: Value = serde_json::from_str(tape).unwrap();
    for entry in tape["entries"].as_array_mut().unwrap() {
        let chunks = entry["chunks"].as_array().unwrap();
        let text: String = chunks.iter().map(|chunk| chunk[1].as_str().unwrap()).collect();
        entry["chunks"] = json!(text);
    }
    tape
}

#[test]
fn each_driver_has_an_example_that_runs_on_its_provider_and_its_tape_is_that_run() {
    for Example { name, key, reasons } in EXAMPLES {
        let peer = Peer::start(story(reasons));
        let mut sandbox = sandbox();
        if let Some(key) = key {
            sandbox = sandbox.env(key, KEY);
        }
        let (capsule, endpoint) = (format!("plugins/capsules/{name}"), peer.provider().url());
        let endpoint = format!("inference.endpoint={endpoint}");
        let run = ["run", &capsule, "--set", &endpoint, "--record", "tape.json"];
        assert_eq!(sandbox.run(&run).code(0).answer(), ANSWER, "{name}");
        let first = peer.provider().requests().remove(0);
        assert_eq!(first.key(), key.map(|_| KEY), "{name}");
        peer.assert_clean();

        let recorded = fs::read_to_string(sandbox.work("tape.json")).unwrap();
        let committed = format!("{ROOT}/{capsule}/tapes/guests.json");
        if std::env::var_os("UPDATE_TAPES").is_some_and(|value| value == "1") {
            fs::write(&committed, &recorded).unwrap();
        }
        let committed = fs::read_to_string(&committed).unwrap();
        assert_eq!(
            told(&committed),
            told(&recorded),
            "{name}: run it again with UPDATE_TAPES=1"
        );
    }
}

#[test]
fn each_example_runs_at_once_without_a_key_or_a_provider() {
    for Example { name, reasons, .. } in EXAMPLES {
        let sandbox = sandbox();
        let capsule = format!("plugins/capsules/{name}");
        let tape = format!("{capsule}/tapes/guests.json");
        let tested = sandbox.run(&["test", &capsule]).code(0);
        assert_eq!(
            tested.out, "ok    tapes/guests.json · 3 requests, 3 tool calls\n",
            "{name}"
        );
        let ran = sandbox.run(&["run", &capsule, "--replay", &tape, "--json"]).code(0);
        let records = crate::support::lines(&ran.out);
        let said = |of: &str| {
            let blocks = records
                .iter()
                .filter(|record| record["kind"] == "block" && record["of"] == of);
            blocks
                .map(|record| record["text"].as_str().unwrap())
                .collect::<Vec<_>>()
        };
        let thought: &[_] = if reasons { &["I need the list first."] } else { &[] };
        assert_eq!(said("thinking"), thought, "{name}");
        assert_eq!(said("text"), ["Let me see who is here.", ANSWER], "{name}");
    }
}

#[test]
fn an_example_without_its_key_says_so_before_anything_is_sent() {
    for (name, code) in [
        ("anthropic", "manifest-variable-unset"),
        ("openai", "openai-key-missing"),
        ("openai-responses", "manifest-variable-unset"),
    ] {
        let sandbox = sandbox();
        let capsule = format!("plugins/capsules/{name}");
        let ran = sandbox.run(&["run", &capsule]).code(2);
        ran.says(&["api_key", code, "hint:"]);
        let looked = sandbox.run(&["doctor", &capsule]);
        assert_ne!(looked.code, 0, "{name}: {looked:#?}");
    }
}

#[test]
fn the_examples_for_servers_of_this_machine_send_no_key_and_name_no_payer() {
    for (name, variable, path) in [
        ("openai", "OPENAI_BASE_URL", "/v1"),
        ("component-driver", "ENDPOINT", "/v1"),
        ("ollama", "OLLAMA_ENDPOINT", ""),
    ] {
        let peer = Peer::start(story(false));
        let sandbox = sandbox().env(variable, format!("{}{path}", peer.provider().url()));
        let capsule = format!("plugins/capsules/{name}");
        let ran = sandbox.run(&["run", &capsule]).code(0);
        assert_eq!(ran.answer(), ANSWER, "{name}");
        assert!(!ran.err.contains("billed"), "{name}: {ran:#?}");
        assert_eq!(peer.provider().requests()[0].key(), None, "{name}");
        peer.assert_clean();
    }
}
