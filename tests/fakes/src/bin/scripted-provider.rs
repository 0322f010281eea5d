//! Serves a script from a JSON file until standard input ends or Ctrl-C.

#![warn(missing_docs)]

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use capsule_fakes::{Provider, Script};

const USAGE: &str = "usage: scripted-provider --script FILE [--port N] [--record FILE]";

struct Options {
    script: PathBuf,
    port: u16,
    record: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&mut std::io::stderr(), &format!("scripted-provider: {error}"));
            ExitCode::from(2)
        }
    }
}

/// True when no request broke a rule and none came after the script's end.
fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let options = parse(std::env::args().skip(1))?;
    let script = Script::load(&options.script)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let provider = Provider::start_on(script, options.port).await?;
        let listening = format!("listening on {}", provider.url());
        say(&mut std::io::stdout(), &listening);
        tokio::select! {
            () = stdin_ended() => {}
            pressed = tokio::signal::ctrl_c() => pressed?,
        }
        let sound = report(&provider);
        if let Some(path) = &options.record {
            let bodies: Vec<_> = provider.requests().into_iter().map(|r| r.body).collect();
            std::fs::write(path, serde_json::to_vec_pretty(&bodies)?)?;
        }
        provider.shutdown().await;
        Ok(sound)
    })
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let (mut script, mut port, mut record) = (None, 0, None);
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--script" => script = Some(PathBuf::from(value()?)),
            "--record" => record = Some(PathBuf::from(value()?)),
            "--port" => {
                let text = value()?;
                port = text.parse().map_err(|_| format!("not a port: {text}"))?;
            }
            _ => return Err(format!("unknown argument {flag}; {USAGE}")),
        }
    }
    let script = script.ok_or_else(|| USAGE.to_owned())?;
    Ok(Options { script, port, record })
}

/// Waits on a thread of its own, which the process does not wait for: a read of a terminal cannot
/// be called off.
async fn stdin_ended() {
    let (ended, wait) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 1024];
        while matches!(std::io::stdin().read(&mut buffer), Ok(1..)) {}
        // Nobody waits any more after Ctrl-C.
        let _ = ended.send(());
    });
    // An error would mean that the thread panicked; the program ends either way.
    let _ = wait.await;
}

fn report(provider: &Provider) -> bool {
    let violations = provider.violations();
    let overrun = provider.overrun();
    let mut stderr = std::io::stderr();
    say(&mut stderr, &format!("{} model requests", provider.requests().len()));
    for violation in &violations {
        say(&mut stderr, &format!("violation: {violation}"));
    }
    if overrun > 0 {
        say(&mut stderr, &format!("{overrun} requests after the script's end"));
    }
    violations.is_empty() && overrun == 0
}

fn say(to: &mut impl Write, line: &str) {
    // A reader that went away is no reason to stop serving.
    let _ = writeln!(to, "{line}");
    let _ = to.flush();
}
