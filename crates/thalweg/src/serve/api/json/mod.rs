//! What the API says, as JSON: types of their own, so that what is measured can change without what is said.
//!
//! Their documentation is that of the schemas in `/v1/openapi.json` and of `docs/reference/http-api.md`.
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
//! | `task`, `task_view` | what sketches say |
//! | `topology` | versions of the network |

mod answered;
mod collector;
mod control;
mod event;
mod flow;
mod link;
mod moment;
mod rate;
mod samples;
mod task;
mod task_view;
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
pub use task::{Answer, CollectorTasks, Task, Tasks, Window};
pub use task_view::{Period, TaskView};
pub use topology::{NewTopology, Topology, Unconfirmed};
