//! Driver anthropic: the Messages API.
