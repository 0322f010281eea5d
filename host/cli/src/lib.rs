//! The capsule command line, as a library with main().
