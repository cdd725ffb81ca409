//! Checks the structure in `ARCHITECTURE.md`: the crates, their dependencies, and that modules have no cycles.
//!
//! The tests are in this crate because it compiles first.

mod crates;
mod documents;
mod figures;
mod modules;
