//! The nine ways to hold a server or to fool it, each against a listener that must not be held or fooled.

use capsule_net::Limits;
use tokio::io::AsyncWriteExt as _;

use crate::raw::{SHORT, Script, ask, connect, long, post, read_to_end, read_until, server};

#[tokio::test]
async fn half_a_head_is_closed_at_the_header_time_out() {
    let server = server(
        &Script::new(),
        Limits {
            header_timeout: SHORT,
            ..long()
        },
    )
    .await;
    for half in ["", "P", "POST /echo HTTP/1.1\r\nhost: a", "PRI * HTTP/2.0\r\n\r\n"] {
        let mut stream = connect(&server).await;
        stream.write_all(half.as_bytes()).await.unwrap();
        let answer = read_to_end(&mut stream).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 400"),
            "{half:?}: {answer}"
        );
    }
}

#[tokio::test]
async fn an_idle_kept_alive_connection_is_closed_at_the_idle_time_out() {
    let limits = Limits {
        idle_timeout: SHORT,
        ..long()
    };
    let server = server(&Script::new(), limits).await;
    let mut stream = connect(&server).await;
    let request = post(&server, "/echo", "content-length: 2\r\n", "{}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = read_to_end(&mut stream).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("2 bytes"),
        "{answer}"
    );
}

#[tokio::test]
async fn the_header_time_out_holds_for_the_second_request_too() {
    let limits = Limits {
        header_timeout: SHORT,
        ..long()
    };
    let server = server(&Script::new(), limits).await;
    let mut stream = connect(&server).await;
    let request = post(&server, "/echo", "content-length: 2\r\n", "{}");
    stream.write_all(request.as_bytes()).await.unwrap();
    read_until(&mut stream, "2 bytes").await;
    stream.write_all(b"POST /ec").await.unwrap();
    assert_eq!(read_to_end(&mut stream).await, "");
}

#[tokio::test]
async fn a_head_of_8_mib_is_431() {
    let server = server(&Script::new(), Limits::default()).await;
    let huge = format!("x: {}\r\n", "y".repeat(8 << 20));
    assert_eq!(ask(&server, post(&server, "/echo", &huge, "")).await.0, 431);
    let just_over = format!("x: {}\r\n", "y".repeat(64 << 10));
    assert_eq!(ask(&server, post(&server, "/echo", &just_over, "")).await.0, 431);
}

#[tokio::test]
async fn a_length_that_is_none_is_400() {
    let server = server(&Script::new(), Limits::default()).await;
    let wrong = [
        "content-length: 18446744073709551616\r\n",
        "content-length: -1\r\n",
        "content-length: 1\r\ncontent-length: 2\r\n",
    ];
    for more in wrong {
        assert_eq!(ask(&server, post(&server, "/echo", more, "{}")).await.0, 400, "{more}");
    }
}

#[tokio::test]
async fn a_length_beside_chunks_is_400_in_either_order() {
    let script = Script::new();
    let server = server(&script, Limits::default()).await;
    let body = "2\r\n{}\r\n0\r\n\r\n";
    for more in [
        "content-length: 12\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 12\r\n",
    ] {
        assert_eq!(ask(&server, post(&server, "/echo", more, body)).await.0, 400, "{more}");
    }
    assert_eq!(script.peers.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_second_request_before_the_answer_to_the_first_is_400_whatever_lengths_it_has() {
    let script = Script::new();
    let server = server(&script, long()).await;
    let first = post(&server, "/wait", "content-length: 2\r\n", "{}");
    let both = "content-length: 12\r\ntransfer-encoding: chunked\r\n";
    let second = post(&server, "/echo", both, "2\r\n{}\r\n0\r\n\r\n");
    let (halves, plain) = (
        second.split_at(40),
        post(&server, "/echo", "content-length: 2\r\n", "{}"),
    );
    for (at_once, later) in [
        (format!("{first}{second}"), ""),
        (format!("{first}{}", halves.0), halves.1),
        (format!("{first}{plain}"), ""),
    ] {
        let mut stream = connect(&server).await;
        stream.write_all(at_once.as_bytes()).await.unwrap();
        script.started(1).await;
        script.go.add_permits(1);
        let answer = read_until(&mut stream, "gone").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        stream.write_all(later.as_bytes()).await.unwrap();
        let answer = read_to_end(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{at_once}: {answer}");
    }
    assert_eq!(script.peers.lock().unwrap().len(), 3, "the first of each");
}

#[tokio::test]
async fn no_host_and_two_hosts_are_400() {
    let server = server(&Script::new(), Limits::default()).await;
    assert_eq!(ask(&server, "POST /echo HTTP/1.1\r\n\r\n").await.0, 400);
    assert_eq!(ask(&server, "POST /echo HTTP/1.0\r\n\r\n").await.0, 400);
    let second = format!("host: {}\r\n", server.local_addr());
    assert_eq!(ask(&server, post(&server, "/echo", &second, "")).await.0, 400);
}

#[tokio::test]
async fn m_13_a_declared_terabyte_is_413_at_once() {
    let script = Script::new();
    let server = server(&script, long()).await;
    for length in ["1099511627776", "10000000000", "4194305"] {
        let more = format!("content-length: {length}\r\n");
        assert_eq!(ask(&server, post(&server, "/echo", &more, "")).await.0, 413, "{length}");
    }
    assert_eq!(script.peers.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn m_13_chunks_are_read_up_to_the_limit() {
    let server = server(
        &Script::new(),
        Limits {
            body_bytes: 10,
            ..long()
        },
    )
    .await;
    let chunked = "transfer-encoding: chunked\r\n";
    let close = "transfer-encoding: chunked\r\nconnection: close\r\n";
    let (status, answer) = ask(
        &server,
        post(&server, "/echo", close, "4\r\nabcd\r\n6\r\nefghij\r\n0\r\n\r\n"),
    )
    .await;
    assert_eq!((status, answer.ends_with("10 bytes")), (200, true), "{answer}");
    // The last chunk never ends: the answer does not wait for it.
    assert_eq!(
        ask(&server, post(&server, "/echo", chunked, "4\r\nabcd\r\n7\r\nefghijk"))
            .await
            .0,
        413
    );
}

#[tokio::test]
async fn m_13_a_client_that_goes_on_sending_still_reads_its_413() {
    let server = server(&Script::new(), Limits::default()).await;
    let body = "x".repeat(128 << 10);
    let request = post(&server, "/echo", "content-length: 10000000000\r\n", &body);
    assert_eq!(ask(&server, request).await.0, 413);
}

#[tokio::test]
async fn a_body_that_never_comes_is_408() {
    let server = server(
        &Script::new(),
        Limits {
            body_timeout: SHORT,
            ..long()
        },
    )
    .await;
    assert_eq!(
        ask(&server, post(&server, "/echo", "content-length: 9\r\n", "{"))
            .await
            .0,
        408
    );
    assert_eq!(
        ask(
            &server,
            post(&server, "/echo", "transfer-encoding: chunked\r\n", "1\r\n")
        )
        .await
        .0,
        408
    );
}

#[tokio::test]
async fn a_reader_that_never_reads_is_let_go() {
    let script = Script::new();
    let server = server(
        &script,
        Limits {
            write_stall: SHORT,
            ..long()
        },
    )
    .await;
    let mut stream = connect(&server).await;
    let request = post(&server, "/endless", "content-length: 2\r\n", "{}");
    stream.write_all(request.as_bytes()).await.unwrap();
    script.drops.wait(1).await;
}
