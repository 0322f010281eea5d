//! Transport echo: the deterministic example.
