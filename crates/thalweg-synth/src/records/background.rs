//! Small flows between all hosts, which most records describe.
//!
//! With one packet in a thousand sampled, nine flows in ten leave no record. Those flows are never drawn: each flow is
//! drawn under the condition that some observation point samples at least one of its packets. Its size follows the
//! discrete Pareto distribution, weighted by the probability of that. The first sampled packet is a truncated geometric
//! draw over the packets of all points in a row. The process is the same without the flows that leave no record.

use super::binomial::Trials;
use super::network::Network;
use super::observed::{Observed, Packets};
use super::pace::Pace;
use crate::random::Random;

/// Sizes are 1 to 2^18 - 1 packets, at most 393 MB, so no background flow is an elephant.
const OCTAVES: usize = 18;

/// Shape of the Pareto distribution of packets per flow, typical of backbone traces.
const SHAPE: f64 = 1.05;

/// Longest flow, and the range of the time between two packets of a flow.
const MAX_DURATION_NS: u64 = 600_000_000_000;
const INTERVAL_NS: (f64, f64) = (1e5, 5e8);

/// Shares of UDP and ICMP; the rest is TCP.
const UDP_SHARE: f64 = 0.25;
const ICMP_SHARE: f64 = 0.01;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP_V6: u8 = 58;

/// Service ports, most frequent first.
const SERVICES: [u16; 8] = [443, 80, 53, 22, 123, 993, 25, 3_306];

/// Packet lengths: full packets, acknowledgements, and lengths between.
const PACKET_LENGTHS: [u16; 8] = [1_500, 1_500, 1_500, 1_420, 576, 120, 52, 40];

/// Draws background flows.
#[derive(Clone, Debug)]
pub(super) struct Background {
    network: Network,
    trials: Trials,
    sampling_interval: u32,
    points: u64,
    ipv6_share: f64,
    /// For each octave of sizes, an upper bound on the probability that a flow of that size leaves a record.
    bounds: [f64; OCTAVES],
    /// Probability of this or a lower octave, by that bound.
    cumulative: [f64; OCTAVES],
}

/// A flow with the first observation point that samples one of its packets, and that packet's number.
pub(super) struct SampledFlow {
    pub observed: Observed,
    pub point: u64,
    pub packet: u64,
}

impl Background {
    pub(super) fn new(
        network: Network,
        trials: Trials,
        sampling_interval: u32,
        points: u64,
        ipv6_share: f64,
    ) -> Background {
        let bounds: [f64; OCTAVES] = std::array::from_fn(|octave| trials.any(points << (octave + 1)));
        let mut sum = 0.0;
        let mut cumulative = std::array::from_fn(|octave| {
            sum += libm::pow(2.0, -SHAPE * octave as f64) * bounds[octave];
            sum
        });
        cumulative.iter_mut().for_each(|entry| *entry /= sum);
        Background { network, trials, sampling_interval, points, ipv6_share, bounds, cumulative }
    }

    /// Draws a flow that starts at `start_us` and leaves a record.
    pub(super) fn draw(&self, start_us: i64, random: &mut Random) -> SampledFlow {
        let packets = self.packets(random);
        let sampled = self.trials.failures_within(packets * self.points, random);
        let ends = self.network.background(random);
        let is_v6 = random.chance(self.ipv6_share);
        let kind = random.unit();
        let protocol = match is_v6 {
            _ if kind > UDP_SHARE + ICMP_SHARE => TCP,
            _ if kind > ICMP_SHARE => UDP,
            false => ICMP,
            true => ICMP_V6,
        };
        let has_ports = protocol == TCP || protocol == UDP;
        let service = SERVICES[random.zipf(SERVICES.len() as u64) as usize];
        let client = random.between(1_024, 65_535) as u16;
        let ports = match (has_ports, random.chance(0.5)) {
            (false, _) => (0, 0),
            (true, true) => (client, service),
            (true, false) => (service, client),
        };
        let interval_ns = random.log_even(INTERVAL_NS.0, INTERVAL_NS.1) as u64;
        let packets = Packets {
            source_port: ports.0,
            destination_port: ports.1,
            protocol,
            is_v6,
            octets: PACKET_LENGTHS[random.below(PACKET_LENGTHS.len() as u64) as usize],
            pace: Pace::even(packets, interval_ns.min(MAX_DURATION_NS / packets)),
            start_us,
        };
        let observed = Observed::new(&self.network, self.sampling_interval, ends, &packets);
        let packets = packets.pace.packets();
        SampledFlow { observed, point: sampled / packets, packet: sampled % packets }
    }

    /// Draws the size of a flow that leaves a record: an octave by its bound, then rejection within the octave.
    fn packets(&self, random: &mut Random) -> u64 {
        loop {
            let chosen = random.unit();
            let octave = self.cumulative.iter().take_while(|&&below| below < chosen).count().min(OCTAVES - 1);
            let packets = random.between(1 << octave, (2 << octave) - 1);
            if random.chance(self.trials.any(packets * self.points) / self.bounds[octave]) {
                return packets;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the sizes, by octaves, of 50,000 sampled flows among flows drawn without the condition with 50,000 drawn
    /// under it. Differences stay within six standard deviations in each of ten octaves (a false alarm below 1e-7).
    #[test]
    fn conditional_sizes_match_the_sampled_flows_of_all() {
        const FLOWS: u32 = 50_000;
        let network = Network { routers: 9, path_routers: 3 };
        let trials = Trials::one_in(20);
        let background = Background::new(network, trials, 20, 3, 0.0);
        let mut random = Random::new(1);
        let (mut unconditional, mut conditional) = ([0.0; OCTAVES], [0.0; OCTAVES]);
        let mut sampled = 0;
        while sampled < FLOWS {
            let octave = loop {
                let octave = (libm::log(random.unit()) / (-SHAPE * std::f64::consts::LN_2)) as usize;
                if octave < OCTAVES {
                    break octave;
                }
            };
            let packets = random.between(1 << octave, (2 << octave) - 1);
            if (0..3).any(|_| trials.successes(packets, &mut random) > 0) {
                unconditional[octave] += 1.0;
                sampled += 1;
            }
        }
        for _ in 0..FLOWS {
            conditional[background.packets(&mut random).ilog2() as usize] += 1.0;
        }
        for octave in 0..10 {
            let (unconditional, conditional): (f64, f64) = (unconditional[octave], conditional[octave]);
            assert!(
                (unconditional - conditional).abs() < 6.0 * (unconditional + conditional).sqrt(),
                "{octave}: {unconditional} {conditional}"
            );
        }
    }
}
