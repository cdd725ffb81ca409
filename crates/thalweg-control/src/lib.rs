//! Steering: which flow goes which way; no I/O, no threads, no clock (Rasley et al., "Planck", SIGCOMM 2014, sections 3.3,
//! 4.1 and 6.2).
//!
//! | module | what it has |
//! |---|---|
//! | [`pair`] | what is steered: a source and a destination |
//! | [`routes`] | what switches have to have installed for that |
//! | [`notices`] | from what collectors tell to what deciders are told |
//! | [`decide`] | which pair goes which way; pure |
//! | [`action`] | what is to be done to a pair |
//! | [`controller`] | which pair is to go where, and what came of it |
//! | [`control_loop`] | all of it as one loop without I/O: inputs and time in, commands out |

#![forbid(unsafe_code)]

pub mod action;
pub mod control_loop;
pub mod controller;
pub mod decide;
pub mod notices;
pub mod pair;
pub mod routes;

pub use pair::Pair;
