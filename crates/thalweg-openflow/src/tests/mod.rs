//! Connections to scripted switches.

mod tls;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use thalweg_wire::Nanos;
use thalweg_wire::openflow::multipart::{FlowFilter, MultipartReply, MultipartRequest, Reply, Request};
use thalweg_wire::openflow::{
    Body, BufferId, DatapathId, EncodeError, ErrorMessage, ErrorType, FlowMod, Match, PacketIn,
    PacketInReason, PortNumber, PortReason, PortStatus, TableId, Xid,
};

use super::*;
use crate::scripted_switch::{ScriptedSwitch, port};

const DATAPATH: DatapathId = DatapathId(0xd1);
const SECOND: Nanos = Nanos::from_secs(1);
/// Maximum time of any step on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

fn local() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn listening(config: Config) -> (Switches, Receiver<Event>, SocketAddr) {
    let (switches, events) = Switches::new(config);
    let address = switches.listen(local(), None).unwrap();
    (switches, events, address)
}

fn next(events: &Receiver<Event>) -> Event {
    events.recv_timeout(TEST_TIMEOUT).expect("an event")
}

fn up(events: &Receiver<Event>) -> Up {
    match next(events) {
        Event::Up(up) => *up,
        other => panic!("{other:?}"),
    }
}

/// A connected switch and its scripted peer.
fn connected(events: &Receiver<Event>, address: SocketAddr) -> (ScriptedSwitch, Switch) {
    let mut peer = ScriptedSwitch::connect(address);
    peer.complete_handshake(DATAPATH);
    (peer, up(events).switch)
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TEST_TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn flow_mod() -> Body {
    Body::FlowMod(FlowMod::default())
}

fn table_full() -> ErrorMessage {
    ErrorMessage { error_type: ErrorType::FLOW_MOD_FAILED, code: 1, data: vec![] }
}

#[test]
fn a_connected_switch_reports_its_ports_flows_and_groups() {
    let read_back = ReadBack { cookie: 0x74 << 56, mask: 0xff << 56 };
    let (switches, events, address) =
        listening(Config { read_back, miss_send_length: 64, ..Config::default() });
    let mut peer = ScriptedSwitch::connect(address);
    let requests = peer.complete_handshake(DATAPATH);
    let flows = Request::Flow(FlowFilter::by_cookie(0x74 << 56, 0xff << 56));
    assert!(requests.contains(&Body::MultipartRequest(flows.into())), "{requests:?}");
    assert!(
        requests.iter().any(|body| matches!(body, Body::SetConfig(config) if config.miss_send_len == 64))
    );
    let up = up(&events);
    assert_eq!((up.features.datapath_id, up.switch.datapath()), (DATAPATH, DATAPATH));
    assert_eq!(up.ports, [port(1), port(2)], "in two parts");
    assert_eq!((up.flows.len(), up.groups.len()), (1, 1));
    assert_eq!(switches.datapaths(), [DATAPATH]);
    assert!(switches.switch(DATAPATH).unwrap().is_same_connection(&up.switch));
    assert!(switches.switch(DatapathId(1)).is_none());
}

#[test]
fn a_controller_that_only_reads_leaves_the_switch_alone() {
    let (_switches, events, address) = listening(Config { reads_only: true, ..Config::default() });
    let mut peer = ScriptedSwitch::connect(address);
    let requests = peer.complete_handshake(DATAPATH);
    let names: Vec<_> = requests.iter().map(Body::name).collect();
    assert_eq!(names, ["FeaturesRequest", "SetAsync", "MultipartRequest", "BarrierRequest"]);
    let Body::SetAsync(wanted) = &requests[1] else { panic!("{requests:?}") };
    assert_eq!((wanted.packet_in.master, wanted.flow_removed.master, wanted.port_status.master), (0, 0, 7));
    assert_eq!(up(&events).ports, [port(1), port(2)]);
    // A switch need not support the choice of asynchronous messages.
    let mut peer = ScriptedSwitch::connect(address);
    peer.hello();
    let refusal = ErrorMessage { error_type: ErrorType::BAD_REQUEST, code: 1, data: vec![] };
    let xid = peer.receive().xid;
    peer.send(xid, Body::FeaturesReply(scripted_switch::features(DatapathId(2))));
    let xid = peer.receive().xid;
    peer.send(xid, Body::Error(refusal));
    peer.answer_requests(DatapathId(2));
    assert_eq!(up(&events).features.datapath_id, DatapathId(2));
}

#[test]
fn changes_during_the_handshake_are_reported_after_the_up_event() {
    let (_switches, events, address) = listening(Config::default());
    let mut peer = ScriptedSwitch::connect(address);
    peer.hello();
    let status = PortStatus { reason: PortReason::DELETE, port: port(2) };
    peer.send(Xid(0), Body::PortStatus(status));
    peer.answer_requests(DATAPATH);
    up(&events);
    assert!(matches!(next(&events), Event::PortStatus { status: reported, .. } if reported == status));
}

#[test]
fn a_batch_is_done_when_its_barrier_is_answered() {
    let (switches, events, address) = listening(Config::default());
    let (mut peer, switch) = connected(&events, address);
    let batch = switch.send_batch(&[flow_mod(), flow_mod()], SECOND).unwrap();
    let messages = [peer.receive(), peer.receive(), peer.receive()];
    assert_eq!(messages.clone().map(|message| message.body), [flow_mod(), flow_mod(), Body::BarrierRequest]);
    let first = messages[0].xid.0;
    assert_eq!(messages.map(|message| message.xid), [0, 1, 2].map(|after| Xid(first + after)));
    assert_eq!(batch.outcome(), None);
    assert_eq!(batch.xid(), Xid(first + 2));
    peer.send(batch.xid(), Body::BarrierReply);
    let outcome = batch.wait();
    assert_eq!((outcome.xid, outcome.result), (Xid(first + 2), Ok(())));
    assert!(outcome.took > Nanos::ZERO && outcome.took < SECOND);
    assert_eq!(switches.counters().done, 1);
}

#[test]
fn many_batches_share_one_outcome_channel() {
    let (_switches, events, address) = listening(Config::default());
    let (mut peer, switch) = connected(&events, address);
    let (outcomes, results) = crossbeam_channel::unbounded();
    let sent: Vec<_> =
        (0..3).map(|_| switch.send_batch_to(&[flow_mod()], SECOND, outcomes.clone()).unwrap()).collect();
    for xid in &sent {
        peer.receive_until_barrier();
        peer.send(*xid, Body::BarrierReply);
    }
    let xids: Vec<_> = (0..3).map(|_| results.recv_timeout(TEST_TIMEOUT).unwrap().xid).collect();
    assert_eq!(xids, sent);
}

#[test]
fn an_error_fails_its_batch_and_a_second_error_is_an_event() {
    let (switches, events, address) = listening(Config::default());
    let (mut peer, switch) = connected(&events, address);
    let batch = switch.send_batch(&[flow_mod(), flow_mod(), flow_mod()], SECOND).unwrap();
    let barrier = peer.receive_until_barrier();
    let (second, third) = (Xid(barrier.0 - 2), Xid(barrier.0 - 1));
    peer.send(second, Body::Error(table_full()));
    peer.send(third, Body::Error(table_full()));
    peer.send(barrier, Body::BarrierReply);
    let refused = Failure::Refused { position: 1, xid: second, error: table_full() };
    assert_eq!(batch.wait().result, Err(refused));
    assert!(matches!(next(&events), Event::Error { xid, .. } if xid == third));
    let counters = switches.counters();
    assert_eq!((counters.refusals, counters.done, counters.unexpected_answers), (1, 0, 0));
}

#[test]
fn an_unanswered_batch_times_out_and_its_late_answer_is_counted() {
    let (switches, events, address) = listening(Config::default());
    let (mut peer, switch) = connected(&events, address);
    let batch = switch.send_batch(&[flow_mod()], Nanos::from_millis(30)).unwrap();
    let outcome = batch.wait();
    assert_eq!(outcome.result, Err(Failure::TimedOut));
    assert!(outcome.took >= Nanos::from_millis(30), "{}", outcome.took);
    wait_until("it is counted", || switches.counters().timed_out == 1);
    let barrier = peer.receive_until_barrier();
    peer.send(barrier, Body::BarrierReply);
    wait_until("it is unexpected", || switches.counters().unexpected_answers == 1);
}

#[test]
fn the_end_of_a_connection_fails_pending_and_new_batches() {
    let (switches, events, address) = listening(Config::default());
    let (peer, switch) = connected(&events, address);
    let batch = switch.send_batch(&[flow_mod()], Nanos::from_secs(60)).unwrap();
    drop(peer);
    assert_eq!(batch.wait().result, Err(Failure::Down));
    assert!(matches!(next(&events), Event::Down { datapath: DATAPATH, .. }));
    assert_eq!(switch.send_batch(&[flow_mod()], SECOND).unwrap_err(), SendError::Down);
    assert!(switches.switch(DATAPATH).is_none());
}

#[test]
fn unanswered_batches_are_limited_and_invalid_messages_are_not_sent() {
    let (_switches, events, address) = listening(Config { max_unanswered: 2, ..Config::default() });
    let (mut peer, switch) = connected(&events, address);
    let too_long = EncodeError::TooLong { structure: "EchoRequest", length: 65_536, limit: 65_535 };
    let refused = switch.send(&[flow_mod(), Body::EchoRequest(vec![0; 65_528])]);
    assert_eq!(refused, Err(SendError::Encode(too_long)));
    let batchs = [(); 2].map(|()| switch.send_batch(&[], SECOND).unwrap());
    assert_eq!(switch.send_batch(&[], SECOND).unwrap_err(), SendError::TooManyUnanswered);
    for batch in &batchs {
        assert_eq!(peer.receive_until_barrier(), batch.xid(), "nothing refused was sent");
    }
    peer.send(batchs[0].xid(), Body::BarrierReply);
    wait_until("a slot is free again", || switch.send_batch(&[], SECOND).is_ok());
}

#[test]
fn an_answer_has_all_parts_or_fails_if_there_are_too_many() {
    let (_switches, events, address) = listening(Config { max_answer_parts: 6, ..Config::default() });
    let (mut peer, switch) = connected(&events, address);
    for (parts, is_answered) in [(6, true), (7, false)] {
        let answer = std::thread::scope(|scope| {
            let thread = scope.spawn(|| switch.flows(FlowFilter::all(), Nanos::from_secs(10)));
            let request = peer.receive();
            assert!(matches!(request.body, Body::MultipartRequest(MultipartRequest { more: false, .. })));
            for part in 1..=parts {
                let reply = Reply::Flow(vec![scripted_switch::flow()]);
                peer.send(request.xid, Body::MultipartReply(MultipartReply { more: part < parts, reply }));
            }
            thread.join().unwrap()
        });
        match answer {
            Ok(flows) => assert!(is_answered && flows.len() == 6),
            Err(error) => {
                assert!(!is_answered && error == SwitchRequestError::Failed(Failure::TooLong), "{error}")
            }
        }
    }
}

#[test]
fn a_refused_request_fails_with_the_error() {
    let (_switches, events, address) = listening(Config::default());
    let (mut peer, switch) = connected(&events, address);
    let requests = std::thread::scope(|scope| {
        let thread = scope.spawn(|| switch.port_stats(PortNumber::ANY, Nanos::from_secs(10)));
        let request = peer.receive();
        peer.send(request.xid, Body::Error(table_full()));
        thread.join().unwrap()
    });
    assert!(
        matches!(requests, Err(SwitchRequestError::Failed(Failure::Refused { error, .. })) if error == table_full())
    );
}

#[test]
fn a_switch_with_only_1_0_is_refused_with_an_error() {
    let (switches, events, address) = listening(Config::default());
    let mut peer = ScriptedSwitch::connect(address);
    peer.write(&[1, 0, 0, 8, 0, 0, 0, 1]);
    let Event::Refused { error, .. } = next(&events) else { panic!("expected a refused connection") };
    assert_eq!(error, HandshakeError::Version { highest: 1 });
    assert!(error.to_string().contains("OpenFlow 1.0 at most"), "{error}");
    assert!(matches!(peer.receive().body, Body::Hello(_)));
    let Body::Error(error) = peer.receive().body else { panic!("expected an error message") };
    assert_eq!(error.to_string(), "hello failed: incompatible (type 0, code 0)");
    assert_eq!(switches.counters().refused, 1);
}

#[test]
fn other_protocols_are_refused() {
    let (_switches, events, address) = listening(Config::default());
    ScriptedSwitch::connect(address).write(b"GET / HTTP/1.1\r\n\r\n");
    let Event::Refused { error, .. } = next(&events) else { panic!("expected a refused connection") };
    // "GET " decodes as a version, a type and a length of 0x5420, which never arrives.
    assert!(matches!(error, HandshakeError::Closed | HandshakeError::Broken(_)), "{error}");
    ScriptedSwitch::connect(address).write(&[4, 20, 0, 3, 0, 0, 0, 0]);
    let Event::Refused { error, .. } = next(&events) else { panic!("expected a refused connection") };
    assert!(matches!(error, HandshakeError::Unreadable(_) | HandshakeError::Broken(_)), "{error}");
    let mut peer = ScriptedSwitch::connect(address);
    peer.send(Xid(0), Body::BarrierReply);
    let Event::Refused { error, .. } = next(&events) else { panic!("expected a refused connection") };
    assert_eq!(error, HandshakeError::NotHello("BarrierReply"));
}

#[test]
fn a_switch_that_stops_after_hello_times_out() {
    let config = Config { handshake_timeout: Nanos::from_millis(100), ..Config::default() };
    let (_switches, events, address) = listening(config);
    let mut peer = ScriptedSwitch::connect(address);
    peer.hello();
    assert!(matches!(next(&events), Event::Refused { error: HandshakeError::TimedOut, .. }));
}

#[test]
fn a_switch_may_refuse_only_the_request_for_groups() {
    for (kind, is_up) in [("GroupDesc", true), ("PortDesc", false)] {
        let (_switches, events, address) = listening(Config::default());
        let mut peer = ScriptedSwitch::connect(address);
        peer.hello();
        peer.refuse_request(kind, DATAPATH);
        match next(&events) {
            Event::Up(up) => assert!(is_up && up.groups.is_empty()),
            Event::Refused { error, .. } => {
                assert!(!is_up);
                assert!(
                    error.to_string().starts_with("the switch refused the request for its ports"),
                    "{error}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_silent_switch_is_probed_and_disconnected() {
    let (echo_interval, echo_timeout) = (Nanos::from_millis(60), Nanos::from_millis(600));
    let (_switches, events, address) = listening(Config { echo_interval, echo_timeout, ..Config::default() });
    let (mut peer, _) = connected(&events, address);
    for _ in 0..3 {
        let echo = peer.receive();
        assert_eq!(echo.body, Body::EchoRequest(vec![]));
        peer.send(echo.xid, Body::EchoReply(vec![]));
    }
    assert_eq!(peer.receive().body, Body::EchoRequest(vec![]));
    assert!(matches!(next(&events), Event::Down { reason: DownReason::Silent, .. }));
}

#[test]
fn an_echo_request_is_answered_with_its_xid_and_data() {
    let (_switches, events, address) = listening(Config::default());
    let (mut peer, _) = connected(&events, address);
    peer.send(Xid(0xabcd), Body::EchoRequest(vec![1, 2, 3]));
    let answer = peer.receive();
    assert_eq!((answer.xid, answer.body), (Xid(0xabcd), Body::EchoReply(vec![1, 2, 3])));
}

#[test]
fn an_undecodable_message_is_skipped_and_reported() {
    let (switches, events, address) = listening(Config::default());
    let (mut peer, _) = connected(&events, address);
    peer.write(&[4, 10, 0, 12, 0, 0, 0, 0, 1, 2, 3, 4]);
    peer.send(Xid(0), Body::PortStatus(PortStatus { reason: PortReason::ADD, port: port(3) }));
    assert!(matches!(next(&events), Event::Unreadable { datapath: DATAPATH, .. }));
    assert!(matches!(next(&events), Event::PortStatus { .. }));
    assert_eq!(switches.counters().unreadable, 1);
}

#[test]
fn a_full_queue_drops_packet_in_events_but_no_others() {
    let (switches, events, address) = listening(Config { max_events: 4, ..Config::default() });
    let (mut peer, _) = connected(&events, address);
    let packet = PacketIn {
        buffer_id: BufferId::NONE,
        total_len: 3,
        reason: PacketInReason::NO_MATCH,
        table_id: TableId(0),
        cookie: 0,
        matching: Match::any(),
        data: vec![1, 2, 3],
    };
    for _ in 0..10 {
        peer.send(Xid(0), Body::PacketIn(packet.clone()));
    }
    let status = PortStatus { reason: PortReason::ADD, port: port(3) };
    for _ in 0..3 {
        peer.send(Xid(0), Body::PortStatus(status));
    }
    wait_until("six are dropped", || switches.counters().packet_ins_dropped == 6);
    let reported: Vec<_> = (0..7).map(|_| next(&events)).collect();
    assert!(reported[..4].iter().all(|event| matches!(event, Event::PacketIn { .. })), "{reported:?}");
    assert!(reported[4..].iter().all(|event| matches!(event, Event::PortStatus { .. })), "{reported:?}");
}

#[test]
fn a_newer_connection_replaces_the_older_one() {
    // The older peer stays silent; the long echo interval keeps its connection open.
    let (switches, events, address) =
        listening(Config { echo_interval: Nanos::from_secs(60), ..Config::default() });
    let (_older_peer, older) = connected(&events, address);
    let mut peer = ScriptedSwitch::connect(address);
    peer.complete_handshake(DATAPATH);
    assert!(matches!(next(&events), Event::Down { reason: DownReason::Replaced, .. }));
    let newer = up(&events).switch;
    assert!(switches.switch(DATAPATH).unwrap().is_same_connection(&newer));
    wait_until("the older one has ended", || older.send(&[flow_mod()]) == Err(SendError::Down));
    drop(peer);
    assert!(matches!(next(&events), Event::Down { reason: DownReason::Closed | DownReason::Broken(_), .. }));
}

#[test]
fn connections_are_limited() {
    let (switches, events, address) = listening(Config { max_connections: 1, ..Config::default() });
    let (peer, _) = connected(&events, address);
    let _refused = ScriptedSwitch::connect(address);
    assert!(matches!(next(&events), Event::Refused { error: HandshakeError::TooManyConnections, .. }));
    drop(peer);
    assert!(matches!(next(&events), Event::Down { .. }));
    wait_until("its slot is free", || switches.datapaths().is_empty());
    connected(&events, address);
}

#[test]
fn the_controller_reconnects_to_a_listening_switch() {
    let listener = TcpListener::bind(local()).unwrap();
    let back_off = BackOff { first: Nanos::from_millis(10), longest: Nanos::from_millis(20) };
    let (switches, events) = Switches::new(Config { back_off, ..Config::default() });
    switches.connect(listener.local_addr().unwrap(), None).unwrap();
    for _ in 0..3 {
        let mut peer = ScriptedSwitch::accept(&listener);
        peer.complete_handshake(DATAPATH);
        assert_eq!(up(&events).switch.peer(), listener.local_addr().unwrap());
        drop(peer);
        assert!(matches!(next(&events), Event::Down { .. }));
    }
    drop(listener);
    assert!(matches!(next(&events), Event::Refused { error: HandshakeError::Unreachable(_), .. }));
}

#[test]
fn closing_the_switches_ends_connections_and_threads() {
    let (switches, events, address) = listening(Config { max_events: 1, ..Config::default() });
    switches.connect("127.0.0.1:1".parse().unwrap(), None).unwrap();
    let mut peer = ScriptedSwitch::connect(address);
    peer.hello();
    let start = Instant::now();
    drop(switches);
    assert!(start.elapsed() < TEST_TIMEOUT);
    while events.try_recv().is_ok() {}
    assert!(events.recv().is_err(), "no thread holds the channel");
}
