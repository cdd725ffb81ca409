//! Computes the results of a finished run.

use thalweg_emulator::hosts::{CompletedFlow, Hosts};
use thalweg_emulator::workloads::UNBOUNDED;
use thalweg_emulator::{Fabric, Place, Slot};
use thalweg_network::{Node, Topology};
use thalweg_wire::Timestamp;

use super::ideal_fct::IdealFct;
use super::results::{
    DropRow, FlowCounts, FlowRow, MirrorUse, PacketCounts, Results, SIZE_CLASSES, SizeClassRow, Spread,
    Summary, UnboundedFlows, per_second, size_class,
};
use super::run::{Ended, Run};

/// The number of links and queues in the summary.
const BUSIEST: usize = 10;

/// The results of a run.
pub(super) fn results(run: &Run, ended: &Ended) -> Results {
    let (plan, topology) = (&run.plan, &run.plan.topology);
    let slots = run.watched.now().0 - 1;
    let flows = flow_rows(run);
    let summary = summary(run, ended, &flows);
    let drops = run.watched.drops().iter().map(|(&(place, reason), &packets)| DropRow {
        place: named(topology, place),
        reason: reason.name(),
        packets,
    });
    Results {
        experiment: plan.name.clone(),
        scheme: plan.scheme.name().to_owned(),
        transport: if run.traffic.hosts.is_some() { plan.transport_name.clone() } else { "none".to_owned() },
        topology: plan.topology_name.clone(),
        seed: plan.seed,
        duration_ns: measured_until(run).0,
        drain_ns: run.clock.start_of(Slot(slots)).since(measured_until(run)).0,
        warnings: plan.warnings.clone(),
        warm_up_ns: plan.warm_up.0,
        slots,
        wall_seconds: ended.wall_seconds,
        interrupted: ended.interrupted,
        drops: drops.collect(),
        queues: if ended.keep_rows { run.recorder.queue_rows(topology) } else { Vec::new() },
        links: if ended.keep_rows { run.recorder.link_rows(topology) } else { Vec::new() },
        flows,
        summary,
    }
}

/// The end of the measurement.
fn measured_until(run: &Run) -> Timestamp {
    let end = run.measured.as_ref().and_then(|measured| measured.slot);
    run.clock.start_of(end.unwrap_or(run.watched.now()))
}

fn summary(run: &Run, ended: &Ended, flows: &[FlowRow]) -> Summary {
    let topology = &run.plan.topology;
    let warm_up = Timestamp(run.plan.warm_up.0);
    let seconds = measured_until(run).since(warm_up).as_secs_f64();
    let hosts = run.traffic.hosts.as_ref();
    let measured = run.measured.as_ref();
    let delivered = measured.map_or(0, |counters| {
        counters.totals.bytes_delivered - run.warm.totals.bytes_delivered.min(counters.totals.bytes_delivered)
    });
    Summary {
        packets: PacketCounts {
            sent: run.watched.sent(),
            delivered: run.watched.delivered(),
            dropped: run.watched.dropped(),
            in_flight: ended.in_flight,
            marked: run.recorder.marked(&*run.watched.network),
        },
        throughput_bps: per_second(run.recorder.bytes_to_endpoints(), seconds),
        goodput_bps: per_second(delivered, seconds),
        flows: hosts.map(|hosts| flow_counts(hosts, run.not_recorded)).unwrap_or_default(),
        sizes: hosts.map(|hosts| size_classes(hosts, flows, warm_up)).unwrap_or_default(),
        unbounded: unbounded(run, seconds),
        busiest_links: run.recorder.busiest_links(topology, seconds, BUSIEST),
        longest_queues: run.recorder.longest_queues(topology, warm_up, BUSIEST),
        mirrors: ended.mirrors.clone(),
        series: ended.series.clone(),
    }
}

/// Packets sent by monitor ports so far.
pub(super) fn mirrors(run: &Run) -> Vec<MirrorUse> {
    let uses = run.plan.monitors.iter().filter_map(|monitor| {
        let tally = run.watched.network.monitor_tally(monitor.router)?;
        Some(MirrorUse {
            router: run.plan.topology.name(Node::Router(monitor.router)).to_owned(),
            packets: tally.sent.packets,
            bytes: tally.sent.bytes,
            dropped_packets: tally.dropped.packets,
        })
    });
    uses.collect()
}

fn flow_counts(hosts: &Hosts, not_recorded: u64) -> FlowCounts {
    let totals = hosts.totals();
    let unbounded = hosts.flows().filter(|flow| flow.bytes == UNBOUNDED).count() as u64;
    FlowCounts {
        started: totals.flows_started,
        completed: totals.flows_completed,
        unfinished: hosts.active_flows() as u64 - unbounded,
        unbounded,
        refused: totals.flows_refused,
        not_recorded,
        retransmissions: totals.retransmissions,
        spurious_retransmissions: totals.spurious,
        timeouts: totals.timeouts,
    }
}

fn flow_rows(run: &Run) -> Vec<FlowRow> {
    let topology = &run.plan.topology;
    let mut ideal_fct = IdealFct::new(&run.plan);
    let name = |endpoint| topology.name(Node::Endpoint(endpoint)).to_owned();
    let row = |flow: &CompletedFlow| {
        let fct_ns = flow.completion_time().0;
        let unloaded = ideal_fct.time_ns(flow.source, flow.destination, flow.bytes);
        FlowRow {
            flow: flow.flow,
            src: name(flow.source),
            dst: name(flow.destination),
            bytes: flow.bytes,
            dscp: flow.dscp,
            start_ns: flow.start.0,
            fct_ns,
            slowdown: unloaded.map_or(f64::NAN, |unloaded| fct_ns as f64 / unloaded),
            retransmissions: u32::try_from(flow.retransmissions).unwrap_or(u32::MAX),
            timeouts: u32::try_from(flow.timeouts).unwrap_or(u32::MAX),
            marks: u32::try_from(flow.marks).unwrap_or(u32::MAX),
        }
    };
    run.completed.iter().map(row).collect()
}

/// Completion times by size class, and of all flows.
fn size_classes(hosts: &Hosts, flows: &[FlowRow], warm_up: Timestamp) -> Vec<SizeClassRow> {
    let all = ("all", None);
    let classes = SIZE_CLASSES.iter().enumerate().map(|(index, &(name, _))| (name, Some(index))).chain([all]);
    let rows = classes.map(|(class, index)| {
        let belongs = |bytes: u64| index.is_none_or(|index| size_class(bytes) == index);
        let of_class: Vec<&FlowRow> =
            flows.iter().filter(|flow| flow.start_ns >= warm_up.0 && belongs(flow.bytes)).collect();
        let spread = |of: fn(&FlowRow) -> f64| {
            let mut values: Vec<f64> =
                of_class.iter().map(|flow| of(flow)).filter(|value| value.is_finite()).collect();
            Spread::of(&mut values)
        };
        let under_way = hosts
            .flows()
            .filter(|flow| flow.start >= warm_up && flow.bytes != UNBOUNDED && belongs(flow.bytes));
        SizeClassRow {
            class,
            completed: of_class.len() as u64,
            unfinished: under_way.count() as u64,
            fct_ns: spread(|flow| flow.fct_ns as f64),
            slowdown: spread(|flow| flow.slowdown),
        }
    });
    rows.collect()
}

fn unbounded(run: &Run, seconds: f64) -> Option<UnboundedFlows> {
    let flows = run.measured.iter().flat_map(|measured| &measured.unbounded);
    let mut goodputs: Vec<f64> = flows
        .map(|(flow, delivered)| per_second(delivered - run.warm.unbounded.get(flow).unwrap_or(&0), seconds))
        .collect();
    if goodputs.is_empty() {
        return None;
    }
    let sum: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|goodput| goodput * goodput).sum();
    let fairness = if squares > 0.0 { sum * sum / (goodputs.len() as f64 * squares) } else { 1.0 };
    Some(UnboundedFlows { flows: goodputs.len() as u64, goodput_bps: Spread::of(&mut goodputs), fairness })
}

fn named(topology: &Topology, place: Place) -> String {
    match place {
        Place::Endpoint(endpoint) => topology.name(Node::Endpoint(endpoint)).to_owned(),
        Place::Router(router) => topology.name(Node::Router(router)).to_owned(),
        Place::Port(router, port) => {
            let to = topology.name(topology.peer(router, port).node);
            format!("{} > {to}", topology.name(Node::Router(router)))
        }
    }
}
