//! Benchmarks side by side.
