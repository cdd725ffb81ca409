//! What a lab puts in the place of, or between, parts of the controller: switches that it alone can speak to, and faults.

use std::fmt;

use thalweg_control::control_loop::Input;
use thalweg_control::routes::Change;
use thalweg_wire::Nanos;

/// What a lab brings. By default nothing.
#[derive(Default)]
pub struct Injected {
    /// Switches whose rules can be read back and put right.
    pub tables: Option<Box<dyn SwitchTables>>,
    /// How reports of collectors get to the control loop.
    pub delivery: Option<Box<dyn Delivery>>,
}

/// Switches whose rules can be read back and put right, one by one. Nothing of it waits: what came of it is answered later.
pub trait SwitchTables: Send {
    /// From the end of one comparison to the beginning of the next.
    fn interval(&self) -> Nanos;

    /// Begins to read which links are up and which rules are installed: [`Input::Links`], [`Input::Tables`] or
    /// [`Input::ReadBackFailed`].
    fn read_back(&mut self);

    /// Begins to put rules right, in this order: [`Input::Repaired`] or [`Input::RepairFailed`].
    fn repair(&mut self, changes: Vec<Change>);

    /// What has been answered.
    fn answers(&mut self) -> Vec<Input>;
}

/// How reports of collectors get to the control loop.
pub trait Delivery: Send {
    /// Takes a report, and gives those that arrive now.
    fn send(&mut self, report: Input) -> Vec<Input>;

    /// Gives those that have been held back long enough. CollectorReply some hundred times a second.
    fn flush(&mut self) -> Vec<Input>;
}

impl fmt::Debug for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Injected { tables, delivery } = self;
        let of = [tables.is_some(), delivery.is_some()];
        f.debug_struct("Injected").field("tables", &of[0]).field("delivery", &of[1]).finish()
    }
}
