//! Integration tests: the store, imports, and flow receivers of other makes that decode our exports.

mod foreign_receivers;
mod import;
mod skip;
mod store;
