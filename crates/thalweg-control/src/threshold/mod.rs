//! Adaptation of the rate threshold R of cheetah flows.

pub mod regulator;
