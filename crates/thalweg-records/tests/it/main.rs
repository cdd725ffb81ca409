//! What is kept, and what other people's collectors say of the same.

mod foreign_collectors;
mod skip;
mod store;
