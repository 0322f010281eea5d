//! Transport claude: drives the Claude Code CLI headless.
