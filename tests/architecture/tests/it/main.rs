//! The rules, held against this repository, and each against a made-up one that breaks it.
#![cfg(test)]

use std::sync::LazyLock;

use capsule_architecture::{
    cases, edges, files, names,
    repository::{Crate, Repository},
};

static HERE: LazyLock<Repository> = LazyLock::new(|| Repository::read().unwrap());

const NONE: [String; 0] = [];

#[test]
fn crates_depend_only_on_what_they_may() {
    assert!(HERE.crates.len() > 10, "the workspace was not read");
    assert_eq!(edges::violations(&HERE), NONE);
}

#[test]
fn the_host_names_no_plugin() {
    assert!(!names::of_plugins(&HERE).is_empty(), "the plugins were not found");
    assert_eq!(names::violations(&HERE), NONE);
}

#[test]
fn the_top_level_is_as_laid_out() {
    assert_eq!(files::top_level(&HERE), NONE);
}

#[test]
fn no_file_is_too_long() {
    assert_eq!(files::long_files(&HERE), NONE);
}

#[test]
fn every_transport_has_the_same_files() {
    assert_eq!(files::transports(&HERE), NONE);
}

#[test]
fn no_lint_is_switched_off_and_every_crate_takes_them() {
    assert_eq!(files::lint_exceptions(&HERE), NONE);
    assert_eq!(files::lint_tables(&HERE), NONE);
}

#[test]
fn a_crate_has_one_integration_test_binary() {
    assert_eq!(files::test_binaries(&HERE), NONE);
}

#[test]
fn the_build_keeps_plugins_and_survives_their_panics() {
    assert_eq!(files::build_settings(&HERE), NONE);
}

#[test]
fn every_bug_case_has_its_tests() {
    assert!(
        HERE.files.keys().any(|path| path.starts_with("tests/cases/")),
        "the cases were not read"
    );
    assert_eq!(cases::violations(&HERE), NONE);
    assert_eq!(cases::missing_from_pages(&HERE), NONE);
}

/// A small repository in which everything is right.
fn made_up() -> Repository {
    let own = |name: &str, directory: &str, needs: &[&str]| Crate {
        name: name.into(),
        directory: directory.into(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        ..Crate::default()
    };
    let mut repository = Repository {
        crates: vec![
            own("api", "host/api", &[]),
            own("tools", "host/tools", &["api"]),
            own("cli", "host/cli", &["tools", "parrot"]),
            own("parrot", "transports/parrot", &["api"]),
            own("kit", "tests/kit", &["api"]),
        ],
        ..Repository::default()
    };
    for own in &repository.crates {
        let manifest = format!("{}/Cargo.toml", own.directory);
        repository.files.insert(manifest, "[lints]\nworkspace = true\n".into());
    }
    let profiles = ["dev", "release"].map(|profile| format!("[profile.{profile}]\npanic = \"unwind\"\n"));
    repository.files.insert("Cargo.toml".into(), profiles.join("\n"));
    let api = "links = \"capsule-api\"\n[lints]\nworkspace = true\n";
    repository.files.insert("host/api/Cargo.toml".into(), api.into());
    for file in files::OF_A_TRANSPORT {
        repository
            .files
            .insert(format!("transports/parrot/{file}"), String::new());
    }
    repository
}

fn with_file(path: &str, text: &str) -> Repository {
    let mut repository = made_up();
    repository.files.insert(path.into(), text.into());
    repository
}

#[test]
fn a_made_up_repository_that_is_right_breaks_no_rule() {
    let right = made_up();
    let all = [
        edges::violations,
        names::violations,
        files::top_level,
        files::long_files,
        files::transports,
        files::lint_exceptions,
        files::lint_tables,
        files::test_binaries,
        files::build_settings,
        cases::violations,
        cases::missing_from_pages,
    ];
    for rule in all {
        assert_eq!(rule(&right), NONE);
    }
}

#[test]
fn a_forbidden_edge_is_found() {
    let mut wrong = made_up();
    wrong.crates[1].needs.push("parrot".into());
    wrong.crates[3].dev_needs.extend(["kit".into(), "tools".into()]);
    wrong.crates.push(Crate {
        name: "stray".into(),
        directory: "elsewhere/stray".into(),
        ..Crate::default()
    });
    assert_eq!(
        edges::violations(&wrong),
        [
            "tools must not depend on parrot",
            "the tests of parrot must not depend on tools",
            "stray: no rule says what a crate in `elsewhere/stray` may depend on",
        ]
    );
}

#[test]
fn a_plugin_that_the_host_names_is_found() {
    let source = "//! Not the parrot.\nlet url = \"http://parrot\"; // a parrot\nstruct Parrot;\n#[cfg(test)]\nmod tests { parrot }";
    let wrong = with_file("host/tools/src/lib.rs", source);
    let here = |line: u32| format!("host/tools/src/lib.rs:{line}: names the plugin `parrot`");
    assert_eq!(names::violations(&wrong), [here(2), here(3)]);
    assert_eq!(names::violations(&with_file(names::LINKS, "use parrot as _;")), NONE);
}

#[test]
fn a_text_that_looks_like_a_comment_is_none() {
    let code = names::code("a(\"// \\\" // text\", '\"') // comment\nb");
    assert_eq!(code, "a(\"// \\\" // text\", '\"') \nb");
}

#[test]
fn a_wrong_file_is_found() {
    let mut wrong = made_up();
    wrong.top_level = ["host", ".ci", "xtask"].map(str::to_owned).into();
    assert_eq!(files::top_level(&wrong), ["`xtask` does not belong at the top level"]);

    let long = with_file("host/api/src/lib.rs", &"\n".repeat(601));
    assert_eq!(
        files::long_files(&long),
        ["host/api/src/lib.rs has 601 lines; at most 600 are meant to be"]
    );
    let long = with_file("transports/parrot/src/lib.rs", &"\n".repeat(61));
    assert_eq!(
        files::long_files(&long),
        ["transports/parrot/src/lib.rs has 61 lines; at most 60 are meant to be"]
    );

    let mut short = made_up();
    short.files.remove("transports/parrot/README.md");
    assert_eq!(
        files::transports(&short),
        ["transports/parrot/README.md is missing; every transport has the same files"]
    );
}

#[test]
fn a_lint_that_is_evaded_is_found() {
    let switch = ["#[allow(", "clippy::too_many_arguments)]"].concat();
    let wrong = with_file("host/api/src/lib.rs", &switch);
    assert_eq!(
        files::lint_exceptions(&wrong),
        ["host/api/src/lib.rs switches off a lint of clippy; fix what it finds"]
    );
    let wrong = with_file("host/api/Cargo.toml", "[package]");
    assert_eq!(
        files::lint_tables(&wrong),
        ["host/api/Cargo.toml does not take the workspace's lints"]
    );
}

#[test]
fn a_build_that_loses_plugins_or_aborts_is_found() {
    let mut wrong = with_file(
        "Cargo.toml",
        "[profile.dev]\npanic = \"unwind\"\n\n[profile.release]\npanic = \"abort\"\n",
    );
    wrong.files.insert("host/api/Cargo.toml".into(), "[package]".into());
    assert_eq!(
        files::build_settings(&wrong),
        [
            "host/api/Cargo.toml: `links` is missing; two versions of the contract could be linked",
            "Cargo.toml: the profile `release` does not unwind",
        ]
    );
}

#[test]
fn a_second_test_binary_is_found() {
    let mut wrong = made_up();
    wrong.crates[0].integration_tests = ["it", "more"].map(str::to_owned).into();
    assert_eq!(
        files::test_binaries(&wrong),
        ["api: the integration test `more` belongs into tests/it"]
    );
}

#[test]
fn a_case_without_its_test_is_found() {
    let data = r#"[{"id": "R-01", "source": "s", "stimulus": "s", "expected": " ",
        "tests": ["host/api/src/lib.rs::r_01_gone", "host/api/src/lib.rs::other"]}]"#;
    let mut wrong = with_file("tests/cases/r.json", data);
    wrong.files.insert(
        "host/api/src/lib.rs".into(),
        "    fn other() {}\nasync fn r_02_new() {}\nfn t_1() {}".into(),
    );
    wrong.files.insert("tests/cases/x.json".into(), "[".into());
    let at = |what: &str| format!("tests/cases/r.json: R-01: {what}");
    assert_eq!(
        cases::violations(&wrong),
        [
            at("source, stimulus and expected must say something"),
            at("there is no test `host/api/src/lib.rs::r_01_gone`"),
            at("the name of the test `host/api/src/lib.rs::other` does not begin with `r_01_`"),
            "tests/cases/x.json: EOF while parsing a list at line 1 column 1".to_owned(),
            "no case lists the test `host/api/src/lib.rs::r_02_new`".to_owned(),
        ]
    );
}

#[test]
fn a_page_that_names_a_test_that_is_not_there_is_found() {
    let mut wrong = with_file("host/api/tests/it/a.rs", "#[test]\nfn it_is() {}\n");
    let page = "Held by `host/api/tests/it/a.rs::it_is`, `host/api/tests/it/a.rs::it_was` and `a::b`.";
    wrong.files.insert("host/api/README.md".into(), page.into());
    assert_eq!(
        cases::missing_from_pages(&wrong),
        ["host/api/README.md: there is no test `host/api/tests/it/a.rs::it_was`"]
    );
}
