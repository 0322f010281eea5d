//! What tools may do: keys that are right become types, and what is wrong with them is told with its place.

use std::{collections::BTreeMap, time::Duration};

use capsule_api::{ByteSize, HumanDuration};
use capsule_manifest::{SecretSource, ToolLimits};

use crate::{HEAD, read};

const WHOLE: &str = r#"
name: letters
version: 1.0.0
tools:
  - name: post
    component: post.wasm
    config: {city: Ulm, stamps: 3, fast: true, list: [1, a]}
    capabilities:
      filesystem: [{path: ./data/in, at: /in, mode: ro}]
      network: {allow: [api.test]}
      secrets: [TOKEN]
      limits: {memory: 1MiB, deadline: 1s}
  - name: plain
    component: plain.wasm
capabilities:
  filesystem: [{path: ./data, at: /data, mode: rw}]
  network: {allow: [https://api.test, "*.mail.test"]}
  secrets:
    TOKEN: {from: env, hosts: [https://api.test], header: "Authorization: Bearer {}"}
  limits: {table_elements: 10, instances: 20, http_body: 1KiB, registry_depth: 2}
  clock: 2026-01-01T00:00:00Z
  random: {seed: 7}
inference: {transport: radio, channel: long}
"#;

#[test]
fn all_grants_are_read() {
    let manifest = read(WHOLE).unwrap().manifest;
    let grants = &manifest.capabilities;
    assert_eq!(grants.network.allow, ["https://api.test", "*.mail.test"]);
    let secret = &grants.secrets["TOKEN"];
    assert_eq!(
        (secret.from, secret.hosts.as_slice(), secret.header.as_str()),
        (
            SecretSource::Env,
            ["https://api.test".to_owned()].as_slice(),
            "Authorization: Bearer {}"
        )
    );
    let limits = &grants.limits;
    assert_eq!(
        (
            limits.table_elements,
            limits.instances,
            limits.http_body,
            limits.registry_depth
        ),
        (10, 20, ByteSize(1024), 2)
    );
    assert_eq!(grants.clock, Some(Duration::from_secs(1_767_225_600)));
    assert_eq!(grants.random.seed, Some(7));
    let post = &manifest.tools[0];
    let config = [
        ("city", "Ulm"),
        ("fast", "true"),
        ("list", "[1,\"a\"]"),
        ("stamps", "3"),
    ];
    let config: BTreeMap<_, _> = config.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    assert_eq!(post.config, config);
    let own = post.capabilities.as_ref().unwrap();
    assert_eq!(
        (own.filesystem[0].at.as_str(), own.secrets.as_slice()),
        ("/in", ["TOKEN".to_owned()].as_slice())
    );
    let expected = ToolLimits::default();
    assert_eq!(own.limits.http_body, expected.http_body);
    assert_eq!(
        (own.limits.memory, own.limits.deadline),
        (Some(ByteSize(1 << 20)), Some(HumanDuration(Duration::from_secs(1))))
    );
    assert_eq!(manifest.tools[1].capabilities, None);
}

#[test]
fn what_is_wrong_with_a_grant_is_told_with_its_key() {
    let tool = |own: &str| format!("tools: [{{name: a, component: a.wasm, {own}}}]");
    for (text, key) in [
        (
            "capabilities: {network: {deny: [a]}}".to_owned(),
            "capabilities.network",
        ),
        (
            "capabilities: {secrets: {A: {from: file, hosts: [a], header: 'X: {}'}}}".to_owned(),
            "capabilities.secrets.A.from",
        ),
        (
            "capabilities: {secrets: {A: {from: env, hosts: [], header: 'X: {}'}}}".to_owned(),
            "capabilities.secrets.A.hosts",
        ),
        (
            "capabilities: {secrets: {A: {from: env, hosts: [a], header: 'X: y'}}}".to_owned(),
            "capabilities.secrets.A.header",
        ),
        (
            "capabilities: {limits: {http_body: 0B}}".to_owned(),
            "capabilities.limits.http_body",
        ),
        (
            "capabilities: {limits: {registry_depth: 9}}".to_owned(),
            "capabilities.limits.registry_depth",
        ),
        (
            "capabilities: {clock: 2026-13-01T00:00:00Z}".to_owned(),
            "capabilities.clock",
        ),
        (
            tool("capabilities: {limits: {concurrent_calls: 1}}"),
            "tools[0].capabilities.limits",
        ),
        (
            tool("capabilities: {limits: {deadline: 0s}}"),
            "tools[0].capabilities.limits.deadline",
        ),
        (
            tool("capabilities: {filesystem: [{path: ../x, at: /x, mode: ro}]}"),
            "tools[0].capabilities.filesystem[0].path",
        ),
        (
            tool("capabilities: {filesystem: [{path: x, at: /x/.., mode: ro}]}"),
            "tools[0].capabilities.filesystem[0].at",
        ),
        (
            tool("capabilities: {filesystem: [{path: x, at: /x, mode: ro}, {path: y, at: /x, mode: ro}]}"),
            "tools[0].capabilities.filesystem[1].at",
        ),
        (tool("config: {a: null}"), "tools[0].config.a"),
    ] {
        let report = read(&format!("{HEAD}{text}\n")).unwrap_err();
        let keys: Vec<&str> = report.problems.iter().map(|problem| problem.key.as_str()).collect();
        assert!(keys.contains(&key), "{text}: {keys:?}");
    }
}
