use std::{fs, path::Path, process::Command};

use capsule_api::{CancelReason, SystemClock};

use super::*;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

async fn run_script(script: &str, cancel: &Cancel) -> (ExitStatus, Vec<(From, String)>) {
    let mut lines = Vec::new();
    let each = |from, line: &str| lines.push((from, line.to_owned()));
    let status = run(shell(script), (&SystemClock, cancel), each).await.unwrap();
    (status, lines)
}

fn alive(id: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(id).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[tokio::test]
async fn lines_and_exit_code_of_a_program_arrive() {
    let (status, lines) = run_script("echo out; echo err >&2; printf last; exit 3", &Cancel::new()).await;
    let of = |which| {
        let ours = lines.iter().filter(move |(from, _)| *from == which);
        ours.map(|(_, line)| line.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of(From::Out), ["out", "last"]);
    assert_eq!(of(From::Err), ["err"]);
    assert_eq!(status.code(), Some(3));
}

#[tokio::test]
async fn a_line_is_cut_and_the_next_one_is_whole() {
    let script = format!("head -c {} /dev/zero | tr '\\0' x; echo; echo next", LONGEST_LINE + 5);
    let (_, lines) = run_script(&script, &Cancel::new()).await;
    let lengths: Vec<_> = lines.iter().map(|(_, line)| line.len()).collect();
    assert_eq!(lengths, [LONGEST_LINE, 4]);
}

#[tokio::test]
async fn a_cancel_ends_the_whole_group() {
    let cancel = Cancel::new();
    let mut seen = Vec::new();
    // The child ignores what is asked of it; the grandchild would outlive it.
    let script = "trap '' INT; sleep 600 & echo $!; wait; wait";
    let status = run(shell(script), (&SystemClock, &cancel), |_, line| {
        seen.push(line.to_owned());
        cancel.cancel(CancelReason::Caller);
    });
    let status = status.await.unwrap();
    assert!(!status.success());
    assert_eq!(seen.len(), 1);
    assert!(!alive(&seen[0]), "the grandchild is gone");
}

#[tokio::test]
async fn a_future_that_is_dropped_takes_the_group_along() {
    let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
    let cancel = Cancel::new();
    {
        let running = run(
            shell("sleep 600 & echo $!; wait"),
            (&SystemClock, &cancel),
            |_, line| {
                tx.send(line.to_owned()).unwrap();
            },
        );
        tokio::pin!(running);
        let id = tokio::select! {
            _ = &mut running => panic!("it does not end by itself"),
            id = rx.recv() => id.unwrap(),
        };
        assert!(alive(&id));
        tx.send(id).unwrap();
    }
    let id = rx.recv().await.unwrap();
    // Killed at once; the kernel takes a moment to end it.
    while alive(&id) {
        tokio::task::yield_now().await;
    }
}
