//! Options of the records, validated before the first record.

use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

/// Maximum number of routers on a path.
pub const MAX_PATH: u8 = 8;

/// Maximum number of routers: each has an address in a /24.
const MAX_ROUTERS: u8 = 254;

/// Maximum number of flows in a flowset, whose keys differ by source port.
const MAX_TRANSFER_FLOWS: u32 = 1_024;

/// Least duration with transfers: sixteen minimal flows take 3 min at their usual rate.
const MIN_TRANSFER_DURATION: Nanos = Nanos::from_secs(600);

/// Maximum duration: up-time in 32-bit milliseconds wraps after 49.7 days (RFC 3954 section 5.1).
const MAX_DURATION: Nanos = Nanos::from_secs(40 * 86_400);

/// Maximum timeout, which bounds the number of pending records.
const MAX_TIMEOUT: Nanos = Nanos::from_secs(3_600);

/// Records per planted flowset and per planted single flow by default.
const RECORDS_PER_TRANSFER: u64 = 4_000;

/// Describes the records of a [`Generator`](super::Generator).
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Exact number of records. Default 1,000,000.
    pub records: u64,
    /// Earliest start of a flow. Default 2014-06-19T13:00:00Z; the clock is never read.
    pub start: Timestamp,
    /// Period in which flows start, in whole seconds; planted flows also end within it. Default two days, enough for the
    /// longest transfer of the dissertation's section 2.3.2 (33 h).
    pub duration: Nanos,
    /// One packet in this many is sampled; 1 samples all. Default 1,000, as in section 2.2.
    pub sampling_interval: u32,
    /// Time after which a flow cache exports an active flow. Default 60 s.
    pub active_timeout: Nanos,
    /// Time without packets after which it exports a flow; at most the active timeout. Default 15 s.
    pub inactive_timeout: Nanos,
    /// Number of routers. Default 66, as in ESnet.
    pub routers: u8,
    /// Routers on a path, each of which samples independently; at most 8. Default 3.
    pub path_routers: u8,
    /// Whether a router also meters packets on egress, with an independent sample. Default no.
    pub meters_egress: bool,
    /// Parallel flowsets. Default one per 4,000 records.
    pub flowsets: Option<u64>,
    /// Flows of each flowset, in turn. Default 2, 4, 2, 8, 2, 4, 2, 3, 4, 16: near the shares of Table 2.2.
    pub flowset_flows: Vec<u32>,
    /// Maximum time between the first and the last start in a flowset. Default 2 s.
    pub start_spread: Nanos,
    /// Number of flowsets that span a midnight (UTC). Default one in a hundred, if the period has a midnight.
    pub across_midnight: Option<u64>,
    /// Single elephant flows. Default one per 4,000 records.
    pub single_flows: Option<u64>,
    /// Transfers between the same hosts that are not elephants: 50 to 700 MB. Default as many as single flows.
    pub ordinary: Option<u64>,
    /// Chains: each flow starts soon after the previous one, but the last long after the first (section 2.2: they satisfy
    /// neither side of equation 2.2). Default none.
    pub chains: u64,
    /// Flows per chain. Default 6.
    pub chain_flows: u32,
    /// Time between two starts in a chain. Default 6 s, so that 6 flows span 30 s for a tau of 10 s.
    pub chain_gap: Nanos,
    /// Least time between the starts of two transfers of the same hosts; should exceed tau. Default 30 s.
    pub separation: Nanos,
    /// Bytes of the IP layer per packet of a transfer, 64 to 9,000. Default 1,500.
    pub packet_bytes: u16,
    /// Share of background flows over IPv6, 0 to 1. Default 0.1.
    pub ipv6_share: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            records: 1_000_000,
            start: Timestamp::new(1_403_182_800, 0),
            duration: Nanos::from_secs(2 * 86_400),
            sampling_interval: 1_000,
            active_timeout: Nanos::from_secs(60),
            inactive_timeout: Nanos::from_secs(15),
            routers: 66,
            path_routers: 3,
            meters_egress: false,
            flowsets: None,
            flowset_flows: vec![2, 4, 2, 8, 2, 4, 2, 3, 4, 16],
            start_spread: Nanos::from_secs(2),
            across_midnight: None,
            single_flows: None,
            ordinary: None,
            chains: 0,
            chain_flows: 6,
            chain_gap: Nanos::from_secs(6),
            separation: Nanos::from_secs(30),
            packet_bytes: 1_500,
            ipv6_share: 0.1,
        }
    }
}

/// Invalid options.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum OptionsError {
    /// A number is out of range.
    #[error("invalid {name} {value}: expected {min} to {max}")]
    Number {
        /// Name of the option.
        name: &'static str,
        /// Its value.
        value: u64,
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
    /// A time is out of range.
    #[error("invalid {name} {value}: expected {min} to {max}")]
    Time {
        /// Name of the option.
        name: &'static str,
        /// Its value.
        value: Nanos,
        /// Minimum.
        min: Nanos,
        /// Maximum.
        max: Nanos,
    },
    /// The list of flows per flowset is empty.
    #[error("no --flowset-flows: expected at least one number, such as 2,4,8,16")]
    NoFlowsetFlows,
    /// The number of routers on a path is out of range.
    #[error(
        "invalid --path-routers {path_routers}: expected 1 to {MAX_PATH}, and at most --routers ({routers})"
    )]
    PathRouters {
        /// Routers on a path.
        path_routers: u8,
        /// All routers.
        routers: u8,
    },
    /// The share is not between 0 and 1.
    #[error("invalid --ipv6-share {share}: expected 0 to 1")]
    Share {
        /// Its value.
        share: f64,
    },
    /// The period has no midnight for flowsets across midnight.
    #[error(
        "cannot plant {flowsets} flowsets across midnight: no midnight (UTC) in {duration} from {start}. Change --start, --duration or --across-midnight"
    )]
    NoMidnight {
        /// Number of flowsets across midnight.
        flowsets: u64,
        /// Start.
        start: Timestamp,
        /// Duration.
        duration: Nanos,
    },
    /// The planted transfers alone have more records.
    #[error(
        "{records} records are too few: the planted transfers alone have {planted}. Raise --records, or lower \
         --flowsets, --single-flows or --ordinary"
    )]
    TooFewRecords {
        /// Requested number of records.
        records: u64,
        /// Records of planted flows.
        planted: u64,
    },
    /// No start time fits a transfer between hosts with too many other transfers.
    #[error(
        "no start time left for transfer {number}: expected {separation} between the transfers of two hosts. Raise --duration, or lower --separation or the number of transfers"
    )]
    Crowded {
        /// Number of the transfer.
        number: u64,
        /// The requested separation.
        separation: Nanos,
    },
}

/// Number of transfers of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub flowsets: u64,
    pub across_midnight: u64,
    pub single_flows: u64,
    pub ordinary: u64,
    pub chains: u64,
}

/// The longest time between the starts of the flows of a flowset (the dissertation, section 2.2).
const TAU: Nanos = Nanos::from_secs(10);

impl Options {
    /// Returns the number of whole seconds in which flows start.
    pub(super) fn seconds(&self) -> u64 {
        self.duration.0 / 1_000_000_000
    }

    /// Returns the start, in microseconds since 1970.
    pub(super) fn start_us(&self) -> i64 {
        (self.start.0 / 1_000) as i64
    }

    /// Returns the number of observation points on a path.
    pub(super) fn points(&self) -> u64 {
        u64::from(self.path_routers) * if self.meters_egress { 2 } else { 1 }
    }

    /// Returns the first midnight (UTC) after the start, in microseconds, if it is before the end.
    pub(super) fn midnight_us(&self) -> Option<i64> {
        const DAY_US: i64 = 86_400_000_000;
        let midnight_us = (self.start_us() / DAY_US + 1) * DAY_US;
        (midnight_us < self.start_us() + (self.duration.0 / 1_000) as i64).then_some(midnight_us)
    }

    /// Validates the options and computes the numbers of transfers.
    pub(super) fn check(&self) -> Result<Counts, OptionsError> {
        let default = self.records / RECORDS_PER_TRANSFER;
        let flowsets = self.flowsets.unwrap_or(default);
        let single_flows = self.single_flows.unwrap_or(default);
        let has_midnight = self.midnight_us().is_some();
        let midnight_default = if has_midnight { flowsets.div_ceil(100) } else { 0 };
        let counts = Counts {
            flowsets,
            across_midnight: self.across_midnight.unwrap_or(midnight_default),
            single_flows,
            ordinary: self.ordinary.unwrap_or(single_flows),
            chains: self.chains,
        };
        self.check_numbers(&counts)?;
        self.check_times(&counts)?;
        if counts.across_midnight > 0 && !has_midnight {
            let Options { start, duration, .. } = *self;
            return Err(OptionsError::NoMidnight { flowsets: counts.across_midnight, start, duration });
        }
        match (0.0..=1.0).contains(&self.ipv6_share) {
            true => Ok(counts),
            false => Err(OptionsError::Share { share: self.ipv6_share }),
        }
    }

    fn check_numbers(&self, counts: &Counts) -> Result<(), OptionsError> {
        let Some(largest) = self.flowset_flows.iter().max() else { return Err(OptionsError::NoFlowsetFlows) };
        let smallest = self.flowset_flows.iter().min().unwrap_or(largest);
        let all = self.records;
        let numbers = [
            ("--records", all, 1, u64::from(u32::MAX)),
            ("--sampling-interval", self.sampling_interval.into(), 1, 1 << 24),
            ("--routers", self.routers.into(), 1, MAX_ROUTERS.into()),
            ("--flowset-flows", (*smallest).into(), 1, MAX_TRANSFER_FLOWS.into()),
            ("--flowset-flows", (*largest).into(), 1, MAX_TRANSFER_FLOWS.into()),
            ("--flowsets", counts.flowsets, 0, all),
            ("--across-midnight", counts.across_midnight, 0, counts.flowsets),
            ("--single-flows", counts.single_flows, 0, all),
            ("--ordinary", counts.ordinary, 0, all),
            ("--chains", counts.chains, 0, all),
            ("--chain-flows", self.chain_flows.into(), 2, MAX_TRANSFER_FLOWS.into()),
            ("--packet-size", self.packet_bytes.into(), 64, 9_000),
        ];
        match numbers.into_iter().find(|(_, value, min, max)| value < min || value > max) {
            Some((name, value, min, max)) => Err(OptionsError::Number { name, value, min, max }),
            None => self.check_path_routers(),
        }
    }

    fn check_path_routers(&self) -> Result<(), OptionsError> {
        let Options { path_routers, routers, .. } = *self;
        match (1..=MAX_PATH.min(routers)).contains(&path_routers) {
            true => Ok(()),
            false => Err(OptionsError::PathRouters { path_routers, routers }),
        }
    }

    fn check_times(&self, counts: &Counts) -> Result<(), OptionsError> {
        let Counts { flowsets, single_flows, ordinary, chains, .. } = *counts;
        let second = Nanos::from_secs(1);
        let shortest = match flowsets.max(single_flows).max(ordinary).max(chains) {
            0 => second,
            _ => MIN_TRANSFER_DURATION,
        };
        // From the start of the first flow to that of the last. More than tau, or the chain would be one flowset.
        let chain = Nanos(self.chain_gap.0.saturating_mul(self.chain_flows.saturating_sub(1).into()));
        let shortest_chain = Nanos(TAU.0 + 1_000_000);
        let times = [
            ("--duration", self.duration, shortest, MAX_DURATION),
            ("--idle-timeout", self.inactive_timeout, second, self.active_timeout),
            ("--active-timeout", self.active_timeout, second, MAX_TIMEOUT),
            ("--start-spread", self.start_spread, Nanos::ZERO, self.separation),
            ("--separation", self.separation, Nanos::ZERO, MAX_TIMEOUT),
            ("--chain-gap", self.chain_gap, Nanos::ZERO, TAU),
            ("--chain-gap times (--chain-flows minus 1)", chain, shortest_chain, Nanos(self.duration.0 / 2)),
        ];
        let times = &times[..if chains == 0 { times.len() - 2 } else { times.len() }];
        match times.iter().find(|(_, value, min, max)| value < min || value > max) {
            Some(&(name, value, min, max)) => Err(OptionsError::Time { name, value, min, max }),
            None => Ok(()),
        }
    }
}
