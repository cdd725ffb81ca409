//! Integration tests: the store, and other collectors that decode our exports.

mod foreign_collectors;
mod skip;
mod store;
