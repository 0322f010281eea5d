//! Forbidden crate edges, read from cargo metadata.
