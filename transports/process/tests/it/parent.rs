//! A host that is killed takes its children with it.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use capsule_transport_process::Child;
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};

use crate::{line, script};

const ROLE: &str = "CAPSULE_TEST_ROLE";

/// Not a story of its own: the process that the next test kills.
#[tokio::test(flavor = "multi_thread")]
async fn host_that_waits_for_its_child() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    // Spawned from a task, whose thread may end; the child must not notice.
    let started = tokio::spawn(async {
        let mut child = Child::spawn(script("echo $$; exec sleep 1000")).await.unwrap();
        let id = line(&mut child).await;
        (child, id)
    });
    let (mut child, id) = started.await.unwrap();
    println!("CHILD {id}");
    child.exited().await;
}

#[test]
fn a_host_that_is_killed_takes_its_child_with_it() {
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "parent::host_that_waits_for_its_child", "--nocapture"])
        .env(ROLE, "host")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(host.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let child = lines
        .into_iter()
        .find_map(|line| line.split_once("CHILD ").map(|(_, id)| id.parse::<i32>().unwrap()));
    let child = Pid::from_raw(child.expect("the host tells its child")).unwrap();
    let watched = pidfd_open(child, PidfdFlags::empty()).unwrap();

    host.kill().unwrap();
    host.wait().unwrap();

    // Becomes readable when the process ends; without the parent-death signal this would wait for the sleep's end.
    poll(&mut [PollFd::new(&watched, PollFlags::IN)], None).unwrap();
}
