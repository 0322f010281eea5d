//! Task state, event log, trace and kept contexts.
