//! A third party's command-line agents join the family by being linked. Two of them are linked into this test.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use capsule::{Assembled, Choice, Failure};
use capsule_api::{
    Capabilities, Code, Conversation, ConversationSpec, Error, ErrorKind, Probe, Settings, Transport, async_trait,
    register,
    serde_json::{Value, json},
};

const NOTHING: Capabilities = Capabilities {
    streams: false,
    thinking: false,
    usage: false,
    resumes: false,
    parallel_tools: false,
    interrupts: false,
    host_owns_loop: false,
};
const NOT_HERE: Code = Code {
    id: "ant-not-here",
    kind: ErrorKind::TransportUnavailable,
    meaning: "The ant's program is not here.",
    remedy: "Set `inference.command`.",
};

register! {
    TransportDescriptor {
        name: "ant",
        family: "cli",
        summary: "A small agent.",
        at_most: NOTHING,
        stops_within: Duration::from_secs(1),
        settings_schema: schema,
        example: "transport: ant\n",
        recognises: Some(|_, version| version.is_some_and(|text| text.starts_with("insect"))),
        codes: &[&NOT_HERE],
        build: |settings, _| Ok(Box::new(Insect(settings))),
    }
}

register! {
    TransportDescriptor {
        name: "beetle",
        family: "cli",
        summary: "Another one.",
        at_most: NOTHING,
        stops_within: Duration::from_secs(1),
        settings_schema: schema,
        example: "transport: beetle\n",
        recognises: Some(|_, version| version.is_some_and(|text| text.starts_with("insect 6"))),
        codes: &[],
        build: |settings, _| Ok(Box::new(Insect(settings))),
    }
}

fn schema(_: Option<&Value>) -> Value {
    json!({
        "type": "object",
        "properties": {"command": {"type": "string"}, "legs": {"type": "integer"}},
        "additionalProperties": false,
    })
}

/// Could run where it has legs.
struct Insect(Settings);

#[async_trait]
impl Transport for Insect {
    fn capabilities(&self) -> Capabilities {
        NOTHING
    }

    async fn probe(&self, _online: bool) -> Probe {
        let mut probe = Probe::usable();
        if !self.0.raw().contains_key("legs") {
            probe.usable = Err(Error::new(&NOT_HERE, "it has no legs"));
        }
        probe
    }

    async fn open(&self, _: ConversationSpec) -> Result<Box<dyn Conversation>, Error> {
        Err(Error::new(&NOT_HERE, "it is not opened here"))
    }
}

/// A capsule that asks for the family, beside a program that prints this version.
fn assemble(dir: &Path, version: &str, inference: &str) -> Result<Assembled, Failure> {
    let program = dir.join("agent");
    fs::write(&program, format!("#!/bin/sh\necho '{version}'\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let manifest = format!("name: mine\nversion: 0.1.0\ninference:\n  transport: process\n{inference}");
    fs::write(dir.join("capsule.yaml"), manifest).unwrap();
    capsule::assemble(&Choice::of(dir))
}

/// The transport, how it was chosen, and what it was given; or the problem.
fn chosen(version: &str, inference: &str) -> Result<(&'static str, String), String> {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display().to_string();
    match assemble(dir.path(), version, inference) {
        Ok(assembled) => {
            let how = assembled.agent.chosen_by.clone().unwrap().replace(&place, "DIR");
            let name = assembled.descriptor().name;
            assembled.shut_down();
            Ok((name, how))
        }
        Err(failure) => {
            let mut text = Vec::new();
            failure.show(&mut text);
            Err(String::from_utf8(text).unwrap().replace(&place, "DIR"))
        }
    }
}

#[test]
fn a_third_party_s_agent_is_recognised_by_what_its_program_prints() {
    let told = chosen("insect 4", "  command: ./agent\n").unwrap();
    assert_eq!(told, ("ant", "process: DIR/./agent prints \"insect 4\"".to_owned()));
}

#[test]
fn a_program_that_two_take_for_their_own_needs_its_dialect() {
    let problem = chosen("insect 6", "  command: ./agent\n").unwrap_err();
    for part in [
        "prints \"insect 6\"; that could be any of ant, beetle; the dialects are: ant, beetle, claude, codex",
        "Set `inference.dialect`",
    ] {
        assert!(problem.contains(part), "{problem}");
    }
    let told = chosen("insect 6", "  command: ./agent\n  dialect: beetle\n").unwrap();
    assert_eq!(told, ("beetle", "process: `dialect: beetle`".to_owned()));
}

#[test]
fn without_a_program_it_is_the_first_that_could_run() {
    let how = || "process: the first of ant, beetle, claude, codex that could run here".to_owned();
    let told = chosen("", "  transports: {beetle: {legs: 6}}\n").unwrap();
    assert_eq!(told, ("beetle", how()));
    let told = chosen("", "  transports: {beetle: {legs: 6}, ant: {legs: 6}}\n").unwrap();
    assert_eq!(told, ("ant", how()));
}

#[test]
fn a_key_that_only_some_of_the_family_have_stands_in_their_blocks() {
    let problem = chosen("insect 4", "  command: ./agent\n  legs: 6\n").unwrap_err();
    assert!(
        problem.contains("write it as `inference.transports.ant.legs`"),
        "{problem}"
    );
}
