//! The bridge between a real CLI and everybody else on the machine.

use std::{net::SocketAddr, sync::Arc};

use capsule_api::{ConversationSpec, ErrorKind, Input, ToolSpec};
use capsule_fakes::{Reply, Script};
use capsule_transport_kit::TestTools;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    cli::{CLAUDE, Cli, of_each_cli},
    misbehaviour::named,
    network::bridge_of,
    support::{Scene, Told, Under},
    watch::{cli_of, processes},
};

of_each_cli!(
    m_01_a_real_cli_without_its_connection_to_the_tools_gets_no_answer_through,
    m_04_hostile_clients_cost_a_running_conversation_nothing,
);

async fn m_01_a_real_cli_without_its_connection_to_the_tools_gets_no_answer_through(cli: &Cli) {
    let Some(real) = cli.path() else { return };
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(real, dir.path().join("real")).unwrap();
    // It takes connections and answers none, which is as late as can be.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let never_answers = format!("cli-port-{}", silent.local_addr().unwrap().port());
    for (name, is_connected) in [
        ("cli", true),
        ("cli-no-token", false),
        ("cli-wrong-token", false),
        ("cli-closed-port", false),
        (&never_answers, false),
    ] {
        let script = Script::new().then(Reply::text("An answer.")).repeat_last();
        let stand_in = named(cli, dir.path(), name);
        let scene = Scene::of(cli.name, &stand_in, script, json!({})).await;
        let told = scene.ask("Go.").await;
        if is_connected {
            assert_eq!(told.answer(), "An answer.");
            continue;
        }
        assert_eq!(
            (told.error().code, told.error().kind),
            (cli.code("tools").as_str(), ErrorKind::ToolsUnavailable),
            "{name}"
        );
        assert_eq!(told.log.fold().texts(), Vec::<&str>::new(), "{name}");
        assert_eq!(processes(&scene), Vec::<u32>::new(), "{name}");
    }
}

/// The status of the answer to these bytes.
async fn status(bridge: SocketAddr, bytes: &str) -> u16 {
    let mut stream = TcpStream::connect(bridge).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The refusal ends the connection; a reset after it counts as the end.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer)[9..12].parse().unwrap()
}

/// What others on the machine, and web pages, may try; and what each is answered.
async fn attack(bridge: SocketAddr, token: &str) {
    let json = "content-type: application/json\r\ncontent-length: 1099511627776\r\n";
    let good = format!("authorization: Bearer {token}\r\n");
    let wrong = format!("authorization: Bearer {}\r\n", token.to_uppercase());
    let ours = format!("host: {bridge}\r\n");
    for (head, wanted) in [
        (format!("POST /mcp HTTP/1.1\r\n{ours}{json}\r\n"), 401),
        (format!("POST /mcp HTTP/1.1\r\n{ours}{wrong}{json}\r\n"), 401),
        (format!("GET /mcp HTTP/1.1\r\n{ours}\r\n"), 401),
        (
            format!("POST /mcp HTTP/1.1\r\nhost: evil.test\r\n{good}{json}\r\n"),
            403,
        ),
        (
            format!("POST /mcp HTTP/1.1\r\n{ours}origin: null\r\n{good}{json}\r\n"),
            403,
        ),
        (
            format!("GET /.well-known/oauth-protected-resource HTTP/1.1\r\n{ours}\r\n"),
            404,
        ),
        (format!("POST /register HTTP/1.1\r\n{ours}{json}\r\n"), 404),
        (format!("GET /mcp HTTP/1.1\r\n{ours}{good}\r\n"), 405),
        (format!("POST /mcp HTTP/1.1\r\n{ours}{good}{json}\r\n"), 413),
    ] {
        assert_eq!(status(bridge, &head).await, wanted, "{}", head.replace(token, "TOKEN"));
    }
}

async fn m_04_hostile_clients_cost_a_running_conversation_nothing(cli: &Cli) {
    let both = Reply::new()
        .call("call-2", "meet", json!({}))
        .call("call-3", "meet", json!({}));
    let script = Script::new()
        .then(
            Reply::text(["first ", "second"])
                .call("call-1", "echo", json!({"text": "hello"}))
                .stall(cli.first_piece()),
        )
        // Each on a connection of its own.
        .then(both)
        .then(Reply::text("Undisturbed."));
    let Some(scene) = cli.scene(script).await else { return };
    let mut talk = scene.open(scene.spec()).await;
    let (under, io) = Under::new();
    let turn = talk.0.turn(Input::text("Go."), io);
    let hostile = async {
        scene.provider.gate().reached(1).await;
        let bridge = bridge_of(&scene);
        let token = cli_of(&scene).variable("CAPSULE_MCP_TOKEN").unwrap().to_owned();
        attack(bridge, &token).await;
        // More than there are places, and held to the end of the turn.
        let mut held = Vec::new();
        for n in 0..600 {
            let mut stream = TcpStream::connect(bridge).await.unwrap();
            if n % 2 == 0 {
                // It may have had to give way already.
                let _ = stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: ").await;
            }
            held.push(stream);
        }
        scene.provider.gate().open();
        held
    };
    let (outcome, _held) = tokio::join!(turn, hostile);
    under.log.close();
    talk.close().await;
    let told = Told {
        outcome,
        log: under.log,
    };
    assert_eq!((told.answer(), told.warnings()), ("Undisturbed.", vec![]));
}

#[tokio::test]
async fn m_01_claude_that_drops_the_tools_gets_no_answer_through() {
    let script = Script::new()
        .then(Reply::text("An answer without tools."))
        .repeat_last();
    let Some(scene) = CLAUDE.scene(script).await else {
        return;
    };
    // The host would not let this schema pass. For one like it the CLI leaves out every tool, says that
    // the server is connected, and goes on.
    let mut catalogue = (*TestTools::offered()).clone();
    let template = catalogue.tools[0].clone();
    catalogue.tools.push(ToolSpec {
        name: "odd".into(),
        alias: "odd".into(),
        input_schema: json!({"type": "string"}),
        ..template
    });
    let spec = ConversationSpec {
        catalogue: Arc::new(catalogue),
        ..scene.spec()
    };
    let told = scene.ask_as(spec, "Go.").await;
    assert_eq!(
        (told.error().code, told.error().kind),
        ("claude-tools", ErrorKind::ToolsUnavailable)
    );
    assert_eq!(told.log.fold().texts(), Vec::<&str>::new());
}
