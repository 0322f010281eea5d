//! Codes that the transport may raise.

capsule_transport_process::dialect_codes! {
    /// The endpoint is not https, nor http on loopback.
    ENDPOINT = "codex-endpoint", Settings,
        "`endpoint` is not an address that a key may be sent to.",
        "Give an https URL, or an http URL on loopback, without a user name in it.";
    /// No model is named.
    NO_MODEL = "codex-no-model", Settings,
        "The transport needs the name of a model: it tells the CLI how that model is to be offered its tools.",
        "Set `inference.model`.";
    /// There is no such program.
    NOT_FOUND = "codex-not-found", TransportUnavailable,
        "The Codex CLI was not found.",
        "Install the package `@openai/codex` in version 0.171.0, or set `inference.command` to the path of its native binary.";
    /// The command is a script.
    WRAPPER = "codex-wrapper", TransportUnavailable,
        "The command is a wrapper script and its native binary is not beside it: a wrapper that is killed leaves the CLI running.",
        "Set `inference.command` to the native binary, `vendor/<platform>/bin/codex` in the package `@openai/codex-linux-x64` (or the one for this platform).";
    /// The version cannot be read.
    VERSION_UNREADABLE = "codex-version-unreadable", TransportUnavailable,
        "The command does not answer `--version` as the Codex CLI does.",
        "Check that `inference.command` names the Codex CLI and that it starts on this machine.";
    /// The version is too old.
    TOO_OLD = "codex-too-old", TransportUnavailable,
        "The Codex CLI is older than the oldest version whose containment is known to hold.",
        "Update the CLI to version 0.171.0 or a newer one.";
    /// The shell cannot be turned off.
    CONTAINMENT = "codex-containment", TransportUnavailable,
        "This version of the CLI does not know a switch that keeps its model from running commands on this machine.",
        "Use version 0.171.0 of the CLI; the message names the switch.";
    /// The app-server is missing.
    NO_APP_SERVER = "codex-no-app-server", TransportUnavailable,
        "The CLI has no working app-server, which is the only way this transport drives it.",
        "Use version 0.171.0 of the CLI.";
    /// A flag or key is not known.
    CONFIG = "codex-config", TransportUnavailable,
        "The CLI refused or ignored a part of its configuration, so it is not known to be contained.",
        "Use version 0.171.0 of the CLI; the message names the part.";
    /// A file in the input.
    INPUT = "codex-input", BadRequest,
        "The input holds a file, which this transport cannot pass on.",
        "Send text or JSON, or use a transport that takes files.";
    /// The input is too long.
    INPUT_TOO_LONG = "codex-input-too-long", BadRequest,
        "The input is longer than the CLI takes: 1,048,576 characters.",
        "Make the task shorter, or let a tool read what it is about.";
    /// The tools did not arrive, or others than ours ran.
    TOOLS = "codex-tools", ToolsUnavailable,
        "The CLI does not have exactly the capsule's tools, so the run was ended.",
        "Run it again; if it stays so, report it with the trace: the message says what differs.";
    /// Somebody else pays.
    BILLING = "codex-billing", Auth,
        "The CLI would have used another provider or credential than the manifest asks for.",
        "Check `inference.login` and policies of this machine that set a provider for the CLI.";
    /// 401, 403.
    AUTH = "codex-auth", Auth,
        "The provider refused the credential.",
        "Check that the login or key that `inference.login` names is valid and may use the model.";
    /// 429.
    RATE_LIMITED = "codex-rate-limited", RateLimited,
        "The provider limits the rate of requests.",
        "Wait before the next run, or raise the limits of the account.";
    /// 529 and other failures of the server.
    OVERLOADED = "codex-overloaded", Overloaded,
        "The provider is overloaded or failing, also after the CLI's own retries.",
        "Try again later.";
    /// No credit.
    QUOTA = "codex-quota", Quota,
        "The account has no credit left.",
        "Add credit to the account that pays, or wait until the plan's limit is reset.";
    /// The context window is full.
    CONTEXT = "codex-context", ContextOverflow,
        "The conversation no longer fits the model's context window.",
        "Start a new conversation, or make the task, the tools or their results smaller.";
    /// 400.
    BAD_REQUEST = "codex-bad-request", BadRequest,
        "The provider refused the request.",
        "The message holds the provider's reason; if it speaks of the CLI's own parameters, try another model.";
    /// Unknown model.
    MODEL = "codex-model", BadRequest,
        "The model does not exist or the key may not use it.",
        "Correct `inference.model`.";
    /// The connection.
    NETWORK = "codex-network", Network,
        "The connection to the provider could not be made or broke, also after the CLI's own retries.",
        "Check the network and `inference.endpoint`, then try again.";
    /// The thread is gone.
    SESSION_LOST = "codex-session-lost", ConversationLost,
        "The CLI no longer has the conversation that should go on.",
        "Start a new conversation; its state directory was removed or belongs to another machine.";
    /// A resume state of another version.
    RESUME_VERSION = "codex-resume-version", ConversationLost,
        "The kept conversation was written by another version of this transport.",
        "Start a new conversation.";
    /// No terminal event.
    NO_RESULT = "codex-no-result", Crashed,
        "The CLI ended without a terminal event, so there is no answer.",
        "Read the end of its stderr in the context of this error.";
    /// A good turn and a bad exit.
    EXIT = "codex-exit", Crashed,
        "The CLI completed the turn and then failed.",
        "Read the end of its stderr in the context of this error.";
    /// The model was never asked.
    NOT_ASKED = "codex-not-asked", Protocol,
        "The CLI completed the turn without having asked the model.",
        "Report it with the trace.";
    /// Anything else.
    FAILED = "codex-failed", Protocol,
        "The CLI reported a failure that this transport does not know.",
        "Read the message; if it is no help, report it with the trace.";
}
