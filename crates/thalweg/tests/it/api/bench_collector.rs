//! A collector with fixed responses.

use thalweg_daemon::collectors::handle::reply_to;
use thalweg_daemon::collectors::{
    CollectorCounters, CollectorHandle, CollectorRequest, Description, FlowChunk, Mailbox, TasksReport,
};
use thalweg_measure::collector::{Counters, FlowRate, FlowReport, LinkDirection, LinkReport, PortDirection};
use thalweg_measure::meter::intake::IntakeCounters;
use thalweg_measure::rates::Basis;
use thalweg_measure::tasks::{Monitor, Plan, TaskList, TasksOptions, Windows};
use thalweg_network::PortIndex;
use thalweg_sketch::{Bound, Estimate};
use thalweg_wire::{
    BitRate, Bytes, EthernetAddresses, FlowKey, Fragment, Nanos, Packet, PacketNotes, Protocol,
    SourceCounters, TcpFlags, Timestamp,
};

/// Its time.
pub(crate) const NOW: Timestamp = Timestamp(1_795_299_376_495_499_720);

/// Its number of flows.
pub(crate) const FLOWS: u32 = 100;

/// Creates a collector of this name at switch `tor0`.
pub(crate) fn new(name: &str) -> (CollectorHandle, Mailbox) {
    CollectorHandle::new(Description {
        name: name.into(),
        switch: "tor0".into(),
        source: format!("{name}.pcapng"),
        is_live: false,
    })
}

/// Answers a query. `quiet` has no links and flows; other collectors do.
pub(crate) fn answer_request(request: CollectorRequest, description: &Description) {
    let sees = &*description.name != "quiet";
    match request {
        CollectorRequest::Links(reply) => reply_to(&reply, NOW, if sees { links() } else { Vec::new() }),
        CollectorRequest::Flow(key, reply) => {
            let flow = (0..FLOWS).map(flow).find(|flow| sees && flow.key == key);
            reply_to(&reply, NOW, flow);
        }
        CollectorRequest::Flows(slots, reply) => {
            let flows = (0..FLOWS).filter(|number| sees && slots.contains(number)).map(flow).collect();
            reply_to(&reply, NOW, FlowChunk { flows, slots: FLOWS });
        }
        CollectorRequest::Counters(reply) => reply_to(&reply, NOW, counters()),
        CollectorRequest::Network(_, reply) => reply_to(&reply, NOW, Ok(())),
        _ => {}
    }
}

/// All links of a switch with four ports.
fn links() -> Vec<LinkReport> {
    let ways = [PortDirection::Input, PortDirection::Output];
    let sides =
        (0..4).flat_map(|port| ways.map(|way| LinkDirection { port: PortIndex(port), direction: way }));
    sides.map(link).collect()
}

/// A link of 10 Gbit/s, nearly full.
pub(crate) fn link(side: LinkDirection) -> LinkReport {
    LinkReport {
        side,
        capacity: BitRate(10_000_000_000),
        rate: Estimate::within(9.2e9, 9.0e9, f64::INFINITY, 0.95),
        smoothed: 9.1e9,
        peak: 9.9e9,
        utilisation: 0.91,
        flows: 3,
        changed: NOW,
    }
}

/// Flow `number`. Rates grow with the number. Number 0 has no rate yet, every tenth flow is a cheetah flow, odd ones leave
/// through port 3.
pub(crate) fn flow(number: u32) -> FlowReport {
    let key = FlowKey::v4(0x0A00_0001, 0x0A00_0100 + number, 443, 51_000, Protocol::TCP);
    let rate = (number > 0).then(|| {
        let value = f64::from(number) * 1e6;
        let rate = match number % 2 {
            0 => Estimate { value, bound: Bound::Unknown },
            _ => Estimate::within(value, value * 0.97, value * 1.03, 0.95),
        };
        let ethernet = EthernetAddresses::default();
        FlowRate {
            key,
            ethernet,
            rate,
            basis: Basis::SequenceNumbers,
            span: (Timestamp(NOW.0 - 500_000), NOW),
        }
    });
    FlowReport {
        key,
        rate,
        input: (!number.is_multiple_of(3)).then_some(PortIndex(0)),
        output: Some(PortIndex(if number % 2 == 1 { 3 } else { 2 })),
        first: Timestamp(NOW.0 - 1_000_000),
        last: NOW,
        samples: u64::from(number),
        sampled: Bytes(1_500 * u64::from(number)),
        repeated: Bytes(0),
        reordered: 0,
        is_cheetah: number.is_multiple_of(10),
    }
}

fn counters() -> CollectorCounters {
    CollectorCounters {
        source: SourceCounters { frames: 1_000, kernel_drops: 7, ..SourceCounters::default() },
        intake: IntakeCounters::default(),
        collector: Counters::default(),
        flows: u64::from(FLOWS),
        flow_capacity: 1_024,
        memory: Bytes(450_560),
        sampling_ratio: Some(Estimate::within(0.25, 0.24, 0.26, 0.95)),
    }
}

/// Results of each kind of task over two windows.
pub(crate) fn tasks() -> TasksReport {
    let list = "heavy:1%,change:1s,distinct:src,entropy:dst,spread:src>0,moments:bytes,hhh:1%";
    let options = TasksOptions {
        tasks: list.parse::<TaskList>().unwrap().0,
        window: Nanos::from_secs(1),
        ..TasksOptions::default()
    };
    let plan = Plan::new(options).unwrap();
    let (mut monitor, mut windows) = (Monitor::new(&plan, 0), Windows::new(&plan));
    for second in 0..3 {
        let packets: Vec<_> = (0..200).map(|number| packet(second, number)).collect();
        monitor.packets(&packets, |window| windows.add(window));
    }
    monitor.finish(|window| windows.add(window));
    windows.finish();
    let mut report = TasksReport::of(&plan);
    while let Some(window) = windows.next_report() {
        report.take(window);
    }
    report
}

fn packet(second: u64, number: u32) -> Packet {
    Packet {
        time: Timestamp::new(1_795_299_376 + second, number),
        key: flow(number % (5 + 5 * second as u32)).key,
        ethernet: EthernetAddresses::default(),
        ip_length: 1_500,
        payload_length: 1_448,
        identification: 0,
        tcp_sequence: 0,
        tcp_flags: TcpFlags::default(),
        fragment: Fragment::Whole,
        notes: PacketNotes::default(),
    }
}
