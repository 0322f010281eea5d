//! Registration survives a release build with link-time optimisation.
