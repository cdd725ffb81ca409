//! The tree is what `ARCHITECTURE.md` says: which crates there are, what uses what, and that nothing goes in circles.
//!
//! It is tested here because this crate compiles first.

mod crates;
mod documents;
mod modules;
