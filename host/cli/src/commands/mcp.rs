//! `capsule mcp`: the capsule's tools for any client of MCP, without a model.

mod token;

use std::{
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use capsule_api::{Cancel, NobodyThere, Secret};
use capsule_mcp::{McpService, Options, serve_at, serve_lines};
use capsule_tools::Bindings;

use super::{on_runtime, tool::ToStderr};
use crate::{
    Choice, Failure,
    args::Mcp,
    assemble::{self, Equipped},
    failure,
    signals::{Signal, Signals},
};

/// How long calls under way may take to end when the client or a signal ends the server.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) fn mcp(command: &Mcp) -> Result<ExitCode, Failure> {
    let equipped = assemble::equip(&Choice::of(&command.path))?;
    let served = if command.http {
        let file = command.token_file.clone();
        let file = file.unwrap_or_else(|| equipped.places.state().join("mcp-token"));
        token::read_or_make(&file).and_then(|token| on_runtime(over_http(command.port, &equipped, (token, &file)))?)
    } else {
        on_runtime(over_pipes(&equipped)).and_then(|served| served)
    };
    assemble::put_away(equipped.toolbox);
    Ok(served?.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(signal.exit_code())))
}

/// The service; `shared` where more than one client may come.
fn service(equipped: &Equipped, shared: bool) -> McpService {
    let manifest = &equipped.loaded.manifest;
    let mut options = Options::new(&manifest.name, manifest.version.to_string());
    options.instructions.clone_from(&manifest.description);
    options.shared = shared;
    let dispatch = equipped.toolbox.dispatch(Bindings {
        sink: Arc::new(ToStderr),
        caller: Arc::new(NobodyThere),
        // Calls end with the service.
        cancel: Cancel::new(),
    });
    McpService::new(dispatch, equipped.clock.clone(), options)
}

/// One client on standard input and output, until it closes its end or a signal comes.
async fn over_pipes(equipped: &Equipped) -> Result<Option<Signal>, Failure> {
    let stop = Cancel::new();
    let signals = Signals::cancel(stop.clone())?;
    let serving = serve_lines(service(equipped, false), tokio::io::stdin(), tokio::io::stdout(), GRACE);
    tokio::select! {
        served = serving => match served {
            // A client that left is how this ends.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(failure::output(&error).into()),
            _ => {}
        },
        _ = stop.cancelled() => {}
    }
    Ok(signals.seen())
}

/// Any number of clients, until a signal comes.
async fn over_http(port: u16, equipped: &Equipped, (token, file): (Secret, &Path)) -> Result<Option<Signal>, Failure> {
    let stop = Cancel::new();
    let signals = Signals::cancel(stop.clone())?;
    let server = serve_at(service(equipped, true), port, token, equipped.clock.clone()).await?;
    // Standard output says where, for programs; the token is in its file alone.
    let said = writeln!(io::stdout().lock(), "{}", server.url());
    said.map_err(|error| failure::output(&error))?;
    // Without standard error there is nobody to show it to; clients may know the file already.
    let _ = writeln!(
        anstream::stderr().lock(),
        "the token is in {}; Ctrl-C ends the server",
        file.display()
    );
    stop.cancelled().await;
    server.close(GRACE).await;
    Ok(signals.seen())
}
