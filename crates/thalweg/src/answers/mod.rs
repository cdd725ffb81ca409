//! What measurement tasks say, written for each medium from the one table that all kinds share
//! ([`thalweg_measure::tasks::Table`]).

pub(crate) mod json;
pub(crate) mod text;
