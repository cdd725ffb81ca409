//! What a collector is to do.

use thalweg_network::RouterId;
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::report::LinkSide;
use crate::detect::CheetahThreshold;
use crate::meter::flow_table::FlowTableOptions;
use crate::rates::BurstOptions;

/// What a collector is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectorOptions {
    /// The switch whose monitor port it reads.
    pub router: RouterId,
    /// How many flows are kept, and for how long.
    pub flow_table: FlowTableOptions,
    /// What makes a flow a cheetah; `None` to look for none.
    pub threshold: Option<CheetahThreshold>,
    /// Flows that the detector of cheetahs can follow at once.
    pub tracks: usize,
    /// How samples are put together into bursts.
    pub bursts: BurstOptions,
    /// What is known of the monitor port; it makes error bounds possible.
    pub monitor: Option<MonitorPort>,
    /// Time constant of the smoothing of link utilisation; zero for none. Default 1 ms: where flows compete for a link, their
    /// rates change at different times, and an unsmoothed sum of them is off by 7 % now and then (see
    /// `experiments/planck-error`). A sum that jumps from nothing to 95 % of the capacity passes 90 % after 3 ms then.
    pub smoothing: Nanos,
    /// When to tell of links. At most [`CollectorOptions::MAX_RULES`].
    pub rules: Vec<LinkRule>,
    /// Seed of hashes; results do not depend on it.
    pub seed: u64,
}

/// What is known of the monitor port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorPort {
    /// What it can send.
    pub rate: BitRate,
    /// Bytes that may wait for it.
    pub buffer: Bytes,
}

/// When to tell of the utilisation of links.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRule {
    /// Which links: `None` for all of the switch.
    pub links: Option<Vec<LinkSide>>,
    /// Share of the capacity from which on a link is congested. Above 0.
    pub upper: f64,
    /// Share of the capacity at which it is so no more: at most `upper`. What is between them changes nothing.
    pub lower: f64,
    /// Least packet time between two events of one link and rule. A crossing within it is told when it is over, if it
    /// still holds then.
    pub spacing: Nanos,
    /// As long as the link is congested, that is told again after so much packet time, for whoever forgets what is not
    /// told. 0, the default, for never; at least the spacing otherwise.
    pub repeat: Nanos,
    /// Most flows to name in an event.
    pub flows: usize,
}

impl CollectorOptions {
    /// Most rules.
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

/// Congested from 90 % on, until below 80 %; every 1 ms at most, with 16 flows.
impl Default for LinkRule {
    fn default() -> Self {
        let spacing = Nanos::from_millis(1);
        LinkRule { links: None, upper: 0.9, lower: 0.8, spacing, repeat: Nanos::ZERO, flows: 16 }
    }
}
