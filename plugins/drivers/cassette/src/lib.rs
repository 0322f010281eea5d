//! Driver cassette: plays a recorded tape.
