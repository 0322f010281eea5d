//! The kit over every registered transport with the real sandbox.
