//! MCP server over a tool dispatch; knows no process and no CLI.
