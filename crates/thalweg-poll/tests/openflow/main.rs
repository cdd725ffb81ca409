//! The OpenFlow source against switches that follow a script, and against Open vSwitch.

mod device;
#[path = "../../../thalweg-actuators/tests/isolation_openflow/network.rs"]
#[expect(dead_code, reason = "the tests of isolation use more of it")]
mod network;
mod open_vswitch;

use std::cell::Cell;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use thalweg_poll::interval::between;
use thalweg_poll::openflow::{Connections, OpenFlow, OpenFlowOptions, Peer};
use thalweg_poll::{CounterSource as _, InterfaceReading, ReadError, Scope, Unusable};
use thalweg_wire::openflow::multipart::PortStats;
use thalweg_wire::openflow::{Body, DatapathId, ErrorMessage, ErrorType, QueueId};
use thalweg_wire::{BitRate, Nanos, Timestamp};

use device::{Device, Model, local, port_of, queue_of};

const SWITCH: DatapathId = DatapathId(0xd1);

/// A timeout that no switch of these tests needs.
const PATIENT: Duration = Duration::from_secs(30);

/// A timeout for what does not come.
const SHORT: Duration = Duration::from_millis(200);

/// A switch with the ports wan0 (1) and lan0 (2). wan0 has the queues 0 and 1.
fn model() -> Model {
    let model = Model::default();
    model.change(|it| {
        it.ports = vec![port_of("wan0", 1, 100), port_of("lan0", 2, 100)];
        it.queues = vec![queue_of(1, 0, 5_000, 10, 90), queue_of(1, 1, 700, 300, 90)];
    });
    model
}

fn options(timeout: Duration) -> OpenFlowOptions {
    OpenFlowOptions {
        switch: SWITCH,
        port: "wan0".to_owned(),
        primary: Some(QueueId(0)),
        scavenger: Some(QueueId(1)),
        has_one_queue: false,
        timeout,
    }
}

fn started(peer: Peer) -> Arc<Connections> {
    let connections = Connections::new(peer, None, None);
    connections.start().unwrap();
    Arc::new(connections)
}

fn listening() -> Arc<Connections> {
    started(Peer::Listen(local()))
}

fn address_of(connections: &Connections) -> SocketAddr {
    let Peer::Listen(address) = connections.peer() else { panic!("{}", connections.peer()) };
    address
}

/// A switch that has connected, and a source that reads it.
fn connected(model: &Model, options: OpenFlowOptions) -> (Device, OpenFlow) {
    let connections = listening();
    let device = model.connect(address_of(&connections), SWITCH);
    (device, OpenFlow::new(options, connections))
}

/// Reads at this second.
fn read(source: &mut OpenFlow, second: u64) -> Result<InterfaceReading, ReadError> {
    // A millisecond passes with each look at the clock.
    let now = Cell::new(Timestamp(0) + Nanos::from_secs(second));
    source.read(&|| now.replace(now.get() + Nanos::from_millis(1)))
}

fn message(result: Result<InterfaceReading, ReadError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn the_loss_is_that_of_the_primary_queue_and_the_switch_is_left_alone() {
    let model = model();
    let (_device, mut source) = connected(&model, options(PATIENT));
    let first = read(&mut source, 1_000).unwrap();
    assert_eq!((first.name.as_str(), first.index, first.scope), ("wan0", 1, Scope::PrimaryQueue));
    assert_eq!((first.agent.unwrap().to_string().as_str(), first.is_up), ("127.0.0.1", true));
    assert_eq!((first.speed, first.uptime_ticks), (Some(BitRate(1_000_000_000)), Some(10_050)));
    assert_eq!((first.output.packets.value, first.output.discards.unwrap().value), (2_004, 4));
    assert_eq!((first.input.bytes.value, first.input.errors.unwrap().value), (1_000_000, 5));
    assert_eq!((first.time, first.time_error), (Timestamp(1_000_000_500_000), Nanos(500_000)));
    model.change(|it| {
        it.ports[0].1.duration_sec += 10;
        it.queues = vec![queue_of(1, 0, 5_990, 20, 100), queue_of(1, 1, 800, 500, 100)];
    });
    let interval = between(&first, &read(&mut source, 1_010).unwrap());
    let loss = interval.loss.unwrap();
    assert_eq!((loss.packets, loss.drops, loss.bytes, loss.seconds), (1_000, 10, 990_000, 10.0));
    assert_eq!(interval.scavenger.map(|loss| (loss.packets, loss.drops)), Some((300, 200)));
    let names = model.change(|it| it.received.iter().map(Body::name).collect::<Vec<_>>());
    let reads = ["Hello", "FeaturesRequest", "SetAsync", "MultipartRequest", "BarrierRequest", "EchoRequest"];
    assert!(names.iter().all(|name| reads.contains(name)), "no role, no change: {names:?}");
}

#[test]
fn without_a_queue_the_port_is_read_and_says_what_its_drops_count() {
    let model = model();
    for (has_one_queue, scope, loss) in
        [(true, Scope::OneQueue, Ok((1_010, 10))), (false, Scope::AllQueues, Err(Unusable::SumOfQueues))]
    {
        let options = OpenFlowOptions { primary: None, scavenger: None, has_one_queue, ..options(PATIENT) };
        let (_device, mut source) = connected(&model, options);
        let first = read(&mut source, 0).unwrap();
        assert_eq!((first.scope, first.primary), (scope, None));
        model.change(|it| {
            let stats = &mut it.ports[0].1;
            (stats.tx_packets, stats.tx_dropped) = (stats.tx_packets + 1_000, stats.tx_dropped + 10);
            stats.duration_sec += 10;
        });
        let interval = between(&first, &read(&mut source, 10).unwrap());
        assert_eq!(interval.loss.map(|loss| (loss.packets, loss.drops)), loss);
        assert_eq!(interval.port.unwrap().1.discards, Some(10));
    }
    assert!(!model.change(|it| it.received.iter().any(|body| format!("{body:?}").contains("Queue("))));
}

#[test]
fn a_counter_with_all_bits_set_is_unsupported() {
    let model = model();
    let (_device, mut source) = connected(&model, options(PATIENT));
    model.change(|it| {
        let stats = &mut it.ports[0].1;
        (stats.tx_dropped, stats.rx_dropped, stats.rx_errors) = (u64::MAX, u64::MAX, u64::MAX);
        (stats.duration_sec, stats.duration_nsec) = (u32::MAX, u32::MAX);
        // Open vSwitch reports such an age of a queue.
        (it.queues[0].duration_sec, it.queues[1].duration_sec) = (4_219_951_742, u32::MAX);
        it.queues[0].tx_bytes = u64::MAX;
    });
    let reading = read(&mut source, 0).unwrap();
    assert_eq!((reading.output.discards, reading.input.discards, reading.input.errors), (None, None, None));
    assert_eq!((reading.output.packets.value, reading.uptime_ticks), (2_000, None));
    assert_eq!((reading.primary.unwrap().age, reading.scavenger.unwrap().age), (None, None));
    assert_eq!(reading.primary.unwrap().sent_bytes, None);
    let expected = "switch 00000000000000d1 does not report tx_errors of queue 0 (all bits are set: unsupported) of interface wan0";
    model.change(|it| it.queues[0].tx_errors = u64::MAX);
    let error = read(&mut source, 0).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.kind()), (expected, "counter"));
    // The drops of the port are needed only if they are those of its one queue.
    let options = OpenFlowOptions { primary: None, scavenger: None, has_one_queue: true, ..options(PATIENT) };
    let (_device, mut source) = connected(&model, options);
    assert!(message(read(&mut source, 0)).contains("does not report tx_dropped (all bits are set"));
}

#[test]
fn a_port_is_found_by_its_name_when_its_number_changes() {
    let model = model();
    let (_device, mut source) = connected(&model, options(PATIENT));
    let first = read(&mut source, 0).unwrap();
    model.change(|it| {
        it.renumber([2, 1]);
        it.ports.iter_mut().for_each(|(_, stats)| stats.duration_sec += 10);
    });
    let second = read(&mut source, 10).unwrap();
    assert_eq!((second.index, second.name.as_str(), second.output.packets.value), (2, "wan0", 2_004));
    assert_eq!(between(&first, &second).loss, Err(Unusable::Reindexed));
    // The number is taken by the other port between the request for the ports and that for the counters.
    model.change(|it| it.renumbered = vec![[1, 2]]);
    let third = read(&mut source, 20).unwrap();
    assert_eq!((third.index, third.output.packets.value), (1, 2_004), "not the counters of lan0");
    model.change(|it| it.renumbered = vec![[2, 1], [1, 2], [2, 1]]);
    let expected = "switch 00000000000000d1: its ports changed during each of 3 readings";
    assert_eq!(message(read(&mut source, 30)), expected);
    model.change(|it| it.ports.retain(|(port, _)| port.name.as_bytes() != b"wan0"));
    let expected = "switch 00000000000000d1 has no interface whose port name is \"wan0\"; it has lan0";
    assert_eq!(message(read(&mut source, 40)), expected);
    model.change(|it| it.ports = vec![port_of("wan0", 1, 0), port_of("wan0", 2, 0)]);
    let error = read(&mut source, 50).unwrap_err();
    assert!(error.to_string().contains("2 interfaces whose port name is \"wan0\""), "{error}");
}

#[test]
fn a_younger_port_or_queue_makes_the_interval_unusable() {
    let model = model();
    let (_device, mut source) = connected(&model, options(PATIENT));
    let mut last = read(&mut source, 0).unwrap();
    let mut interval = |second| {
        let earlier = last.clone();
        last = read(&mut source, second).unwrap();
        between(&earlier, &last).loss.map(|loss| loss.drops)
    };
    // The port was added again, and its counters have grown beyond the earlier ones.
    model
        .change(|it| it.ports[0] = (it.ports[0].0, PortStats { tx_bytes: 9_000_000, ..port_of("", 1, 4).1 }));
    assert_eq!(interval(10), Err(Unusable::Restarted));
    // The same for a queue.
    model.change(|it| {
        it.ports[0].1.duration_sec = 14;
        it.queues[0] = queue_of(1, 0, 6_000, 600, 3);
        it.queues[1].duration_sec = 110;
    });
    assert_eq!(interval(20), Err(Unusable::Reset));
    model.change(|it| {
        it.ports[0].1.duration_sec = 24;
        it.queues[0] = queue_of(1, 0, 7_000, 601, 13);
        it.queues[1].duration_sec = 112;
    });
    assert_eq!(interval(30), Err(Unusable::Reset), "the scavenger queue is 2 s older after 10 s");
    model.change(|it| {
        it.ports[0].1.duration_sec = 34;
        it.queues[0] = queue_of(1, 0, 8_000, 603, 23);
        it.queues[1].duration_sec = 122;
    });
    assert_eq!(interval(40), Ok(2));
}

#[test]
fn a_refused_request_is_named_with_type_and_code() {
    let model = model();
    let (_device, mut source) = connected(&model, options(PATIENT));
    let error = |error_type, code| ErrorMessage { error_type, code, data: vec![] };
    model.change(|it| it.refused = Some(("PortStats", error(ErrorType::BAD_REQUEST, 2))));
    let refused = read(&mut source, 0).unwrap_err();
    let expected = "switch 00000000000000d1 refuses the request for the counters of port 1: bad request: bad multipart (type 1, code 2)";
    assert_eq!((refused.to_string().as_str(), refused.kind()), (expected, "refused"));
    model.change(|it| it.refused = Some(("Queue", error(ErrorType::BAD_REQUEST, 5))));
    let expected = "the counters of queue 0 of port 1: bad request: eperm (type 1, code 5)";
    assert!(message(read(&mut source, 0)).ends_with(expected));
    // The next reading is not affected.
    model.change(|it| it.refused = None);
    assert!(read(&mut source, 10).is_ok());
    // A queue that does not exist is refused, or missing in the answer.
    model.change(|it| it.queues[0].queue_id = QueueId(7));
    let expected = "the counters of queue 0 of port 1: queue operation failed: bad queue (type 9, code 1); the port has queues 7, 1";
    let refused = message(read(&mut source, 20));
    assert!(refused.ends_with(expected), "{refused}");
    model.change(|it| it.omits_queues = true);
    let missing = message(read(&mut source, 30));
    assert!(
        missing.ends_with("does not report counters of queue 0 of interface wan0; the port has queues 7, 1"),
        "{missing}"
    );
    model.change(|it| it.queues.clear());
    assert!(message(read(&mut source, 30)).ends_with("; the port has no queues"));
}

#[test]
fn a_silent_switch_times_out_and_one_that_returns_is_read_again() {
    let model = model();
    let (device, mut source) = connected(&model, options(PATIENT));
    let first = read(&mut source, 0).unwrap();
    let connections = listening();
    let address = address_of(&connections);
    let mut source = OpenFlow::new(options(SHORT), connections);
    drop(device);
    let listens = format!("switch 00000000000000d1 is not connected: listening at {address}: ");
    let error = read(&mut source, 5).unwrap_err();
    assert_eq!((error.to_string(), error.kind()), ([&listens, "no connection yet"].concat(), "connection"));
    let device = model.connect(address, SWITCH);
    while read(&mut source, 6).is_err() {}
    model.change(|it| it.unanswered = Some("Queue"));
    let error = read(&mut source, 10).unwrap_err();
    let expected = "no answer from switch 00000000000000d1: requested the counters of queue 0 of port 1, waited for 200 ms";
    assert_eq!((error.to_string().as_str(), error.kind()), (expected, "timeout"));
    model.change(|it| it.unanswered = None);
    drop(device);
    let gone = loop {
        let Err(error) = read(&mut source, 20) else { continue };
        if error.to_string().starts_with(&listens) {
            break error.to_string();
        }
    };
    assert!(
        gone.contains("switch 00000000000000d1: c"),
        "closed by the switch, or connection failed: {gone}"
    );
    // Another switch does not answer for it.
    let _other = model.connect(address, DatapathId(2));
    while !message(read(&mut source, 25)).ends_with("no connection yet; connected: switch 0000000000000002") {
    }
    // It restarted: its port is younger.
    model.change(|it| it.ports[0] = port_of("wan0", 1, 3));
    let _device = model.connect(address, SWITCH);
    let later = loop {
        if let Ok(reading) = read(&mut source, 30) {
            break reading;
        }
    };
    assert_eq!(between(&first, &later).loss, Err(Unusable::Restarted));
}

#[test]
fn all_ports_of_a_switch_that_listens_are_read_over_one_connection() {
    let model = model();
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    let connections = started(Peer::Connect(address, String::new()));
    let device = model.accept(&listener, SWITCH);
    let mut wan = OpenFlow::new(options(PATIENT), Arc::clone(&connections));
    let without =
        OpenFlowOptions { port: "lan0".to_owned(), primary: None, scavenger: None, ..options(PATIENT) };
    let mut lan = OpenFlow::new(without, Arc::clone(&connections));
    assert_eq!(
        wan.description(),
        format!("OpenFlow of switch 00000000000000d1 (at {address}), port wan0, queue 0")
    );
    assert_eq!((read(&mut wan, 0).unwrap().index, read(&mut lan, 0).unwrap().index), (1, 2));
    let hellos = model.change(|it| it.received.iter().filter(|body| body.name() == "Hello").count());
    assert_eq!(hellos, 1);
    // The source connects again by itself.
    drop(device);
    let _device = model.accept(&listener, SWITCH);
    read(&mut wan, 10).unwrap();
}

#[test]
fn a_switch_that_cannot_be_reached_is_reported_with_the_reason() {
    let free = TcpListener::bind(local()).unwrap().local_addr().unwrap();
    let connections = started(Peer::Connect(free, String::new()));
    let mut source = OpenFlow::new(options(SHORT), connections);
    let expected = format!("switch 00000000000000d1 is not connected: at {free}: cannot connect: ");
    while !message(read(&mut source, 0)).starts_with(&expected) {}
    let taken = TcpListener::bind(local()).unwrap();
    let address = taken.local_addr().unwrap();
    let error = Connections::new(Peer::Listen(address), None, None).start().unwrap_err();
    assert!(error.starts_with(&format!("cannot listen at {address}: ")), "{error}");
}
