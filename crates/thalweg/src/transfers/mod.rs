//! `thalweg transfers`: what is not in Python.
//!
//! | file | contents |
//! |---|---|
//! | `agent` | runs the agent of a transfer host |
//! | `hosts` | the hosts that report to a daemon |
//! | `subscribe` | subscriptions to reports |

pub mod agent;
pub mod hosts;
pub mod subscribe;
