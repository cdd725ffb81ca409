//! Connections to switches that are played here.

mod fabric;
mod keeping;
mod played;
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
use played::{Played, port};

const DATAPATH: DatapathId = DatapathId(0xd1);
const SECOND: Nanos = Nanos::from_secs(1);
/// Longest that anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn local() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn listening(config: Config) -> (Switches, Receiver<Event>, SocketAddr) {
    let (switches, events) = Switches::new(config);
    let address = switches.listen(local(), None).unwrap();
    (switches, events, address)
}

fn next(events: &Receiver<Event>) -> Event {
    events.recv_timeout(PATIENCE).expect("an event")
}

fn up(events: &Receiver<Event>) -> Up {
    match next(events) {
        Event::Up(up) => *up,
        other => panic!("{other:?}"),
    }
}

/// A switch that is up, and who plays it.
fn connected(events: &Receiver<Event>, address: SocketAddr) -> (Played, Switch) {
    let mut played = Played::connect(address);
    played.come_up(DATAPATH);
    (played, up(events).switch)
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn a_flow() -> Body {
    Body::FlowMod(FlowMod::default())
}

fn table_full() -> ErrorMessage {
    ErrorMessage { error_type: ErrorType::FLOW_MOD_FAILED, code: 1, data: vec![] }
}

#[test]
fn a_switch_that_connects_is_up_with_its_ports_its_flows_and_its_groups() {
    let read_back = ReadBack { cookie: 0x74 << 56, mask: 0xff << 56 };
    let (switches, events, address) =
        listening(Config { read_back, miss_send_length: 64, ..Config::default() });
    let mut played = Played::connect(address);
    let asked = played.come_up(DATAPATH);
    let flows = Request::Flow(FlowFilter::by_cookie(0x74 << 56, 0xff << 56));
    assert!(asked.contains(&Body::MultipartRequest(flows.into())), "{asked:?}");
    assert!(asked.iter().any(|body| matches!(body, Body::SetConfig(config) if config.miss_send_len == 64)));
    let up = up(&events);
    assert_eq!((up.features.datapath_id, up.switch.datapath()), (DATAPATH, DATAPATH));
    assert_eq!(up.ports, [port(1), port(2)], "in two parts");
    assert_eq!((up.flows.len(), up.groups.len()), (1, 1));
    assert_eq!(switches.datapaths(), [DATAPATH]);
    assert!(switches.switch(DATAPATH).unwrap().is_same_connection(&up.switch));
    assert!(switches.switch(DatapathId(1)).is_none());
}

#[test]
fn what_changes_while_a_switch_connects_is_told_after_it_is_up() {
    let (_switches, events, address) = listening(Config::default());
    let mut played = Played::connect(address);
    played.hello();
    let status = PortStatus { reason: PortReason::DELETE, port: port(2) };
    played.say(Xid(0), Body::PortStatus(status));
    played.answer_questions(DATAPATH);
    up(&events);
    assert!(matches!(next(&events), Event::PortStatus { status: told, .. } if told == status));
}

#[test]
fn a_batch_goes_out_with_a_barrier_and_is_done_when_that_is_answered() {
    let (switches, events, address) = listening(Config::default());
    let (mut played, switch) = connected(&events, address);
    let ticket = switch.send_batch(&[a_flow(), a_flow()], SECOND).unwrap();
    let messages = [played.hear(), played.hear(), played.hear()];
    assert_eq!(messages.clone().map(|message| message.body), [a_flow(), a_flow(), Body::BarrierRequest]);
    let first = messages[0].xid.0;
    assert_eq!(messages.map(|message| message.xid), [0, 1, 2].map(|after| Xid(first + after)));
    assert_eq!(ticket.outcome(), None);
    assert_eq!(ticket.xid(), Xid(first + 2));
    played.say(ticket.xid(), Body::BarrierReply);
    let outcome = ticket.wait();
    assert_eq!((outcome.xid, outcome.result), (Xid(first + 2), Ok(())));
    assert!(outcome.took > Nanos::ZERO && outcome.took < SECOND);
    assert_eq!(switches.counters().done, 1);
}

#[test]
fn outcomes_of_many_batches_come_in_one_channel() {
    let (_switches, events, address) = listening(Config::default());
    let (mut played, switch) = connected(&events, address);
    let (outcomes, told) = crossbeam_channel::unbounded();
    let sent: Vec<_> =
        (0..3).map(|_| switch.send_batch_to(&[a_flow()], SECOND, outcomes.clone()).unwrap()).collect();
    for xid in &sent {
        played.hear_until_barrier();
        played.say(*xid, Body::BarrierReply);
    }
    let came: Vec<_> = (0..3).map(|_| told.recv_timeout(PATIENCE).unwrap().xid).collect();
    assert_eq!(came, sent);
}

#[test]
fn an_error_fails_the_batch_by_the_message_that_was_refused_and_a_second_one_is_told() {
    let (switches, events, address) = listening(Config::default());
    let (mut played, switch) = connected(&events, address);
    let ticket = switch.send_batch(&[a_flow(), a_flow(), a_flow()], SECOND).unwrap();
    let barrier = played.hear_until_barrier();
    let (second, third) = (Xid(barrier.0 - 2), Xid(barrier.0 - 1));
    played.say(second, Body::Error(table_full()));
    played.say(third, Body::Error(table_full()));
    played.say(barrier, Body::BarrierReply);
    let refused = Failure::Refused { position: 1, xid: second, error: table_full() };
    assert_eq!(ticket.wait().result, Err(refused));
    assert!(matches!(next(&events), Event::Error { xid, .. } if xid == third));
    let counters = switches.counters();
    assert_eq!((counters.refusals, counters.done, counters.unexpected_answers), (1, 0, 0));
}

#[test]
fn a_batch_without_an_answer_is_late_and_its_answer_unexpected() {
    let (switches, events, address) = listening(Config::default());
    let (mut played, switch) = connected(&events, address);
    let ticket = switch.send_batch(&[a_flow()], Nanos::from_millis(30)).unwrap();
    let outcome = ticket.wait();
    assert_eq!(outcome.result, Err(Failure::Late));
    assert!(outcome.took >= Nanos::from_millis(30), "{}", outcome.took);
    eventually("it is counted", || switches.counters().late == 1);
    let barrier = played.hear_until_barrier();
    played.say(barrier, Body::BarrierReply);
    eventually("it is unexpected", || switches.counters().unexpected_answers == 1);
}

#[test]
fn when_a_connection_ends_nobody_waits_any_longer_and_nothing_can_be_sent() {
    let (switches, events, address) = listening(Config::default());
    let (played, switch) = connected(&events, address);
    let ticket = switch.send_batch(&[a_flow()], Nanos::from_secs(60)).unwrap();
    drop(played);
    assert_eq!(ticket.wait().result, Err(Failure::Down));
    assert!(matches!(next(&events), Event::Down { datapath: DATAPATH, .. }));
    assert_eq!(switch.send_batch(&[a_flow()], SECOND).unwrap_err(), SendError::Down);
    assert!(switches.switch(DATAPATH).is_none());
}

#[test]
fn there_are_no_more_batches_without_an_answer_than_is_set_and_what_cannot_be_encoded_is_not_sent() {
    let (_switches, events, address) = listening(Config { max_unanswered: 2, ..Config::default() });
    let (mut played, switch) = connected(&events, address);
    let too_long = EncodeError::TooLong { structure: "EchoRequest", length: 65_536, limit: 65_535 };
    let refused = switch.send(&[a_flow(), Body::EchoRequest(vec![0; 65_528])]);
    assert_eq!(refused, Err(SendError::Encode(too_long)));
    let tickets = [(); 2].map(|()| switch.send_batch(&[], SECOND).unwrap());
    assert_eq!(switch.send_batch(&[], SECOND).unwrap_err(), SendError::Full);
    for ticket in &tickets {
        assert_eq!(played.hear_until_barrier(), ticket.xid(), "nothing of what was refused was sent");
    }
    played.say(tickets[0].xid(), Body::BarrierReply);
    eventually("there is room again", || switch.send_batch(&[], SECOND).is_ok());
}

#[test]
fn a_question_is_answered_by_all_parts_or_fails_when_there_are_too_many() {
    let (_switches, events, address) = listening(Config { max_answer_parts: 6, ..Config::default() });
    let (mut played, switch) = connected(&events, address);
    for (parts, is_answered) in [(6, true), (7, false)] {
        let answer = std::thread::scope(|scope| {
            let asking = scope.spawn(|| switch.flows(FlowFilter::all(), Nanos::from_secs(10)));
            let question = played.hear();
            assert!(matches!(question.body, Body::MultipartRequest(MultipartRequest { more: false, .. })));
            for part in 1..=parts {
                let reply = Reply::Flow(vec![played::flow()]);
                played.say(question.xid, Body::MultipartReply(MultipartReply { more: part < parts, reply }));
            }
            asking.join().unwrap()
        });
        match answer {
            Ok(flows) => assert!(is_answered && flows.len() == 6),
            Err(error) => assert!(!is_answered && error == AskError::Failed(Failure::TooLong), "{error}"),
        }
    }
}

#[test]
fn a_question_that_is_refused_fails_with_the_error() {
    let (_switches, events, address) = listening(Config::default());
    let (mut played, switch) = connected(&events, address);
    let asked = std::thread::scope(|scope| {
        let asking = scope.spawn(|| switch.port_stats(PortNumber::ANY, Nanos::from_secs(10)));
        let question = played.hear();
        played.say(question.xid, Body::Error(table_full()));
        asking.join().unwrap()
    });
    assert!(matches!(asked, Err(AskError::Failed(Failure::Refused { error, .. })) if error == table_full()));
}

#[test]
fn a_switch_that_speaks_only_1_0_is_refused_and_told_so() {
    let (switches, events, address) = listening(Config::default());
    let mut played = Played::connect(address);
    played.write(&[1, 0, 0, 8, 0, 0, 0, 1]);
    let Event::Refused { error, .. } = next(&events) else { panic!("it is not up") };
    assert_eq!(error, HandshakeError::Version { highest: 1 });
    assert!(error.to_string().contains("OpenFlow 1.0 at most"), "{error}");
    assert!(matches!(played.hear().body, Body::Hello(_)));
    let Body::Error(error) = played.hear().body else { panic!("it is told") };
    assert_eq!(error.to_string(), "hello failed: incompatible (type 0, code 0)");
    assert_eq!(switches.counters().refused, 1);
}

#[test]
fn what_is_no_openflow_is_refused() {
    let (_switches, events, address) = listening(Config::default());
    Played::connect(address).write(b"GET / HTTP/1.1\r\n\r\n");
    let Event::Refused { error, .. } = next(&events) else { panic!("it is not up") };
    // "GET " is a version, a kind and a length of 0x5420, which never comes.
    assert!(matches!(error, HandshakeError::Closed | HandshakeError::Broken(_)), "{error}");
    Played::connect(address).write(&[4, 20, 0, 3, 0, 0, 0, 0]);
    let Event::Refused { error, .. } = next(&events) else { panic!("it is not up") };
    assert!(matches!(error, HandshakeError::Unreadable(_) | HandshakeError::Broken(_)), "{error}");
    let mut played = Played::connect(address);
    played.say(Xid(0), Body::BarrierReply);
    let Event::Refused { error, .. } = next(&events) else { panic!("it is not up") };
    assert_eq!(error, HandshakeError::NotHello("BarrierReply"));
}

#[test]
fn a_switch_that_says_hello_and_no_more_is_given_up() {
    let config = Config { handshake_timeout: Nanos::from_millis(100), ..Config::default() };
    let (_switches, events, address) = listening(config);
    let mut played = Played::connect(address);
    played.hello();
    assert!(matches!(next(&events), Event::Refused { error: HandshakeError::TimedOut, .. }));
}

#[test]
fn a_switch_that_refuses_to_be_asked_is_refused_unless_it_is_for_groups() {
    for (kind, is_up) in [("GroupDesc", true), ("PortDesc", false)] {
        let (_switches, events, address) = listening(Config::default());
        let mut played = Played::connect(address);
        played.hello();
        played.refuse_question(kind, DATAPATH);
        match next(&events) {
            Event::Up(up) => assert!(is_up && up.groups.is_empty()),
            Event::Refused { error, .. } => {
                assert!(!is_up);
                assert!(error.to_string().starts_with("the switch refused to say which ports"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_silent_switch_is_asked_for_an_echo_and_then_given_up() {
    let (echo_interval, echo_timeout) = (Nanos::from_millis(60), Nanos::from_millis(600));
    let (_switches, events, address) = listening(Config { echo_interval, echo_timeout, ..Config::default() });
    let (mut played, _) = connected(&events, address);
    for _ in 0..3 {
        let echo = played.hear();
        assert_eq!(echo.body, Body::EchoRequest(vec![]));
        played.say(echo.xid, Body::EchoReply(vec![]));
    }
    assert_eq!(played.hear().body, Body::EchoRequest(vec![]));
    assert!(matches!(next(&events), Event::Down { reason: DownReason::Silent, .. }));
}

#[test]
fn an_echo_request_is_answered_with_its_xid_and_data() {
    let (_switches, events, address) = listening(Config::default());
    let (mut played, _) = connected(&events, address);
    played.say(Xid(0xabcd), Body::EchoRequest(vec![1, 2, 3]));
    let answer = played.hear();
    assert_eq!((answer.xid, answer.body), (Xid(0xabcd), Body::EchoReply(vec![1, 2, 3])));
}

#[test]
fn a_message_that_cannot_be_decoded_is_passed_over_and_told() {
    let (switches, events, address) = listening(Config::default());
    let (mut played, _) = connected(&events, address);
    played.write(&[4, 10, 0, 12, 0, 0, 0, 0, 1, 2, 3, 4]);
    played.say(Xid(0), Body::PortStatus(PortStatus { reason: PortReason::ADD, port: port(3) }));
    assert!(matches!(next(&events), Event::Unreadable { datapath: DATAPATH, .. }));
    assert!(matches!(next(&events), Event::PortStatus { .. }));
    assert_eq!(switches.counters().unreadable, 1);
}

#[test]
fn packets_are_dropped_and_counted_when_nobody_takes_events_and_all_else_waits() {
    let (switches, events, address) = listening(Config { max_events: 4, ..Config::default() });
    let (mut played, _) = connected(&events, address);
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
        played.say(Xid(0), Body::PacketIn(packet.clone()));
    }
    let status = PortStatus { reason: PortReason::ADD, port: port(3) };
    for _ in 0..3 {
        played.say(Xid(0), Body::PortStatus(status));
    }
    eventually("six are dropped", || switches.counters().packet_ins_dropped == 6);
    let told: Vec<_> = (0..7).map(|_| next(&events)).collect();
    assert!(told[..4].iter().all(|event| matches!(event, Event::PacketIn { .. })), "{told:?}");
    assert!(told[4..].iter().all(|event| matches!(event, Event::PortStatus { .. })), "{told:?}");
}

#[test]
fn a_newer_connection_of_a_switch_takes_the_place_of_the_older() {
    // Nobody plays the older one any longer; it is not to end for that.
    let (switches, events, address) =
        listening(Config { echo_interval: Nanos::from_secs(60), ..Config::default() });
    let (_older_played, older) = connected(&events, address);
    let mut played = Played::connect(address);
    played.come_up(DATAPATH);
    assert!(matches!(next(&events), Event::Down { reason: DownReason::Replaced, .. }));
    let newer = up(&events).switch;
    assert!(switches.switch(DATAPATH).unwrap().is_same_connection(&newer));
    eventually("the older one has ended", || older.send(&[a_flow()]) == Err(SendError::Down));
    drop(played);
    assert!(matches!(next(&events), Event::Down { reason: DownReason::Closed | DownReason::Broken(_), .. }));
}

#[test]
fn there_are_no_more_connections_than_is_set() {
    let (switches, events, address) = listening(Config { max_connections: 1, ..Config::default() });
    let (played, _) = connected(&events, address);
    let _refused = Played::connect(address);
    assert!(matches!(next(&events), Event::Refused { error: HandshakeError::TooMany, .. }));
    drop(played);
    assert!(matches!(next(&events), Event::Down { .. }));
    eventually("its place is free", || switches.datapaths().is_empty());
    connected(&events, address);
}

#[test]
fn a_switch_that_is_connected_to_is_connected_to_again() {
    let listener = TcpListener::bind(local()).unwrap();
    let back_off = BackOff { first: Nanos::from_millis(10), longest: Nanos::from_millis(20) };
    let (switches, events) = Switches::new(Config { back_off, ..Config::default() });
    switches.connect(listener.local_addr().unwrap(), None).unwrap();
    for _ in 0..3 {
        let mut played = Played::accept(&listener);
        played.come_up(DATAPATH);
        assert_eq!(up(&events).switch.peer(), listener.local_addr().unwrap());
        drop(played);
        assert!(matches!(next(&events), Event::Down { .. }));
    }
    drop(listener);
    assert!(matches!(next(&events), Event::Refused { error: HandshakeError::Unreachable(_), .. }));
}

#[test]
fn dropping_all_ends_connections_and_threads_at_once() {
    let (switches, events, address) = listening(Config { max_events: 1, ..Config::default() });
    switches.connect("127.0.0.1:1".parse().unwrap(), None).unwrap();
    let mut played = Played::connect(address);
    played.hello();
    let begun = Instant::now();
    drop(switches);
    assert!(begun.elapsed() < PATIENCE);
    while events.try_recv().is_ok() {}
    assert!(events.recv().is_err(), "no thread can tell anything any more");
}
