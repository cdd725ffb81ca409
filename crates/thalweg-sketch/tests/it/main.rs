//! Guarantees of the sketches, and their saved states.

mod always_correct;
mod guarantees;
mod oracle;
mod sampling;
mod state;
mod streams;
