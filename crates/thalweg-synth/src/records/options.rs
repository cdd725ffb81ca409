//! What records are to be like, checked whole before the first is made.

use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

/// Most routers that a path may have.
pub const MAX_PATH: u8 = 8;

/// Most routers in all: each has an address in a /24.
const MAX_ROUTERS: u8 = 254;

/// Most flows of a flowset: their keys differ by the source port.
const MAX_COMPONENTS: u32 = 1_024;

/// Shortest time that transfers fit: sixteen flows at least take 3 min at their usual rate.
const MIN_TRANSFER_DURATION: Nanos = Nanos::from_secs(600);

/// Longest time: up-time in milliseconds of 32 bits wraps after 49.7 days (RFC 3954 section 5.1).
const MAX_DURATION: Nanos = Nanos::from_secs(40 * 86_400);

/// Longest time-out, so that few records wait.
const MAX_TIMEOUT: Nanos = Nanos::from_secs(3_600);

/// Records for each flowset and each single flow that are planted unless told otherwise.
const RECORDS_PER_TRANSFER: u64 = 4_000;

/// What [`Generator`](super::Generator) is to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Records in all, exactly. Default 1,000,000.
    pub records: u64,
    /// When the first flow may begin. Default 2014-06-19T13:00:00Z; the clock is never read.
    pub start: Timestamp,
    /// How long flows begin, in whole seconds; planted ones end within it. Default two days, which the longest transfer
    /// of the dissertation's section 2.3.2 (33 h) fits.
    pub duration: Nanos,
    /// One packet in so many is sampled; 1: all. Default 1,000, as in section 2.2.
    pub sampling_interval: u32,
    /// When a flow cache tells of a flow that goes on. Default 60 s.
    pub active_timeout: Nanos,
    /// When it tells of a flow of which it hears no more; at most the active time-out. Default 15 s.
    pub inactive_timeout: Nanos,
    /// Routers in all. Default 66, as ESnet had.
    pub routers: u8,
    /// Routers on a path, each of which samples by itself; at most 8. Default 3.
    pub path_routers: u8,
    /// Whether a router meters packets where they leave, too, by a sample of its own. Default no.
    pub both_directions: bool,
    /// Parallel flowsets. Default one for 4,000 records.
    pub flowsets: Option<u64>,
    /// How many flows they have, in turn. Default 2, 4, 2, 8, 2, 4, 2, 3, 4, 16: near the shares of Table 2.2.
    pub components: Vec<u32>,
    /// Within what time the flows of one begin. Default 2 s.
    pub start_spread: Nanos,
    /// How many of the flowsets run across a midnight (UTC). Default one in a hundred, if there is a midnight.
    pub across_midnight: Option<u64>,
    /// Cheetah flows by themselves. Default one for 4,000 records.
    pub single_flows: Option<u64>,
    /// Transfers between the same hosts that are no cheetahs: 50 to 700 MB. Default as many as single flows.
    pub ordinary: Option<u64>,
    /// Chains: flows of which each begins soon after the one before, but the last long after the first (section 2.2:
    /// they satisfy neither side of equation 2.2). Default none.
    pub chains: u64,
    /// Flows of a chain. Default 6.
    pub chain_flows: u32,
    /// Time from start to start in a chain. Default 6 s, so that 6 flows span 30 s where tau is 10 s.
    pub chain_gap: Nanos,
    /// Least time between the starts of one transfer and those of another of the same hosts; to be more than tau.
    /// Default 30 s.
    pub separation: Nanos,
    /// Bytes of the IP layer in each packet of a transfer, 64 to 9,000. Default 1,500.
    pub packet_octets: u16,
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
            both_directions: false,
            flowsets: None,
            components: vec![2, 4, 2, 8, 2, 4, 2, 3, 4, 16],
            start_spread: Nanos::from_secs(2),
            across_midnight: None,
            single_flows: None,
            ordinary: None,
            chains: 0,
            chain_flows: 6,
            chain_gap: Nanos::from_secs(6),
            separation: Nanos::from_secs(30),
            packet_octets: 1_500,
            ipv6_share: 0.1,
        }
    }
}

/// Why options are refused.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum OptionsError {
    /// A number outside its limits.
    #[error("{name} {asked}: expected {least} to {most}")]
    Number {
        /// Which number.
        name: &'static str,
        /// What was asked.
        asked: u64,
        /// Least.
        least: u64,
        /// Most.
        most: u64,
    },
    /// A time outside its limits.
    #[error("{name} {asked}: expected {least} to {most}")]
    Time {
        /// Which time.
        name: &'static str,
        /// What was asked.
        asked: Nanos,
        /// Least.
        least: Nanos,
        /// Most.
        most: Nanos,
    },
    /// No numbers of component flows.
    #[error("no numbers of component flows: expected some, such as 2, 4, 8, 16")]
    NoComponents,
    /// A share outside 0 to 1.
    #[error("IPv6 share {share}: expected 0 to 1")]
    Share {
        /// What was asked.
        share: f64,
    },
    /// Flowsets across midnight without a midnight.
    #[error("{flowsets} flowsets across midnight: there is none in {duration} from {start}")]
    NoMidnight {
        /// What was asked.
        flowsets: u64,
        /// Beginning.
        start: Timestamp,
        /// Duration.
        duration: Nanos,
    },
    /// The transfers alone have more records.
    #[error("{records} records: the planted transfers alone have {planted}")]
    TooFewRecords {
        /// What was asked.
        records: u64,
        /// Records of planted flows.
        planted: u64,
    },
    /// No place was found for a transfer between hosts that have so many others.
    #[error("no time left for transfer {number} that is {separation} apart from others of its hosts")]
    Crowded {
        /// Which.
        number: u64,
        /// The separation.
        separation: Nanos,
    },
}

/// How many transfers of which kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub flowsets: u64,
    pub across_midnight: u64,
    pub single_flows: u64,
    pub ordinary: u64,
    pub chains: u64,
}

impl Options {
    /// Whole seconds in which flows begin.
    pub(super) fn seconds(&self) -> u64 {
        self.duration.0 / 1_000_000_000
    }

    /// Beginning, microseconds since 1970.
    pub(super) fn start_us(&self) -> i64 {
        (self.start.0 / 1_000) as i64
    }

    /// Observation points on a path.
    pub(super) fn points(&self) -> u64 {
        u64::from(self.path_routers) * if self.both_directions { 2 } else { 1 }
    }

    /// The first midnight (UTC) after the beginning, in microseconds, if it comes before the end.
    pub(super) fn midnight_us(&self) -> Option<i64> {
        const DAY_US: i64 = 86_400_000_000;
        let midnight_us = (self.start_us() / DAY_US + 1) * DAY_US;
        (midnight_us < self.start_us() + (self.duration.0 / 1_000) as i64).then_some(midnight_us)
    }

    /// Checks the options and works out how many transfers there are.
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
        let Some(components) = self.components.iter().max() else { return Err(OptionsError::NoComponents) };
        let fewest = self.components.iter().min().unwrap_or(components);
        let all = self.records;
        let numbers = [
            ("records", all, 1, u64::from(u32::MAX)),
            ("sampling interval", self.sampling_interval.into(), 1, 1 << 24),
            ("routers", self.routers.into(), 1, MAX_ROUTERS.into()),
            ("routers on a path", self.path_routers.into(), 1, MAX_PATH.min(self.routers).into()),
            ("component flows", (*fewest).into(), 1, MAX_COMPONENTS.into()),
            ("component flows", (*components).into(), 1, MAX_COMPONENTS.into()),
            ("flowsets", counts.flowsets, 0, all),
            ("flowsets across midnight", counts.across_midnight, 0, counts.flowsets),
            ("single flows", counts.single_flows, 0, all),
            ("ordinary transfers", counts.ordinary, 0, all),
            ("chains", counts.chains, 0, all),
            ("flows of a chain", self.chain_flows.into(), 2, MAX_COMPONENTS.into()),
            ("bytes of a packet", self.packet_octets.into(), 64, 9_000),
        ];
        match numbers.into_iter().find(|(_, asked, least, most)| asked < least || asked > most) {
            Some((name, asked, least, most)) => Err(OptionsError::Number { name, asked, least, most }),
            None => Ok(()),
        }
    }

    fn check_times(&self, counts: &Counts) -> Result<(), OptionsError> {
        let Counts { flowsets, single_flows, ordinary, chains, .. } = *counts;
        let second = Nanos::from_secs(1);
        let shortest = match flowsets.max(single_flows).max(ordinary).max(chains) {
            0 => second,
            _ => MIN_TRANSFER_DURATION,
        };
        let chain = Nanos(self.chain_gap.0.saturating_mul(self.chain_flows.into()));
        let times = [
            ("duration", self.duration, shortest, MAX_DURATION),
            ("inactive time-out", self.inactive_timeout, second, self.active_timeout),
            ("active time-out", self.active_timeout, second, MAX_TIMEOUT),
            ("start spread", self.start_spread, Nanos::ZERO, self.separation),
            ("separation", self.separation, Nanos::ZERO, MAX_TIMEOUT),
            ("all gaps of a chain", chain, Nanos::ZERO, Nanos(self.duration.0 / 2)),
        ];
        let times = &times[..if chains == 0 { times.len() - 1 } else { times.len() }];
        match times.iter().find(|(_, asked, least, most)| asked < least || asked > most) {
            Some(&(name, asked, least, most)) => Err(OptionsError::Time { name, asked, least, most }),
            None => Ok(()),
        }
    }
}
