//! What the daemon knows, as the API says it: from its own values to the JSON types of `thalweg-api`.

mod answered;
mod collector;
mod control;
mod event;
mod flow;
mod link;
mod rate;
mod samples;
mod task;
mod task_view;
mod topology;

pub use answered::{answered, answered_at};
pub use collector::{collector, state};
pub use control::{action, control, decision, ways};
pub use event::event;
pub use flow::{flow, flow_rate};
pub use link::{link, link_name};
pub use rate::rate;
pub use samples::sample_file;
pub use task::tasks;
pub use task_view::TaskView;
pub use topology::{new_topology, topology};
