//! `[transport]`.

use thalweg_config::Typed;
use thalweg_emulator::hosts::{
    AckPolicy, Algorithm, HostConfig, HostConfigError, PFabricConfig, RtoConfig, TcpConfig, Transport,
};
use thalweg_emulator::schemes::Scheme;
use thalweg_network::routing::{NextHops, path};
use thalweg_network::{LinkId, LinkState, Topology};
use thalweg_wire::{BitRate, Nanos};

use super::Stage;
use super::scheme::marks;
use crate::experiment::Problem;
use crate::experiment::table::{self, Hosts, MIRROR};

/// Bytes of Ethernet framing.
const FRAMING: u64 = thalweg_emulator::packet::FRAMING as u64;
/// Segments kept for copies: many times the packets that return in a slot.
const MIRRORED_LATE: u32 = 1 << 16;
/// Bytes of an acknowledgement on a link.
const SHORTEST: u64 = thalweg_emulator::packet::SHORTEST as u64;

/// The configuration of hosts.
///
/// # Errors
/// If settings contradict each other.
pub(super) fn hosts(
    entry: &Typed<'_, table::Transport>,
    scheme: &Scheme,
    mtu: u16,
    stage: &Stage<'_>,
) -> Result<HostConfig, Problem> {
    let Hosts { stack_delay, receive_window, max_flows } = entry.keys();
    let (rate, round_trip) = longest_path(mtu, stack_delay, stage);
    let with_ecn = |algorithm, ecn: &table::Ecn, keys| {
        Transport::Tcp(tcp(keys, algorithm, ecn.ecn.unwrap_or(marks(scheme)), round_trip))
    };
    let transport = match &**entry {
        table::Transport::PFabric(keys) => Transport::PFabric(p_fabric(keys, mtu, rate, round_trip)),
        // DCTCP has no such key: it always uses ECN.
        table::Transport::Dctcp(keys) => Transport::Tcp(tcp(keys, Algorithm::Dctcp, false, round_trip)),
        table::Transport::NewReno(ecn, keys) => with_ecn(Algorithm::NewReno, ecn, keys),
        table::Transport::Cubic(ecn, keys) => with_ecn(Algorithm::Cubic, ecn, keys),
        table::Transport::CubicHyStart(ecn, keys) => with_ecn(Algorithm::CubicHyStart, ecn, keys),
        table::Transport::HTcp(ecn, keys) => with_ecn(Algorithm::HTcp, ecn, keys),
    };
    let config = HostConfig {
        mtu,
        receive_window: u32::try_from(receive_window.0).unwrap_or(u32::MAX),
        interface_backlog: 2 * (u32::from(mtu) + FRAMING as u32),
        stack_delay,
        max_flows,
        segment_history: if stage.experiment.has(&MIRROR) { MIRRORED_LATE } else { 0 },
        seed: stage.seed,
        ..HostConfig::with(transport)
    };
    config.validate().map_err(|error| {
        let key = match error {
            HostConfigError::ReceiveWindow { .. } => Hosts::receive_window,
            HostConfigError::Rto { .. } => table::Tcp::min_rto,
            _ => table::Transport::name,
        };
        entry.refuse(key, error.to_string())
    })?;
    Ok(config)
}

fn tcp(keys: &table::Tcp, algorithm: Algorithm, ecn: bool, round_trip: Nanos) -> TcpConfig {
    // SRTT + 4 RTTVAR after one measurement R is R + 4 R/2 (RFC 6298, rules 2.2 and 2.3).
    let measured = Nanos(round_trip.0.saturating_mul(3)).min(keys.max_rto);
    TcpConfig {
        algorithm,
        ecn,
        initial_window: keys.initial_window,
        rto: RtoConfig {
            initial: keys.initial_rto.unwrap_or(measured),
            min: keys.min_rto,
            max: keys.max_rto,
        },
        ack: AckPolicy { every: keys.ack_every, timeout: keys.ack_timeout },
        tolerates_reordering: keys.tolerates_reordering,
    }
}

fn p_fabric(keys: &table::PFabricTransport, mtu: u16, rate: BitRate, round_trip: Nanos) -> PFabricConfig {
    let of_path = PFabricConfig::for_path(rate, round_trip);
    let window = keys.window.map(|window| u32::try_from(window.0).unwrap_or(u32::MAX));
    PFabricConfig {
        window: window.unwrap_or(of_path.window.max(u32::from(mtu))),
        rto: keys.rto.unwrap_or(of_path.rto),
        probe_after: keys.probe_after,
    }
}

/// The rate of the slowest link of the longest shortest path, and the round-trip time of a full-size packet and its
/// acknowledgement through empty queues, including host stacks. One endpoint represents its rack.
fn longest_path(mtu: u16, stack_delay: Nanos, stage: &Stage<'_>) -> (BitRate, Nanos) {
    let topology = stage.topology;
    let nothing = (stage.clock.rate, Nanos(2 * stack_delay.0));
    let Ok(next_hops) = NextHops::new(topology, &LinkState::new(topology)) else { return nothing };
    let racks = topology.router_ids().filter_map(|router| {
        let mut rack = topology.rack(router);
        Some((rack.next()?, rack.last()))
    });
    let racks: Vec<_> = racks.collect();
    let pairs = racks.iter().flat_map(|&(from, neighbour)| {
        let others = racks.iter().map(|&(to, _)| to).chain(neighbour);
        others.filter(move |&to| to != from).map(move |to| (from, to))
    });
    let paths = pairs.filter_map(|(from, to)| {
        let path = path::by_ecmp(topology, &next_hops, stage.seed, from, to, 0).ok()?;
        Some(cost(path.links(topology), mtu, stack_delay, topology))
    });
    paths.max_by_key(|&(_, round_trip)| round_trip).unwrap_or(nothing)
}

fn cost(
    path: impl Iterator<Item = LinkId>,
    mtu: u16,
    stack_delay: Nanos,
    topology: &Topology,
) -> (BitRate, Nanos) {
    let mut round_trip = 2 * stack_delay.0;
    let mut slowest = BitRate(u64::MAX);
    for link in path.map(|link| topology.links()[link.index()]) {
        slowest = slowest.min(link.rate);
        let bits = 8_000_000_000 * u128::from(u64::from(mtu) + FRAMING + SHORTEST);
        round_trip += 2 * link.delay.0 + bits.div_ceil(u128::from(link.rate.0.max(1))) as u64;
    }
    (slowest, Nanos(round_trip))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::plan::Plan;

    fn hosts_of(rest: &str) -> HostConfig {
        let flows = "[[workload]]\npattern = \"incast\"\nsizes = \"1MB\"\n";
        let experiment = Experiment::parse(&format!("duration = \"1s\"\n{rest}{flows}"), "test").unwrap();
        Plan::new(&experiment).unwrap().hosts
    }

    /// The round trip of a rack: two links with 1,230.4 ns for data, 67.2 ns for acknowledgements and 1 us of delay each
    /// way, and two stacks of 10 us.
    const ROUND_TRIP: u64 = 26_596;

    /// With the retransmission timeout that a handshake would have measured.
    fn hosts_with(algorithm: Algorithm) -> HostConfig {
        let mut tcp = TcpConfig::with(algorithm);
        tcp.rto.initial = Nanos(3 * ROUND_TRIP);
        HostConfig::with(Transport::Tcp(tcp))
    }

    #[test]
    fn defaults_are_those_of_the_hosts() {
        assert_eq!(hosts_of(""), hosts_with(Algorithm::Cubic));
        let dctcp = hosts_of("[scheme]\nname = \"dctcp\"\n");
        assert_eq!(dctcp, hosts_with(Algorithm::Dctcp), "the transport follows the scheme");
    }

    #[test]
    fn the_initial_timeout_is_at_most_the_longest() {
        let hosts = hosts_of("[transport]\nmin_rto = \"10us\"\nmax_rto = \"50us\"\n");
        let Transport::Tcp(tcp) = hosts.transport else { panic!("TCP is the default") };
        assert_eq!(tcp.rto.initial, Nanos::from_micros(50));
    }

    #[test]
    fn the_window_of_p_fabric_is_a_bandwidth_delay_product() {
        let Transport::PFabric(config) = hosts_of("[scheme]\nname = \"pfabric\"\n").transport else {
            panic!("it goes with its scheme")
        };
        assert_eq!(config.rto, Nanos(3 * ROUND_TRIP));
        assert_eq!(u64::from(config.window), ROUND_TRIP * 10 / 8);
    }

    #[test]
    fn flows_are_ecn_capable_if_the_scheme_marks() {
        let is_capable = |scheme: &str| match hosts_of(&format!("[scheme]\nname = \"{scheme}\"\n")).transport
        {
            Transport::Tcp(tcp) => tcp.ecn,
            _ => false,
        };
        assert_eq!(["droptail", "red", "red_ecn", "fq_codel"].map(is_capable), [false, false, true, true]);
    }
}
