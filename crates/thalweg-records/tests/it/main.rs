//! Integration tests: the store, and flow receivers of other makes that decode our exports.

mod foreign_receivers;
mod skip;
mod store;
