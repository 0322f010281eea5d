//! Nothing of the machine's and the person's own gets into a run, and a run needs no more than it is given.

use std::{collections::BTreeSet, fs, path::Path};

use capsule_api::Input;
use capsule_fakes::{Reply, Script};
use serde_json::json;

use crate::{
    cli::{CLAUDE, Cli, of_each_cli},
    support::{KEY, Scene, Under, alone_with, names_in},
    watch::{Seen, cli_of},
};

of_each_cli!(
    p_10_the_prompt_goes_by_standard_input_alone,
    p_12_the_environment_is_the_allow_list,
    a_proxy_that_is_passed_on_is_not_used_for_this_machine,
    p_13_a_key_in_the_hosts_environment_pays_for_nothing,
    p_14_nothing_is_bypassed_whoever_runs_it,
    p_15_nothing_of_the_persons_own_is_loaded,
    p_15_home_configuration_and_working_directory_are_private,
);

/// What `look` finds while a tool call of the CLI runs; the turn is cancelled then.
async fn in_the_middle<T>(scene: &Scene, look: impl FnOnce(&Seen) -> T) -> T {
    let mut talk = scene.open(scene.spec()).await;
    let (under, io) = Under::new();
    let turn = talk.0.turn(Input::text("PROMPT-OF-THE-TEST"), io);
    let look = async {
        under.tools.live_calls(1).await;
        let found = look(&cli_of(scene));
        under.cancel();
        found
    };
    let (_, found) = tokio::join!(turn, look);
    talk.close().await;
    found
}

fn sleeping() -> Script {
    Script::new().then(Reply::new().call("call-1", "sleep", json!({})))
}

async fn p_10_the_prompt_goes_by_standard_input_alone(cli: &Cli) {
    let Some(scene) = cli.scene(sleeping()).await else {
        return;
    };
    let (args, stdin) = in_the_middle(&scene, |seen| {
        let stdin = fs::read_link(format!("/proc/{}/fd/0", seen.id)).unwrap();
        (seen.args.clone(), stdin.display().to_string())
    })
    .await;
    assert!(!args.contains("PROMPT-OF-THE-TEST"), "{args}");
    assert!(stdin.starts_with("pipe:") || stdin.starts_with("socket:"), "{stdin}");
    // To its own end: a CLI that waits for more input would be ended, which shows as a warning.
    let Some(scene) = cli.scene(Script::new().then(Reply::text("Read."))).await else {
        return;
    };
    let told = scene.ask("PROMPT-OF-THE-TEST").await;
    assert_eq!((told.answer(), told.warnings()), ("Read.", vec![]));
    assert_eq!(cli.user_texts(&scene.request(0)), ["PROMPT-OF-THE-TEST"]);
}

/// Variables of a host that runs inside another agent, and has keys and proxies of its own.
const HOSTS: [(&str, &str); 12] = [
    ("CLAUDECODE", "1"),
    ("CLAUDE_CODE_ENTRYPOINT", "cli"),
    ("CLAUDE_CODE_SSE_PORT", "1"),
    ("CODEX_SANDBOX", "seatbelt"),
    ("ANTHROPIC_API_KEY", "sk-ant-foreign"),
    ("ANTHROPIC_AUTH_TOKEN", "foreign"),
    ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9"),
    ("OPENAI_API_KEY", "sk-foreign"),
    ("CODEX_API_KEY", "sk-foreign"),
    ("HTTP_PROXY", "http://127.0.0.1:9"),
    ("HTTPS_PROXY", "http://127.0.0.1:9"),
    ("ALL_PROXY", "http://127.0.0.1:9"),
];

async fn p_12_the_environment_is_the_allow_list(cli: &Cli) {
    let name = format!("isolation::{}::p_12_the_environment_is_the_allow_list", cli.name);
    if !alone_with(&name, &HOSTS) {
        return;
    }
    let Some(scene) = cli.scene(sleeping()).await else {
        return;
    };
    let names: BTreeSet<String> = in_the_middle(&scene, |seen| {
        let variables = seen.environ.lines().filter_map(|line| line.split_once('='));
        variables.map(|(name, _)| name.to_owned()).collect()
    })
    .await;
    let own: &[&str] = if cli.name == CLAUDE.name {
        &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_DISABLE_ATTACHMENTS",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "CLAUDE_CODE_MAX_RETRIES",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_SECURESTORAGE_CONFIG_DIR",
            "DISABLE_AUTOUPDATER",
            "ENABLE_CLAUDEAI_MCP_SERVERS",
        ]
    } else {
        &["CAPSULE_MODEL_KEY", "CODEX_HOME", "NO_COLOR"]
    };
    let every = [
        "CAPSULE_MCP_TOKEN",
        "HOME",
        "NO_PROXY",
        "PATH",
        "TMPDIR",
        "XDG_CACHE_HOME",
    ];
    let wanted = own.iter().chain(&every).map(|name| (*name).to_owned());
    assert_eq!(names, wanted.collect());
}

/// The host's proxies refuse every connection: a request to the bridge or the provider that went to one would end the run.
async fn a_proxy_that_is_passed_on_is_not_used_for_this_machine(cli: &Cli) {
    let test = "a_proxy_that_is_passed_on_is_not_used_for_this_machine";
    if !alone_with(&format!("isolation::{}::{test}", cli.name), &HOSTS) {
        return;
    }
    let passed = json!({"pass_proxy": true});
    let Some(scene) = cli.set(sleeping(), passed.clone()).await else {
        return;
    };
    let proxies = in_the_middle(&scene, |seen| {
        let proxies = seen.environ.lines().filter(|line| line.contains("_PROXY="));
        proxies.map(str::to_owned).collect::<BTreeSet<_>>()
    })
    .await;
    let wanted = [
        "ALL_PROXY=http://127.0.0.1:9",
        "HTTPS_PROXY=http://127.0.0.1:9",
        "HTTP_PROXY=http://127.0.0.1:9",
        "NO_PROXY=127.0.0.1,localhost,::1",
    ];
    assert_eq!(proxies, wanted.map(str::to_owned).into());
    let script = Script::new()
        .then(Reply::new().call("call-1", "echo", json!({"text": "hello"})))
        .then(Reply::text("Done."));
    let Some(scene) = cli.set(script, passed).await else {
        return;
    };
    let told = scene.ask("Say hello.").await;
    assert_eq!((told.answer(), told.warnings()), ("Done.", vec![]));
}

async fn p_13_a_key_in_the_hosts_environment_pays_for_nothing(cli: &Cli) {
    let test = "p_13_a_key_in_the_hosts_environment_pays_for_nothing";
    if !alone_with(&format!("isolation::{}::{test}", cli.name), &HOSTS) {
        return;
    }
    let Some(scene) = cli.scene(Script::new().then(Reply::text("Hello."))).await else {
        return;
    };
    assert_eq!(scene.ask("Hi.").await.answer(), "Hello.");
    let requests = scene.provider.requests();
    let keys: Vec<_> = requests.iter().map(|request| request.key()).collect();
    assert_eq!(keys, [Some(KEY)]);
    assert!(!format!("{:?}", requests[0].headers).contains("foreign"));
}

async fn p_14_nothing_is_bypassed_whoever_runs_it(cli: &Cli) {
    let Some(scene) = cli.scene(sleeping()).await else {
        return;
    };
    let args = in_the_middle(&scene, |seen| seen.args.clone()).await;
    for word in ["bypass", "dangerous", "yolo", "full-access", "full-auto"] {
        assert!(!args.contains(word), "{word}: {args}");
    }
    let wanted: &[&str] = if cli.name == CLAUDE.name {
        &["--permission-mode\ndontAsk\n", "--allowedTools\nmcp__capsule\n"]
    } else {
        &["approval_policy=\"never\"", "sandbox_mode=\"read-only\""]
    };
    for words in wanted {
        assert!(args.contains(words), "{words}: {args}");
    }
    // And so the tools run, also for root, whom the CLI would refuse to bypass anything for.
    let script = Script::new()
        .then(Reply::new().call("call-1", "echo", json!({"text": "hello"})))
        .then(Reply::text("It said hello."));
    let Some(scene) = cli.scene(script).await else { return };
    let told = scene.ask("Greet me.").await;
    assert_eq!((told.answer(), told.warnings()), ("It said hello.", vec![]));
}

/// A home, and a project in it, with everything that the CLIs load by themselves; each would leave `trace` or say FOREIGN.
fn plant(home: &Path, project: &Path, trace: &Path) {
    let touch = format!("touch {}", trace.display());
    let hook = json!([{"hooks": [{"type": "command", "command": touch}]}]);
    let server = json!({"command": "/bin/sh", "args": ["-c", touch]});
    let settings = json!({
        "model": "foreign-model",
        "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"},
        "apiKeyHelper": touch,
        "permissions": {"deny": ["mcp__capsule"]},
        "hooks": {"SessionStart": hook, "UserPromptSubmit": hook, "PreToolUse": hook, "Stop": hook},
    });
    let codex = format!(
        "model = \"foreign-model\"\nnotify = [\"/bin/sh\", \"-c\", \"{touch}\"]\n\
         [mcp_servers.capsule]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"{touch}\"]\n"
    );
    let skill = "---\nname: foreign\ndescription: FOREIGN skill\n---\nFOREIGN\n";
    for root in [home, project] {
        for (path, content) in [
            ("CLAUDE.md", "FOREIGN"),
            (".claude/CLAUDE.md", "FOREIGN"),
            (".claude/settings.json", &settings.to_string()),
            (".claude/settings.local.json", &settings.to_string()),
            (".claude/skills/foreign/SKILL.md", skill),
            (".claude.json", &json!({"mcpServers": {"foreign": server}}).to_string()),
            (".mcp.json", &json!({"mcpServers": {"foreign": server}}).to_string()),
            ("AGENTS.md", "FOREIGN"),
            (".codex/AGENTS.md", "FOREIGN"),
            (".codex/config.toml", &codex),
            (".codex/skills/foreign/SKILL.md", skill),
            (".agents/skills/foreign/SKILL.md", skill),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }
}

async fn p_15_nothing_of_the_persons_own_is_loaded(cli: &Cli) {
    const PROJECT: &str = "CAPSULE_TEST_PROJECT";
    let Some(project) = std::env::var_os(PROJECT) else {
        let planted = tempfile::tempdir().unwrap();
        let home = planted.path().join("home");
        let project = home.join("project");
        plant(&home, &project, &planted.path().join("trace"));
        let test = format!("isolation::{}::p_15_nothing_of_the_persons_own_is_loaded", cli.name);
        let (home, project) = (home.to_str().unwrap(), project.to_str().unwrap());
        alone_with(&test, &[("HOME", home), (PROJECT, project)]);
        assert_eq!(names_in(planted.path()), ["home"], "something of it was run");
        return;
    };
    // In the process of its own: where the person would have started it.
    std::env::set_current_dir(project).unwrap();
    let script = Script::new()
        .then(Reply::new().call("call-1", "echo", json!({"text": "hello"})))
        .then(Reply::text("It said hello."));
    let Some(scene) = cli.scene(script).await else { return };
    let told = scene.ask("$foreign Greet me.").await;
    assert_eq!((told.answer(), told.warnings()), ("It said hello.", vec![]));
    let requests = scene.provider.requests();
    for request in &requests {
        let body = request.body.to_string();
        assert!(!body.contains("FOREIGN") && !body.contains("foreign-model"), "{body}");
    }
    let kit = ["denied", "echo", "fail", "meet", "sleep"].map(|alias| format!("mcp__capsule__{alias}"));
    let mut wanted = cli.own_tools(true);
    wanted.extend(kit);
    assert_eq!(cli.offered(&requests[0].body), wanted);
}

async fn p_15_home_configuration_and_working_directory_are_private(cli: &Cli) {
    let Some(scene) = cli.scene(sleeping()).await else {
        return;
    };
    let run_dir = scene.run_dir();
    let (environ, work, found) = in_the_middle(&scene, |seen| {
        let work = fs::read_link(format!("/proc/{}/cwd", seen.id)).unwrap();
        let found = names_in(&work);
        (seen.environ.clone(), work, found)
    })
    .await;
    let config = if cli.name == CLAUDE.name {
        "CLAUDE_CONFIG_DIR"
    } else {
        "CODEX_HOME"
    };
    for name in ["HOME", config, "TMPDIR", "XDG_CACHE_HOME"] {
        let start = format!("{name}=");
        let value = environ.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
        assert!(Path::new(value).starts_with(&run_dir), "{name} is {value}");
    }
    assert!(work.starts_with(&run_dir), "{}", work.display());
    assert_eq!(found, Vec::<String>::new(), "the working directory is empty");
}
