//! Converts the daemon's values to the JSON types of `thalweg-api`.

mod alert;
mod collector;
mod collector_response;
mod control;
mod event;
mod flow;
mod interface;
mod isolation;
mod link;
mod live_status;
mod rate;
mod samples;
mod task;
mod task_view;
mod threshold;
mod topology;

pub use alert::alert;
pub use collector::{collector, state};
pub use collector_response::{collector_response, collector_response_at};
pub use control::{action, control, decision, paths};
pub use event::event;
pub use flow::{flow, flow_rate};
pub use interface::polled_interface;
pub use isolation::{redirection, redirections};
pub use link::{KnownLink, link};
pub use live_status::live_status;
pub use rate::rate;
pub use samples::sample_file;
pub use task::{task_results, tasks};
pub use task_view::TaskView;
pub use threshold::threshold;
pub use topology::{new_topology, topology};
