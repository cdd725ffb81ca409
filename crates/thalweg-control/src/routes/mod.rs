//! What switches have to have installed so that flows can be steered: which rules, and which of them are missing.
//!
//! | module | what it has |
//! |---|---|
//! | [`paths`] | the links that a pair's packets take by each of the destination's addresses |
//! | [`rules`] | the rules of every switch, and what has to change to come from some to others |
//! | [`walk`] | whether rules lead everybody everywhere |

pub mod paths;
pub mod rules;
pub mod walk;

pub use paths::{LinkNumber, Paths};
pub use rules::{Change, Rule, Rules};
