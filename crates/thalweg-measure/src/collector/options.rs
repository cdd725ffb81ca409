//! Configuration of a collector.

use thalweg_network::RouterId;
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::report::LinkDirection;
use crate::detect::CheetahThreshold;
use crate::meter::flow_table::FlowTableOptions;
use crate::rates::BurstOptions;

/// Configuration of a collector.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectorOptions {
    /// The switch whose monitor port it reads.
    pub router: RouterId,
    /// Size and timeouts of the flow table.
    pub flow_table: FlowTableOptions,
    /// The threshold for cheetah flows; `None` turns detection off.
    pub threshold: Option<CheetahThreshold>,
    /// The maximum number of flows that the cheetah detector tracks at once.
    pub tracks: usize,
    /// How samples are grouped into bursts.
    pub bursts: BurstOptions,
    /// The monitor port's rate and buffer, if known; required for error bounds.
    pub monitor: Option<MonitorPort>,
    /// The time constant of the smoothing of link utilisation; zero for none. Default 1 ms: where flows compete for a
    /// link, their rates change at different times, and an unsmoothed sum is occasionally off by 7 % (see
    /// `experiments/planck-error`). With 1 ms, a sum that jumps from nothing to 95 % of the capacity passes 90 %
    /// after 3 ms.
    pub smoothing: Nanos,
    /// Rules for congestion events. At most [`CollectorOptions::MAX_RULES`].
    pub rules: Vec<LinkRule>,
    /// The seed of hashes; results do not depend on it.
    pub seed: u64,
}

/// Properties of the monitor port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorPort {
    /// The rate at which it sends.
    pub rate: BitRate,
    /// The size of its buffer.
    pub buffer: Bytes,
}

/// A rule for congestion events.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRule {
    /// The links; `None` for all of the switch.
    pub links: Option<Vec<LinkDirection>>,
    /// The share of the capacity at which congestion begins. Above 0.
    pub upper: f64,
    /// The share of the capacity below which congestion clears: at most `upper`. Utilisation between the two changes
    /// nothing.
    pub lower: f64,
    /// The minimum packet time between two events of one link and rule. An earlier change is reported when it has
    /// passed, if it still holds then.
    pub min_event_interval: Nanos,
    /// The interval at which ongoing congestion is repeated, in packet time, for receivers that expire old events. 0,
    /// the default, turns this off; otherwise at least the min_event_interval.
    pub repeat: Nanos,
    /// The maximum number of flows to name in an event.
    pub flows: usize,
}

impl CollectorOptions {
    /// The maximum number of rules.
    pub const MAX_RULES: usize = 64;
}

impl Default for CollectorOptions {
    fn default() -> Self {
        CollectorOptions {
            router: RouterId(0),
            flow_table: FlowTableOptions::default(),
            threshold: Some(CheetahThreshold::default()),
            tracks: 32_768,
            bursts: BurstOptions::default(),
            monitor: None,
            smoothing: Nanos::from_millis(1),
            rules: vec![LinkRule::default()],
            seed: 0,
        }
    }
}

/// Congestion begins at 90 % and clears below 80 %; at most one event per 1 ms, with 16 flows.
impl Default for LinkRule {
    fn default() -> Self {
        let min_event_interval = Nanos::from_millis(1);
        LinkRule { links: None, upper: 0.9, lower: 0.8, min_event_interval, repeat: Nanos::ZERO, flows: 16 }
    }
}
