//! Guarantees of the sketches, and their saved states.

mod always_correct;
mod any;
mod guarantees;
mod on_demand;
mod oracle;
mod sampling;
mod state;
mod streams;
