//! Counters and state of the OpenFlow switches.

use thalweg_control::routes::RuleFaults;

/// Counters of a fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FabricCounters {
    /// Entries written, for routes and pairs.
    pub written: u64,
    /// Thalweg entries deleted because they are no longer wanted.
    pub removed: u64,
    /// Batches carried out.
    pub done: u64,
    /// Batches refused, timed out or not sent.
    pub failed: u64,
    /// Read-backs of a connected switch's entries after a refusal or a timeout.
    pub read_backs: u64,
    /// Comparisons of a connected switch's entries with those that were sent.
    pub audits: u64,
    /// Entries that others removed, changed or added, and that were repaired.
    pub faults: RuleFaults,
    /// Times that this daemon became the master.
    pub claims: u64,
    /// Events dropped because they were taken too slowly.
    pub events_dropped: u64,
}

/// State of the OpenFlow switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchesReport {
    /// Switches with all wanted entries.
    pub in_sync: usize,
    /// Switches without confirmed entries: disconnected, or still in progress.
    pub out_of_sync: usize,
    /// Whether this daemon is the master of the switches. A standby writes nothing, and none of its switches is in sync.
    pub is_master: bool,
    /// Counters of the fabric.
    pub counters: FabricCounters,
}
