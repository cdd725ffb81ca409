//! Plans the transfers: hosts, sizes, rates and start times.
//!
//! The distributions approximate Tables 2.2 and 2.3 and Figure 2.1 of the dissertation. Sizes and rates are log-normal,
//! so both and the durations are skewed to the right. A few in a thousand have a Pareto tail that extends to the
//! 26.5 TiB of section 2.3.2. The median rate grows with the number of component flows; the ratio of inter-quartile
//! range to median falls as on the short path of section 2.3.3. Each component moves more than 1 GB within a minute,
//! otherwise it would not be an elephant; slow flows do so in their first minute.

use std::collections::BTreeMap;

use super::network::{Host, Network};
use super::options::{Counts, Options, OptionsError};
use super::pace::Pace;
use super::truth::Kind;
use crate::random::Random;

const GIB: f64 = (1u64 << 30) as f64;

/// Bytes in an elephant's fastest minute: half more than the definition's 1 GB (section 2.2), which is ten standard
/// deviations of the estimate from full packets sampled 1 in 1000.
const BURST_OCTETS: f64 = 1.5e9;
const BURST_NS: u64 = 60_000_000_000;

/// Minimum size of an elephant.
const MIN_OCTETS: f64 = 1.6e9;

/// Median size of a flowset above the minimum, and standard deviation of its logarithm: the medians of Table 2.3 are
/// 3 to 105 GiB, and their 99 % quantiles about 28 times the median.
const SIZE_MEDIAN: f64 = 14.0 * GIB;
const SIZE_SIGMA: f64 = 1.43;

/// The tail: its share, its start, and the largest size of Table 2.3.
const TAIL_SHARE: f64 = 0.003;
const TAIL_MIN: f64 = 1024.0 * GIB;
const MAX_SIZE: f64 = 26_521.2 * GIB;

/// The same for single flows. The dissertation calls their sizes skewed and gives no numbers.
const SINGLE_MEDIAN: f64 = 2.0 * GIB;
const SINGLE_SIGMA: f64 = 1.3;

/// Median rate of flowsets of two, and the exponent of its growth with the number of flows (Figure 2.1, Table 2.3).
const RATE_MEDIAN: f64 = 0.5e9;
const RATE_GROWTH: f64 = 0.45;

/// Minimum rate, and maximum rate as in Table 2.3.
const MIN_RATE: f64 = 60e6;
const MAX_RATE: f64 = 9.7e9;

/// Sizes and rates of ordinary transfers: at most 675 MB in a minute, and 700 MB in total.
const ORDINARY_OCTETS: (f64, f64) = (50e6, 700e6);
const ORDINARY_RATE: (f64, f64) = (20e6, 90e6);

/// Ports of data channels: the first source port, the number of source ports, and GridFTP's control port.
const FIRST_PORT: u16 = 32_768;
const PORTS: u32 = 28_000;
pub(super) const DESTINATION_PORT: u16 = 2_811;

/// Maximum number of draws for a transfer that fits.
const MAX_ATTEMPTS: u32 = 200;

/// A planted flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub transfer: u32,
    pub kind: Kind,
    pub source: Host,
    pub destination: Host,
    pub source_port: u16,
    /// First packet, in microseconds after the start.
    pub start_us: u64,
    pub pace: Pace,
}

/// The flows of a transfer: start, relative to that of the transfer, and packets.
type Shape = Vec<(u64, Pace)>;

/// The state of a pair of hosts.
#[derive(Default)]
struct Pair {
    /// First and last start of each transfer.
    starts: Vec<(u64, u64)>,
    /// Number of flows so far.
    flows: u32,
}

/// Draws the transfers one by one.
pub(super) struct Planner<'a> {
    options: &'a Options,
    network: Network,
    random: Random,
    pairs: BTreeMap<(Host, Host), Pair>,
    flows: Vec<Flow>,
    transfers: u32,
}

impl<'a> Planner<'a> {
    /// Plans all transfers, in order of their numbers, with the flows of each in order of start.
    ///
    /// # Errors
    /// If no start time fits a transfer.
    pub(super) fn plan(
        options: &'a Options,
        counts: &Counts,
        network: Network,
        random: Random,
    ) -> Result<Vec<Flow>, OptionsError> {
        let (pairs, flows) = (BTreeMap::new(), Vec::new());
        let mut planner = Planner { options, network, random, pairs, flows, transfers: 0 };
        let flow_counts = options.flowset_flows.iter().copied().cycle();
        for (number, flows) in (0..counts.flowsets).zip(flow_counts) {
            let kind = if flows == 1 { Kind::Single } else { Kind::Flowset };
            planner.plant(kind, flows, number < counts.across_midnight)?;
        }
        let others = [
            (Kind::Single, counts.single_flows),
            (Kind::Ordinary, counts.ordinary),
            (Kind::Chain, counts.chains),
        ];
        for (kind, count) in others {
            for _ in 0..count {
                planner.plant(kind, if kind == Kind::Chain { options.chain_flows } else { 1 }, false)?;
            }
        }
        Ok(planner.flows)
    }

    fn plant(&mut self, kind: Kind, flows: u32, across_midnight: bool) -> Result<(), OptionsError> {
        for _ in 0..MAX_ATTEMPTS {
            let (source, destination) = self.network.transfer(&mut self.random);
            let is_long = self.network.is_long(source.site, destination.site);
            let shape = match kind {
                Kind::Flowset | Kind::Single => self.elephants(flows, is_long),
                Kind::Ordinary => self.ordinary(),
                Kind::Chain => self.chain(flows),
            };
            let Some(start_us) = self.start(&shape, across_midnight) else { continue };
            let last_start_us = start_us + shape.last().map_or(0, |&(offset_us, _)| offset_us);
            if self.is_apart(source, destination, start_us, last_start_us) {
                self.add(kind, (source, destination), start_us, &shape);
                return Ok(());
            }
        }
        Err(OptionsError::Crowded { number: self.transfers.into(), separation: self.options.separation })
    }

    /// Draws a flowset or a single flow.
    fn elephants(&mut self, flows: u32, is_long: bool) -> Shape {
        let count = f64::from(flows);
        let random = &mut self.random;
        let above_min = match flows {
            1 => random.log_normal(SINGLE_MEDIAN, SINGLE_SIGMA),
            _ if random.chance(TAIL_SHARE) => TAIL_MIN / random.unit(),
            _ => random.log_normal(SIZE_MEDIAN, SIZE_SIGMA),
        };
        let above_min = above_min.min(MAX_SIZE - count * MIN_OCTETS).max(0.0);
        let median = RATE_MEDIAN * libm::pow(count / 2.0, RATE_GROWTH) * if is_long { 0.5 } else { 1.0 };
        let rate = random.log_normal(median, rate_sigma(flows)).clamp(MIN_RATE, MAX_RATE);
        let seconds = (above_min + count * MIN_OCTETS) * 8.0 / rate;
        let span_us = (seconds * 1e6) as u64;
        let spread_us = (self.options.start_spread.0 / 1_000).min(span_us / 4);
        let mut starts: Vec<u64> = (1..flows).map(|_| random.between(0, spread_us)).collect();
        starts.push(0);
        starts.sort_unstable();
        let weights: Vec<f64> = starts.iter().map(|_| 0.9 + 0.2 * random.unit()).collect();
        let all: f64 = weights.iter().sum();
        let elephants = starts.into_iter().zip(weights).map(|(start_us, weight)| {
            let octets = MIN_OCTETS + above_min * weight / all;
            // They end at nearly the same time.
            let span_us = (span_us - start_us) as f64 * (0.96 + 0.04 * random.unit());
            (start_us, elephant(octets, (span_us * 1e3) as u64, self.options.packet_bytes))
        });
        elephants.collect()
    }

    fn ordinary(&mut self) -> Shape {
        let octets = self.random.log_even(ORDINARY_OCTETS.0, ORDINARY_OCTETS.1);
        let rate = self.random.log_even(ORDINARY_RATE.0, ORDINARY_RATE.1);
        vec![(0, evenly(octets, (octets * 8e9 / rate) as u64, self.options.packet_bytes))]
    }

    fn chain(&mut self, flows: u32) -> Shape {
        let gap_us = self.options.chain_gap.0 / 1_000;
        let flow = |number: u32| {
            let octets = MIN_OCTETS + self.random.log_normal(GIB, 0.5);
            let rate = self.random.log_normal(RATE_MEDIAN, 0.3);
            let span_ns = (octets * 8e9 / rate) as u64;
            (u64::from(number) * gap_us, elephant(octets, span_ns, self.options.packet_bytes))
        };
        (0..flows).map(flow).collect()
    }

    /// Draws a start time such that the transfer ends within the duration.
    fn start(&mut self, shape: &Shape, across_midnight: bool) -> Option<u64> {
        let span_us = shape.iter().map(|(offset_us, pace)| offset_us + pace.span_ns() / 1_000 + 1).max()?;
        let latest = (self.options.duration.0 / 1_000).checked_sub(span_us)?;
        let (low, high) = match self.options.midnight_us().filter(|_| across_midnight) {
            Some(midnight_us) => {
                let midnight_us = (midnight_us - self.options.start_us()) as u64;
                let (before, after) =
                    (midnight_us.saturating_sub(span_us / 10 * 9), midnight_us.checked_sub(span_us / 10)?);
                (before, after.min(latest))
            }
            None => (0, latest),
        };
        (low <= high).then(|| self.random.between(low, high))
    }

    /// Whether all other transfers of these hosts start far enough from this one.
    fn is_apart(&self, source: Host, destination: Host, start_us: u64, last_start_us: u64) -> bool {
        let separation_us = self.options.separation.0 / 1_000;
        let Some(pair) = self.pairs.get(&(source, destination)) else { return true };
        let is_apart = |&(first, last): &(u64, u64)| {
            start_us > last + separation_us || first > last_start_us + separation_us
        };
        pair.starts.iter().all(is_apart)
    }

    fn add(&mut self, kind: Kind, (source, destination): (Host, Host), start_us: u64, shape: &Shape) {
        let pair = self.pairs.entry((source, destination)).or_default();
        pair.starts.push((start_us, start_us + shape.last().map_or(0, |&(offset_us, _)| offset_us)));
        for &(offset_us, pace) in shape {
            let source_port = FIRST_PORT + (pair.flows % PORTS) as u16;
            pair.flows += 1;
            let (transfer, start_us) = (self.transfers, start_us + offset_us);
            self.flows.push(Flow { transfer, kind, source, destination, source_port, start_us, pace });
        }
        self.transfers += 1;
    }
}

/// Returns the standard deviation of the logarithm of rates. The ratios of inter-quartile range to median in section
/// 2.3.3, 0.84, 0.54, 0.51 and 0.41 for 2, 3, 4 and 8 flows, are 2 sinh(0.6745 sigma) for a log-normal distribution.
fn rate_sigma(flows: u32) -> f64 {
    match flows {
        1 => 0.70,
        2 => 0.604,
        3 => 0.396,
        4..8 => 0.374,
        _ => 0.302,
    }
}

/// Returns the packets of a flow that moves at least [`BURST_OCTETS`], or its total, in some minute.
fn elephant(octets: f64, span_ns: u64, packet_bytes: u16) -> Pace {
    let in_burst = octets * BURST_NS as f64 / span_ns as f64;
    if span_ns <= BURST_NS || in_burst >= BURST_OCTETS {
        return evenly(octets, span_ns, packet_bytes);
    }
    let packets = |octets: f64| libm::ceil(octets / f64::from(packet_bytes)) as u64;
    Pace::burst(packets(octets), span_ns, packets(BURST_OCTETS), BURST_NS)
}

fn evenly(octets: f64, span_ns: u64, packet_bytes: u16) -> Pace {
    let packets = libm::ceil(octets / f64::from(packet_bytes)) as u64;
    Pace::even(packets, span_ns / (packets - 1).max(1))
}
