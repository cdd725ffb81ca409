//! What sketches say, as JSON: the answers of the API whose fields are those of the measurement tasks, and so are not in
//! `thalweg-api`, which knows nothing of them.
//!
//! | file | what it has |
//! |---|---|
//! | `task`, `task_view` | what sketches say |

mod task;
mod task_view;

use thalweg_api::{FlowName, Moment, Rate};

pub use task::{Answer, CollectorTasks, Task, Tasks, Window};
pub use task_view::{ChangedKey, HeavyKey, HeavyPrefix, Period, SpreadKey, TaskView};
