//! Paths of pairs, and the rules that switches need for them.
//!
//! | module | contents |
//! |---|---|
//! | [`paths`] | the links of each path of a pair |
//! | [`rules`] | the rules of every switch, and the changes from one set to another |
//! | [`faults`] | how the rules of a switch differ from those that were sent |
//! | [`reachability`] | verifies that installed rules deliver all packets |

pub mod faults;
pub mod paths;
pub mod reachability;
pub mod rules;

pub use faults::RuleFaults;
pub use paths::{LinkNumber, Paths};
pub use rules::{Change, Rule, Rules};
