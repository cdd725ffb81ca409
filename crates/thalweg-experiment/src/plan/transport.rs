//! `[transport]`.

use thalweg_config::Typed;
use thalweg_emulator::Slot;
use thalweg_emulator::hosts::{
    AckPolicy, Algorithm, HostConfig, HostConfigError, PFabricConfig, RtoConfig, TcpConfig, Transport,
};
use thalweg_emulator::schemes::Scheme;
use thalweg_network::routing::{NextHops, path};
use thalweg_network::{LinkId, LinkState};
use thalweg_wire::{BitRate, Nanos};

use super::Stage;
use super::scheme::marks;
use crate::experiment::Problem;
use crate::experiment::table::{self, Hosts, MIRROR};

/// Bytes of Ethernet framing.
const FRAMING: u64 = thalweg_emulator::packet::FRAMING as u64;
/// Segments that are kept for copies: packets that come back in a slot, many times over.
const MIRRORED_LATE: u32 = 1 << 16;
/// Bytes of an acknowledgement on a link.
const SHORTEST: u64 = thalweg_emulator::packet::SHORTEST as u64;

/// How endpoints send.
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
    let with_ecn = |algorithm, ecn: &table::Ecn, keys| {
        Transport::Tcp(tcp(keys, algorithm, ecn.ecn.unwrap_or(marks(scheme))))
    };
    let transport = match &**entry {
        table::Transport::PFabric(keys) => Transport::PFabric(p_fabric(keys, mtu, stack_delay, stage)),
        // DCTCP has no such key: it is ECN-capable in any case.
        table::Transport::Dctcp(keys) => Transport::Tcp(tcp(keys, Algorithm::Dctcp, false)),
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

fn tcp(keys: &table::Tcp, algorithm: Algorithm, ecn: bool) -> TcpConfig {
    TcpConfig {
        algorithm,
        ecn,
        initial_window: keys.initial_window,
        rto: RtoConfig { initial: keys.initial_rto, min: keys.min_rto, max: keys.max_rto },
        ack: AckPolicy { every: keys.ack_every, timeout: keys.ack_timeout },
        tolerates_reordering: keys.tolerates_reordering,
    }
}

fn p_fabric(
    keys: &table::PFabricTransport,
    mtu: u16,
    stack_delay: Nanos,
    stage: &Stage<'_>,
) -> PFabricConfig {
    let (rate, round_trip) = longest_path(mtu, stack_delay, stage);
    let of_path = PFabricConfig::for_path(rate, round_trip);
    let window = keys.window.map(|window| u32::try_from(window.0).unwrap_or(u32::MAX));
    PFabricConfig {
        window: window.unwrap_or(of_path.window.max(u32::from(mtu))),
        rto: keys.rto.unwrap_or(of_path.rto),
        probe_after: keys.probe_after,
    }
}

/// The rate of the slowest link of the longest shortest path, and the time that a full-size packet and its
/// acknowledgement take there and back through empty queues, host stacks included. Racks stand for their endpoints.
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
        Some(cost(path.links(topology), mtu, stack_delay, stage))
    });
    paths.max_by_key(|&(_, round_trip)| round_trip).unwrap_or(nothing)
}

fn cost(
    path: impl Iterator<Item = LinkId>,
    mtu: u16,
    stack_delay: Nanos,
    stage: &Stage<'_>,
) -> (BitRate, Nanos) {
    // In slots, as the emulator has it: every link's transmission and delay is rounded up.
    let mut slots = 2 * stage.clock.slots_in(stack_delay);
    let mut slowest = BitRate(u64::MAX);
    for link in path.map(|link| stage.topology.links()[link.index()]) {
        slowest = slowest.min(link.rate);
        let slot = u128::from(stage.clock.slot_bytes) * u128::from(link.rate.0);
        let transmission =
            |bytes: u64| (u128::from(bytes) * u128::from(stage.clock.rate.0)).div_ceil(slot.max(1)) as u64;
        slots += transmission(u64::from(mtu) + FRAMING)
            + transmission(SHORTEST)
            + 2 * stage.clock.slots_in(link.delay);
    }
    (slowest, Nanos(stage.clock.start_of(Slot(slots)).0))
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

    #[test]
    fn the_table_has_the_defaults_of_the_hosts() {
        assert_eq!(hosts_of(""), HostConfig::default());
        let dctcp = HostConfig::with(Transport::Tcp(TcpConfig::with(Algorithm::Dctcp)));
        assert_eq!(hosts_of("[scheme]\nname = \"dctcp\"\n"), dctcp, "it goes with its scheme");
    }

    /// Two links, on each a slot for either packet and one for either delay, and two stacks of 9 slots: 26 slots of 1,230.4 ns.
    #[test]
    fn the_window_of_p_fabric_is_a_bandwidth_delay_product() {
        let Transport::PFabric(config) = hosts_of("[scheme]\nname = \"pfabric\"\n").transport else {
            panic!("it goes with its scheme")
        };
        let round_trip = 31_990;
        assert_eq!(config.rto, Nanos(3 * round_trip));
        assert_eq!(u64::from(config.window), round_trip * 10 / 8);
    }

    #[test]
    fn flows_are_ecn_capable_if_the_scheme_marks() {
        let is_capable = |scheme: &str| match hosts_of(&format!("[scheme]\nname = \"{scheme}\"\n")).transport
        {
            Transport::Tcp(tcp) => tcp.ecn,
            _ => false,
        };
        assert_eq!(["droptail", "red", "red-ecn", "fq_codel"].map(is_capable), [false, false, true, true]);
    }
}
