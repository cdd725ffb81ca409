//! Parts that a lab injects into the controller: its own switches, and faults in the delivery of events.

use std::fmt;

use thalweg_control::control_loop::Input;
use thalweg_control::routes::Change;
use thalweg_wire::Nanos;

/// Injected parts. By default none.
#[derive(Default)]
pub struct Injected {
    /// Switches whose rules can be read back and repaired.
    pub tables: Option<Box<dyn SwitchTables>>,
    /// Delivers events of collectors to the control loop.
    pub delivery: Option<Box<dyn Delivery>>,
}

/// Switches whose rules can be read back and repaired one by one. No method blocks; results are returned later.
pub trait SwitchTables: Send {
    /// Returns the time from the end of one comparison to the start of the next.
    fn interval(&self) -> Nanos;

    /// Starts to read link states and installed rules. Results: [`Input::Links`], [`Input::Tables`] or
    /// [`Input::ReadBackFailed`].
    fn read_back(&mut self);

    /// Starts to apply changes in this order. Results: [`Input::RulesRepaired`] or [`Input::RuleRepairFailed`].
    fn repair_rules(&mut self, changes: Vec<Change>);

    /// Returns the results that have arrived.
    fn answers(&mut self) -> Vec<Input>;
}

/// Delivers events of collectors to the control loop.
pub trait Delivery: Send {
    /// Takes an event, and returns those that arrive now.
    fn send(&mut self, report: Input) -> Vec<Input>;

    /// Returns delayed events that are due. Called some hundred times per second.
    fn flush(&mut self) -> Vec<Input>;
}

impl fmt::Debug for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Injected { tables, delivery } = self;
        let of = [tables.is_some(), delivery.is_some()];
        f.debug_struct("Injected").field("tables", &of[0]).field("delivery", &of[1]).finish()
    }
}
