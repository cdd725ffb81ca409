//! Sketches of tasks inside the kernel (`thalweg watch --in-kernel`). A worker reads them (`worker::kernel`).
//!
//! | file | contents |
//! |---|---|
//! | `specification` | the sketches that the tasks of a plan need |
//! | `states` | windows of the kernel as states of tasks |
//! | `totals` | what the report says of the kernel |

mod specification;
mod states;
mod totals;

use thalweg_dataplane::{Counting, CountingOptions, DataplaneError, HookChoice, PinName};
use thalweg_measure::tasks::{FlowBytes, Plan};
use thiserror::Error;

pub(crate) use states::{states, tally};
pub use totals::InKernelTotals;

/// Options of counting in the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InKernelOptions {
    /// Where the program is attached.
    pub hook: HookChoice,
    /// Pins program and memory under this name, or continues with them. Default not pinned.
    pub pin: Option<PinName>,
}

/// Why tasks cannot be counted in the kernel.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InKernelError {
    /// The program or its memory.
    #[error(transparent)]
    Dataplane(#[from] DataplaneError),
    /// No tasks.
    #[error("--in-kernel counts measurement tasks only: add --tasks, such as --tasks heavy:1%")]
    NoTasks,
    /// A task has no program.
    #[error(
        "task {task} cannot be counted in the kernel: expected heavy, change, entropy, moments or distinct"
    )]
    Task {
        /// The task.
        task: String,
    },
    /// More tasks than a program counts.
    #[error("{found} tasks: --in-kernel counts at most {}", thalweg_dataplane::spec::MAX_SKETCHES)]
    Tasks {
        /// The number of tasks.
        found: usize,
    },
    /// The sampling needs the state of user space.
    #[error("--sampling correct is not available with --in-kernel: expected 1, 1/2, ... 1/1024 or line-rate")]
    Sampling,
    /// A capture file or a DPDK port.
    #[error("--in-kernel counts a network interface: {source_name} is a {what}")]
    NotAnInterface {
        /// The source.
        source_name: String,
        /// What it is.
        what: &'static str,
    },
    /// Not one interface.
    #[error("--in-kernel counts one interface: expected one name, found {}", found.join(", "))]
    Sources {
        /// The sources.
        found: Vec<String>,
    },
}

/// Starts to count the tasks of a plan on an interface.
pub(crate) fn start(
    options: &InKernelOptions,
    sources: &[String],
    promiscuous: bool,
    plan: &Plan,
) -> Result<Counting<FlowBytes>, InKernelError> {
    let [interface] = sources else {
        return Err(InKernelError::Sources { found: sources.to_vec() });
    };
    let specification::KernelPlan { specification, probabilities, reader } =
        specification::kernel_plan(plan)?;
    Ok(Counting::start(CountingOptions {
        interface: interface.clone(),
        hook: options.hook,
        specification,
        probabilities,
        reader,
        promiscuous,
        pin: options.pin.clone(),
    })?)
}
