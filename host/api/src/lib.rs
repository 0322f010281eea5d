//! The contract between the Capsule host and its plugins: types and traits, nothing else.
