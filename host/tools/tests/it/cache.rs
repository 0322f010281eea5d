//! The compile cache: what is in it is used only where nobody else can have written it.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use capsule_api::ToolStatus;
use capsule_tools::{Mode, Preopen};

use crate::{
    guests,
    support::{Capsule, said},
};

fn capsule() -> Capsule {
    let mut capsule = Capsule::with("echo", guests::echo().build());
    capsule.options.cache_dir = Some(capsule.path("cache/components"));
    capsule
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// The one file of the cache.
fn cached(capsule: &Capsule) -> PathBuf {
    let entries: Vec<_> = fs::read_dir(capsule.path("cache/components"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries[0].clone()
}

/// Loads, and calls the tool; what was warned of.
async fn warnings(capsule: &Capsule) -> Vec<String> {
    let turn = capsule.turn();
    assert_eq!(turn.ask("echo").await, said(ToolStatus::Passed, "{}"));
    let folder = format!("{}/", capsule.dir.path().display());
    let name = cached(capsule).file_name().unwrap().to_string_lossy().into_owned();
    let shown = |message: &str| message.replace(&folder, "").replace(&name, "FILE");
    turn.toolbox
        .warnings()
        .iter()
        .map(|warning| shown(&warning.message))
        .collect()
}

#[tokio::test]
async fn a_component_is_compiled_once_and_kept_for_its_owner_alone() {
    let capsule = capsule();
    assert_eq!(warnings(&capsule).await, [""; 0]);
    let file = cached(&capsule);
    let first = fs::metadata(&file).unwrap().ino();
    assert_eq!((mode(&capsule.path("cache/components")), mode(&file)), (0o700, 0o600));
    assert_eq!(warnings(&capsule).await, [""; 0]);
    assert_eq!(
        fs::metadata(&file).unwrap().ino(),
        first,
        "the second load replaced the file"
    );
}

/// Spoils the cached file; the next load must warn and compile again, the one after must find a good file.
async fn is_compiled_again(spoil: impl Fn(&Path), why: &str) {
    let capsule = capsule();
    assert_eq!(warnings(&capsule).await, [""; 0]);
    let file = cached(&capsule);
    let size = fs::metadata(&file).unwrap().len();
    spoil(&file);
    let said = warnings(&capsule).await;
    assert_eq!(said.len(), 1, "{said:?}");
    let start = format!("the compile cache was not used: cache/components/FILE: {why}");
    assert!(said[0].starts_with(&start), "{said:?}");
    let again = fs::symlink_metadata(&file).unwrap();
    assert!(again.is_file());
    assert_eq!((again.len(), mode(&file)), (size, 0o600));
    assert_eq!(warnings(&capsule).await, [""; 0]);
}

#[tokio::test]
async fn w_06_a_cut_file_is_compiled_again() {
    let cut = |file: &Path| fs::write(file, &fs::read(file).unwrap()[..1000]).unwrap();
    is_compiled_again(cut, "").await;
}

#[tokio::test]
async fn w_06_a_foreign_file_is_compiled_again() {
    is_compiled_again(|file| fs::write(file, "\x7fELF, but not ours").unwrap(), "").await;
    is_compiled_again(|file| fs::write(file, "").unwrap(), "").await;
}

#[tokio::test]
async fn w_06_a_file_that_others_may_write_is_compiled_again() {
    let open_up = |file: &Path| fs::set_permissions(file, fs::Permissions::from_mode(0o620)).unwrap();
    is_compiled_again(open_up, "others may write to it (mode 620)").await;
}

#[tokio::test]
async fn w_06_a_link_in_a_file_s_place_is_not_followed() {
    let link = |file: &Path| {
        let elsewhere = file.parent().unwrap().parent().unwrap().join("elsewhere");
        fs::rename(file, &elsewhere).unwrap();
        symlink(&elsewhere, file).unwrap();
    };
    is_compiled_again(link, "Too many levels of symbolic links").await;
}

#[tokio::test]
async fn w_06_a_file_of_another_component_s_key_does_not_stand_in() {
    let capsule = capsule();
    warnings(&capsule).await;
    // The component changes, and with it the key: the old file is left alone.
    fs::write(
        &capsule.sources[0].component,
        guests::says(0).build_with_data("another"),
    )
    .unwrap();
    assert_eq!(capsule.turn().ask("echo").await, said(ToolStatus::Passed, "another"));
    assert_eq!(fs::read_dir(capsule.path("cache/components")).unwrap().count(), 2);
}

#[tokio::test]
async fn a_cache_that_others_may_write_to_is_not_used() {
    let capsule = capsule();
    let dir = capsule.directory("cache/components");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o770)).unwrap();
    let turn = capsule.turn();
    assert_eq!(turn.toolbox.warnings().len(), 1);
    assert!(
        turn.toolbox.warnings()[0]
            .message
            .ends_with("others may write to it (mode 770)")
    );
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
    assert_eq!(turn.ask("echo").await.0, ToolStatus::Passed);
}

#[tokio::test]
async fn a_cache_that_cannot_be_made_is_a_warning() {
    let mut capsule = capsule();
    fs::write(capsule.path("file"), "").unwrap();
    capsule.options.cache_dir = Some(capsule.path("file/cache"));
    let turn = capsule.turn();
    let codes: Vec<_> = turn.toolbox.warnings().iter().map(|warning| warning.code).collect();
    assert_eq!(codes, ["tool-cache-unused"]);
    assert_eq!(turn.ask("echo").await.0, ToolStatus::Passed);
}

#[test]
fn w_06_a_grant_that_lets_tools_write_the_cache_is_refused() {
    for (granted, cache) in [
        ("home", "home/cache/components"),
        ("home", "home"),
        ("home/cache/x", "home/cache"),
    ] {
        let mut capsule = capsule();
        capsule.options.cache_dir = Some(capsule.path(cache));
        capsule.grants.filesystem.push(Preopen {
            host: capsule.directory(granted),
            guest: "/home".into(),
            mode: Mode::Rw,
        });
        let told = format!(
            "the grant of {granted} at `/home`: tools could change compiled components there, which run outside the sandbox"
        );
        assert_eq!(capsule.refusals(), [("tool-grant-directory", told)]);
        // To read them harms nothing.
        capsule.grants.filesystem[0].mode = Mode::Ro;
        capsule.load().unwrap();
    }
}
