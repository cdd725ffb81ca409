//! What the sketches promise, and how their state is kept.

mod always_correct;
mod guarantees;
mod oracle;
mod sampling;
mod state;
mod streams;
