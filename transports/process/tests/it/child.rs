//! A program's life: environment, output, ladder, end.

use std::time::Duration;

use capsule_api::{Secret, SystemClock};
use capsule_transport_process::{Child, Exit, Program, STDERR_TAIL, Stop};

use crate::{line, lives, script};

const STEP: Duration = Duration::from_millis(100);

fn exit(code: Option<i32>, signal: Option<i32>) -> Exit {
    Exit {
        code,
        signal,
        leftovers: Vec::new(),
        survivors: Vec::new(),
    }
}

#[tokio::test]
async fn a_program_sees_the_environment_it_is_given_and_nothing_else() {
    let program = Program::new("/usr/bin/env", "/")
        .env("ONE", "1")
        .secret_env("KEY", &Secret::new("sk"));
    let mut child = Child::spawn(program).await.unwrap();
    let mut seen = vec![line(&mut child).await, line(&mut child).await];
    seen.sort();
    assert_eq!(seen, ["KEY=sk", "ONE=1"]);
    assert_eq!(child.next_line(&SystemClock).await.unwrap(), None);
    assert_eq!(child.exited().await, exit(Some(0), None));
}

#[tokio::test]
async fn input_is_written_while_output_is_read() {
    let mut child = Child::spawn(script("cat")).await.unwrap();
    let big = "x".repeat(1 << 20);
    child.send(format!("{big}\nend\n")).await.unwrap();
    child.close_input();
    assert_eq!(line(&mut child).await.len(), big.len());
    assert_eq!(line(&mut child).await, "end");
    assert_eq!(child.exited().await.code, Some(0));
}

#[tokio::test]
async fn a_program_that_writes_without_an_end_is_not_read_without_one() {
    let mut child = Child::spawn(script("exec yes").most_output(1 << 20)).await.unwrap();
    let error = loop {
        if let Err(error) = child.next_line(&SystemClock).await {
            break error;
        }
    };
    assert_eq!(error.to_string(), "there is more of it than 1048576 bytes");
    let ended = child
        .stop(&SystemClock, &[(Stop::Terminate, Duration::from_secs(30))])
        .await;
    assert_eq!(ended, Some(exit(None, Some(15))));
}

#[tokio::test]
async fn a_program_that_is_missing_is_named() {
    let Err(error) = Child::spawn(Program::new("/no/such/program", "/")).await else {
        panic!("it cannot start");
    };
    assert_eq!(error.code, "process-spawn-failed");
    assert!(
        error.message.starts_with("/no/such/program could not be started: "),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn the_end_of_stderr_is_kept_and_all_of_it_is_read() {
    let mut child = Child::spawn(script("i=0; while [ $i -lt 4000 ]; do echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done; echo the end >&2; exit 3")).await.unwrap();
    assert_eq!(child.drain_until_exit().await, exit(Some(3), None));
    let tail = child.stderr_tail(&SystemClock).await;
    assert!(
        tail.ends_with("the end") && tail.len() <= STDERR_TAIL && tail.len() > STDERR_TAIL / 2,
        "{} bytes",
        tail.len()
    );
}

#[tokio::test]
async fn a_program_that_heeds_sigterm_ends_by_it() {
    let mut child = Child::spawn(script("echo ready; exec sleep 1000")).await.unwrap();
    line(&mut child).await;
    let ended = child
        .stop(&SystemClock, &[(Stop::Terminate, Duration::from_secs(30))])
        .await;
    assert_eq!(ended, Some(exit(None, Some(15))));
}

#[tokio::test]
async fn p_11_a_group_that_ignores_sigterm_is_gone_after_the_ladder() {
    let text = "trap '' TERM INT; sh -c 'trap \"\" TERM INT; echo $$; exec sleep 1000' & echo $$; wait; sleep 1000";
    let mut child = Child::spawn(script(text)).await.unwrap();
    let ids = [line(&mut child).await, line(&mut child).await];
    let ended = child
        .stop(&SystemClock, &[(Stop::Interrupt, STEP), (Stop::Terminate, STEP)])
        .await
        .unwrap();
    assert_eq!((ended.signal, ended.survivors), (Some(9), Vec::new()));
    assert_eq!(ids.map(|id| lives(&id)), [false, false]);
}

#[tokio::test]
async fn what_outlives_its_leader_is_killed_and_told() {
    let mut child = Child::spawn(script("sleep 1000 & echo $!; exit 0")).await.unwrap();
    let sleeper = line(&mut child).await;
    let ended = child.drain_until_exit().await;
    // By its id: its name is still the shell's where it was not yet given time to become `sleep`.
    let left: Vec<_> = ended.leftovers.iter().map(|(id, _)| id.to_string()).collect();
    assert_eq!((ended.code, left), (Some(0), vec![sleeper.clone()]));
    assert!(!lives(&sleeper));
    assert_eq!(
        child.next_line(&SystemClock).await.unwrap(),
        None,
        "the output ends although the sleeper had it open"
    );
}

#[tokio::test]
async fn a_dropped_child_is_killed_with_its_group_and_reaped() {
    let mut child = Child::spawn(script("sleep 1000 & echo $!; echo $$; wait"))
        .await
        .unwrap();
    let ids = [line(&mut child).await, line(&mut child).await];
    assert!(ids.iter().all(|id| lives(id)));
    drop(child);
    // The kill is sent by now; a thread reaps, and nothing is left to await it by.
    while ids
        .iter()
        .any(|id| std::path::Path::new("/proc").join(id).exists() && lives(id))
    {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_process_that_left_the_group_cannot_keep_the_output_from_ending() {
    let text = "setsid yes & echo started; exit 0";
    let mut child = Child::spawn(script(text)).await.unwrap();
    while child.next_line(&SystemClock).await.unwrap().is_some() {}
    assert_eq!(child.exited().await.code, Some(0));
}

#[tokio::test]
async fn p_11_a_process_that_left_the_group_is_found_by_its_mark_killed_and_told() {
    let dir = tempfile::tempdir().unwrap();
    // The one that leaves ignores SIGTERM and starts another, which has no parent but init in the end.
    let away = "trap '' TERM; sh -c 'sleep 1000 & echo \\$!'; echo \\$\\$; sleep 1000";
    let text = format!("setsid sh -c \"{away}\" & wait");
    let mut child = Child::spawn(script(&text).mark("TMPDIR", dir.path())).await.unwrap();
    let ids = [line(&mut child).await, line(&mut child).await];
    // A process of ours with another mark stays.
    let mut other = Child::spawn(script("echo; sleep 1000").mark("TMPDIR", "/elsewhere"))
        .await
        .unwrap();
    line(&mut other).await;

    let ended = child
        .stop(&SystemClock, &[(Stop::Terminate, Duration::from_secs(5))])
        .await
        .unwrap();
    let left: Vec<_> = ended.leftovers.iter().map(|(id, _)| id.to_string()).collect();
    assert!(ids.iter().all(|id| left.contains(id)), "{ids:?} of {left:?}");
    assert_eq!((ids.map(|id| lives(&id)), ended.survivors), ([false, false], vec![]));
    assert!(lives(&other.id().to_string()));
}
