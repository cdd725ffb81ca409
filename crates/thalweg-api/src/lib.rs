//! The JSON types of the daemon's HTTP API, and a client.
//!
//! They are types of their own, so that what is measured can change without what is said. Their documentation is that of
//! the schemas in `/v1/openapi.json` and of `docs/reference/http-api.md`. The daemon has what makes them of its values, and
//! what sketches say, whose fields are those of the measurement tasks.
//!
//! | file | what it has |
//! |---|---|
//! | `moment` | times |
//! | `rate` | rates and shares with their bounds |
//! | `flow`, `link` | flows, links, and their names |
//! | `event` | what is told without being asked |
//! | `collector` | collectors: what they are and how they do |
//! | `control` | the controller |
//! | `answered` | who answered, and when |
//! | `samples` | files of samples |
//! | `task` | what sketches say |
//! | `topology` | versions of the network |
//! | `problem` | why a request was not answered (RFC 9457) |
//! | `client` | a client (feature `client`) |

mod answered;
#[cfg(feature = "client")]
pub mod client;
mod collector;
mod control;
mod event;
mod flow;
mod link;
mod moment;
pub mod problem;
mod rate;
mod samples;
mod task;
mod topology;

pub use answered::Answered;
pub use collector::{Collector, Collectors, Counts, Health, State, StateName};
pub use control::{
    Action, Actions, Alternative, Control, ControlCounts, Decision, Decisions, Frozen, Outcome, Pin, PinTo,
    Unresponsive, Verdict, Way, Ways,
};
pub use event::{CrossingName, Event, EventBody, Lost};
pub use flow::{Basis, Flow, FlowName, FlowRate, Flows, Span};
pub use link::{Link, LinkName, Links, ParseLinkNameError, WayName};
pub use moment::Moment;
pub use rate::{BoundKind, Rate};
pub use samples::{SampleFile, Samples};
pub use task::{Answer, CollectorTasks, Period, Task, Tasks, Window};
pub use topology::{NewTopology, Topology, Unconfirmed};

/// The port that a daemon listens on unless configured otherwise.
pub const DEFAULT_PORT: u16 = 9_477;
