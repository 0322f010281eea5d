//! Conformance cases for any transport.
