//! How switches that are told by OpenFlow do.

/// What a fabric has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FabricCounters {
    /// Entries written, for routes and pairs.
    pub written: u64,
    /// Entries of ours that were not wanted any more, and deleted.
    pub removed: u64,
    /// Batches that were carried out.
    pub done: u64,
    /// Batches that were refused, or not answered in time, or could not be sent.
    pub failed: u64,
    /// How often a switch was asked for its entries after it had connected.
    pub read_again: u64,
    /// News that nobody took in time.
    pub news_dropped: u64,
}

/// How switches that are told by OpenFlow do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchesReport {
    /// Those that have what they are to have.
    pub settled: usize,
    /// Those that have not, or are not known to: not connected, or still at it.
    pub unsettled: usize,
    /// What they were told.
    pub counters: FabricCounters,
}
