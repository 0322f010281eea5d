//! Guarded HTTP listener and outbound connector with an address policy.
