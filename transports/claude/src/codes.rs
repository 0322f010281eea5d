//! Codes that the transport may raise.

capsule_transport_process::dialect_codes! {
    /// The endpoint is not https, nor http on loopback.
    ENDPOINT = "claude-endpoint", Settings,
        "`endpoint` is not an address that a key may be sent to.",
        "Give an https URL, or an http URL on loopback, without a user name in it.";
    /// There is no such program.
    NOT_FOUND = "claude-not-found", TransportUnavailable,
        "The Claude Code CLI was not found.",
        "Install the package `@anthropic-ai/claude-code` in version 2.1.332, or set `inference.command` to the path of its native binary.";
    /// The command is a script.
    WRAPPER = "claude-wrapper", TransportUnavailable,
        "The command is a wrapper script, not the native binary: a wrapper that is killed leaves the CLI running.",
        "Set `inference.command` to the native binary, the file `claude` in the package `@anthropic-ai/claude-code-linux-x64` (or the one for this platform).";
    /// The version cannot be read.
    VERSION_UNREADABLE = "claude-version-unreadable", TransportUnavailable,
        "The command does not answer `--version` as the Claude Code CLI does.",
        "Check that `inference.command` names the Claude Code CLI and that it starts on this machine.";
    /// The version is too old.
    TOO_OLD = "claude-too-old", TransportUnavailable,
        "The Claude Code CLI is older than the oldest version whose containment is known to hold.",
        "Update the CLI to version 2.1.332 or a newer one.";
    /// A file in the input.
    INPUT = "claude-input", BadRequest,
        "The input holds a file, which this transport cannot pass on.",
        "Send text or JSON, or use a transport that takes files.";
    /// The tools did not arrive.
    TOOLS = "claude-tools", ToolsUnavailable,
        "The CLI did not get exactly the capsule's tools, so the run was ended before any answer was accepted.",
        "Run it again; if it stays so, report it with the trace: the message says which tools differ.";
    /// Somebody else pays.
    BILLING = "claude-billing", Auth,
        "The CLI would have used another credential than the manifest asks for.",
        "Check `inference.login` and policies of this machine (managed settings) that set a credential for the CLI.";
    /// 401, 403, not logged in.
    AUTH = "claude-auth", Auth,
        "The provider refused the credential.",
        "Check that the login or key that `inference.login` names is valid and may use the model.";
    /// 429.
    RATE_LIMITED = "claude-rate-limited", RateLimited,
        "The provider limits the rate of requests.",
        "Wait before the next run, or raise the limits of the account.";
    /// 529 and other failures of the server.
    OVERLOADED = "claude-overloaded", Overloaded,
        "The provider is overloaded or failing, also after the CLI's own retries.",
        "Try again later.";
    /// No credit.
    QUOTA = "claude-quota", Quota,
        "The account has no credit left.",
        "Add credit to the account that pays, or wait until the plan's limit is reset.";
    /// The context window is full.
    CONTEXT = "claude-context", ContextOverflow,
        "The conversation no longer fits the model's context window.",
        "Start a new conversation, or make the task, the tools or their results smaller.";
    /// 400.
    BAD_REQUEST = "claude-bad-request", BadRequest,
        "The provider refused the request.",
        "The message holds the provider's reason; if it speaks of the CLI's own parameters, try another model.";
    /// Unknown model.
    MODEL = "claude-model", BadRequest,
        "The model does not exist or the key may not use it.",
        "Correct `inference.model`.";
    /// The connection.
    NETWORK = "claude-network", Network,
        "The connection to the provider could not be made or broke, also after the CLI's own retries.",
        "Check the network and `inference.endpoint`, then try again.";
    /// The session is gone.
    SESSION_LOST = "claude-session-lost", ConversationLost,
        "The CLI no longer has the conversation that should go on.",
        "Start a new conversation; its state directory was removed or belongs to another machine.";
    /// A resume state of another version.
    RESUME_VERSION = "claude-resume-version", ConversationLost,
        "The kept conversation was written by another version of this transport.",
        "Start a new conversation.";
    /// No terminal event.
    NO_RESULT = "claude-no-result", Crashed,
        "The CLI ended without a terminal event, so there is no answer.",
        "Read the end of its stderr in the context of this error.";
    /// A good result and a bad exit.
    EXIT = "claude-exit", Crashed,
        "The CLI reported success and then failed.",
        "Read the end of its stderr in the context of this error.";
    /// The model was never asked.
    NOT_ASKED = "claude-not-asked", Protocol,
        "The CLI reported success without having asked the model.",
        "Report it with the trace: the CLI took the task for a command of its own.";
    /// Anything else.
    FAILED = "claude-failed", Protocol,
        "The CLI reported a failure that this transport does not know.",
        "Read the message; if it is no help, report it with the trace.";
}
