//! Scripted model provider and misbehaving peers.
