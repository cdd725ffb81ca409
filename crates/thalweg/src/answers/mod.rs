//! What measurement tasks say, for people: written from the one table that all kinds share
//! ([`thalweg_measure::tasks::Table`]). As JSON: `thalweg_watch::json`.

pub(crate) mod text;
