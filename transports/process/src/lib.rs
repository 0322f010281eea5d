//! Library of the CLI transports: child supervision and the loopback tool bridge.
