//! Isolation by switches with tables in memory.

use std::time::{Duration, Instant};

use thalweg_control::isolate::message::FlowCounters;
use thalweg_control::isolate::{Reason, RedirectionId};
use thalweg_linux::clock::monotonic;
use thalweg_wire::Bytes;
use thalweg_wire::openflow::multipart::{FlowStats, QueueStats};
use thalweg_wire::openflow::{
    Action, Body, FlowRemoved, FlowRemovedReason, Instruction, MatchField, PortNumber, TableId, Text,
};

use super::rule::{COOKIES, Forward};
use super::*;
use crate::openflow::tests::table_switch::{Table, TableSwitch};
use thalweg_openflow::scripted_switch::{flow, port};

const DATAPATH: DatapathId = DatapathId(0xd1);

/// Maximum time of any step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn options() -> OpenFlowOptions {
    OpenFlowOptions {
        switch: DATAPATH,
        port: PortReference::Name("wan0".to_owned()),
        queue: QueueId(1),
        rules: RulePlan {
            table: TableId(0),
            priority: 24_576,
            idle_timeout: 10,
            dscp: Some(1),
            queue: Some(QueueId(1)),
            forward: Forward::Normal,
        },
        listen: Some("127.0.0.1:0".parse().unwrap()),
        connect: None,
        connection: Config {
            audit_interval: Nanos::from_millis(20),
            master_timeout: Nanos::from_millis(400),
            ..Config::default()
        },
        keeps_at_stop: false,
    }
}

fn queue(number: u32, packets: u64) -> QueueStats {
    QueueStats {
        port_no: PortNumber(2),
        queue_id: QueueId(number),
        tx_bytes: packets * 1_000,
        tx_packets: packets,
        tx_errors: 0,
        duration_sec: 0,
        duration_nsec: 0,
    }
}

/// A switch with the port `wan0`, two queues, and an entry of another controller.
fn table() -> Table {
    let table = Table::default();
    let wan = thalweg_wire::openflow::Port { name: Text::new("wan0"), ..port(2) };
    table.set_ports(vec![port(1), wan], vec![queue(0, 70), queue(1, 30)]);
    table.change(|flows| flows.push(foreign()));
    table
}

fn foreign() -> FlowStats {
    FlowStats { cookie: 7, ..flow() }
}

fn key(number: u16) -> FlowKey {
    format!("tcp 192.0.2.1:{number} > 198.51.100.2:443").parse().unwrap()
}

fn id(number: u16) -> RedirectionId {
    RedirectionId(number.into())
}

/// Does what the daemon does until `is_so`. Returns all answers.
fn drive(
    it: &mut OpenFlow,
    what: &str,
    mut is_so: impl FnMut(&mut OpenFlow, &[Input]) -> bool,
) -> Vec<Input> {
    let (start, mut answers) = (Instant::now(), Vec::new());
    loop {
        answers.extend(it.answers());
        if is_so(it, &answers) {
            return answers;
        }
        let _ = it.read(&[], monotonic());
        assert!(start.elapsed() < PATIENCE, "{what}: {answers:?}, {:?}", it.control.problem());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Does what the daemon does until a reading is as expected.
fn reading(it: &mut OpenFlow, is_so: impl Fn(&Reading) -> bool) -> Reading {
    let start = Instant::now();
    loop {
        it.answers();
        match it.read(&[], monotonic()).unwrap() {
            Some(reading) if is_so(&reading) => return reading,
            reading => assert!(start.elapsed() < PATIENCE, "{reading:?}, {:?}", it.control.problem()),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the packets of the first flow.
fn packets(reading: &Reading) -> Option<u64> {
    Some(reading.flows.first()?.1?.packets)
}

fn ready(it: &mut OpenFlow) -> Vec<Input> {
    drive(it, "it is ready", |it, _| it.control.problem().is_none())
}

/// Starts an isolator and connects a switch with this table.
fn connected(table: &Table, options: OpenFlowOptions) -> (OpenFlow, TableSwitch) {
    let mut it = OpenFlow::new(options, None, None);
    it.start().unwrap();
    let switch = table.connect(it.address().unwrap(), DATAPATH);
    ready(&mut it);
    (it, switch)
}

fn redirect(it: &mut OpenFlow, numbers: &[u16]) {
    for &number in numbers {
        let answer = it.execute(Command::Redirect(id(number), key(number)), monotonic());
        assert!(answer.is_none(), "{answer:?}");
    }
    let answers = drive(it, "all are redirected", |_, answers| answers.len() == numbers.len());
    assert!(answers.iter().all(|answer| matches!(answer, Input::Redirected(_))), "{answers:?}");
}

/// Returns the entries with Thalweg's cookies.
fn ours(table: &Table) -> Vec<FlowStats> {
    table.flows().into_iter().filter(|flow| flow.cookie & COOKIES.mask == COOKIES.cookie).collect()
}

fn is_foreign_untouched(table: &Table) -> bool {
    table.flows().contains(&foreign())
}

/// The removal of an entry.
fn removal(flow: &FlowStats, reason: FlowRemovedReason) -> Body {
    Body::FlowRemoved(FlowRemoved {
        cookie: flow.cookie,
        priority: flow.priority,
        reason,
        table_id: flow.table_id,
        duration_sec: 1,
        duration_nsec: 0,
        idle_timeout: flow.idle_timeout,
        hard_timeout: 0,
        packet_count: flow.packet_count,
        byte_count: flow.byte_count,
        matching: flow.matching.clone(),
    })
}

#[test]
fn a_flow_is_redirected_counted_and_released() {
    let table = table();
    let (mut it, _switch) = connected(&table, options());
    redirect(&mut it, &[1]);
    let [entry] = ours(&table).try_into().unwrap();
    assert_eq!((entry.idle_timeout, entry.priority), (10, 24_576), "kill -9 leaves no entry for long");
    let actions = vec![
        Action::SetField(MatchField::IpDscp(1)),
        Action::SetQueue(QueueId(1)),
        Action::output(PortNumber::NORMAL),
    ];
    assert_eq!(entry.instructions, [Instruction::ApplyActions(actions)]);
    table.change(|flows| flows.last_mut().unwrap().packet_count = 5);
    let reading = reading(&mut it, |reading| packets(reading) == Some(5));
    let counters = FlowCounters { packets: 5, bytes: Bytes(0), first: None };
    assert_eq!(reading.flows, [(key(1), Some(counters))]);
    assert_eq!((reading.scavenger.sent_packets, reading.primary.sent_packets), (30, 70));
    assert_eq!(reading.scavenger.backlog, None);
    let release = |packets| Command::Release { id: id(1), key: key(1), if_packets: Some(packets) };
    let answer = it.execute(release(4), monotonic());
    assert!(matches!(answer, Some(Input::StillSending(_))), "{answer:?}");
    assert!(it.execute(release(5), monotonic()).is_none());
    let answers = drive(&mut it, "it is released", |_, answers| !answers.is_empty());
    assert!(matches!(answers[..], [Input::Released(RedirectionId(1))]), "{answers:?}");
    assert!(ours(&table).is_empty() && is_foreign_untouched(&table));
    let counters = it.counters();
    assert_eq!((counters.redirected_packets, counters.calls, counters.repairs), (5, 2, 0));
    assert_eq!(it.stop(), Ok(()));
}

#[test]
fn without_a_switch_a_port_or_a_queue_a_redirection_fails_with_the_reason() {
    let refused = |it: &mut OpenFlow| match it.execute(Command::Redirect(id(1), key(1)), monotonic()) {
        Some(Input::Failed(_, error)) => error,
        other => panic!("{other:?}"),
    };
    let table = table();
    let mut it = OpenFlow::new(options(), None, None);
    it.start().unwrap();
    assert_eq!(refused(&mut it), "switch 00000000000000d1 is not connected");
    assert_eq!(it.maintain(monotonic()), Err("switch 00000000000000d1 is not connected".to_owned()));
    let other = table.connect(it.address().unwrap(), DatapathId(2));
    drive(&mut it, "another is connected", |it, _| {
        refused(it).contains("is not connected (switch 0000000000000002 at 127.0.0.1")
    });
    drop(other);
    table.set_ports(vec![port(1)], vec![]);
    let switch = table.connect(it.address().unwrap(), DATAPATH);
    let expected = "switch 00000000000000d1 has no port wan0: it has 1 eth";
    drive(&mut it, "the port is missing", |it, _| refused(it) == expected);
    drop(switch);
    let wan = thalweg_wire::openflow::Port { name: Text::new("wan0"), ..port(2) };
    table.set_ports(vec![wan], vec![queue(0, 1), queue(2, 1)]);
    let _switch = table.connect(it.address().unwrap(), DATAPATH);
    let expected = "port wan0 has no queue 1: it has 0, 2";
    drive(&mut it, "the queue is missing", |it, _| refused(it) == expected);
    table.set_ports(vec![wan], vec![]);
    let expected = "port wan0 has no queue 1: it has none";
    drive(&mut it, "all queues are missing", |it, _| refused(it) == expected);
    table.set_ports(vec![wan], vec![queue(1, 1)]);
    ready(&mut it);
    let gre = FlowKey::v4(1, 2, 0, 0, thalweg_wire::Protocol(47));
    let answer = it.execute(Command::Redirect(id(1), gre), monotonic());
    let Some(Input::Failed(_, error)) = answer else { panic!("{answer:?}") };
    assert!(error.ends_with("expected tcp, udp or sctp"), "{error}");
    assert!(ours(&table).is_empty() && it.counters().failed_checks == 1);
}

#[test]
fn a_refused_rule_fails_and_the_others_of_its_batch_do_not() {
    let table = table();
    let (mut it, _switch) = connected(&table, options());
    table.refuse(1);
    for number in 1..=3 {
        it.execute(Command::Redirect(id(number), key(number)), monotonic());
    }
    let answers = drive(&mut it, "all are answered", |_, answers| answers.len() == 3);
    let failed: Vec<_> =
        answers.iter().filter(|it| matches!(it, Input::Failed(RedirectionId(1), _))).collect();
    let [Input::Failed(_, error)] = failed[..] else { panic!("{answers:?}") };
    assert_eq!(error, "the switch refused the rule: flow-mod failed: table full (type 5, code 1)");
    assert_eq!(ours(&table).len(), 2);
    assert_eq!((it.counters().failed_calls, it.counters().repairs), (1, 0));
}

#[test]
fn rules_survive_a_lost_connection_and_return_after_a_restart_of_the_switch() {
    let table = table();
    let (mut it, switch) = connected(&table, options());
    redirect(&mut it, &[1, 2]);
    let before = ours(&table);
    drop(switch);
    drive(&mut it, "it is noticed", |it, _| it.control.problem().is_some());
    let release = Command::Release { id: id(2), key: key(2), if_packets: None };
    let answer = it.execute(release, monotonic());
    assert!(matches!(answer, Some(Input::ReleaseFailed(_, _))), "{answer:?}");
    table.take_mods();
    let switch = table.connect(it.address().unwrap(), DATAPATH);
    ready(&mut it);
    drive(&mut it, "the released one is deleted", |_, _| ours(&table).len() == 1);
    assert_eq!((ours(&table)[0].clone(), table.take_mods()), (before[0].clone(), 1), "kept");
    assert_eq!(it.counters().repairs, 0);
    drop(switch);
    // A restarted switch has no entries.
    table.change(Vec::clear);
    let _switch = table.connect(it.address().unwrap(), DATAPATH);
    drive(&mut it, "it is added again", |_, _| ours(&table).len() == 1);
    ready(&mut it);
    assert_eq!(it.counters().repairs, 1);
    assert_eq!(it.maintain(monotonic()), Ok(vec!["rules missing, added again: 1".to_owned()]));
}

#[test]
fn rules_that_others_delete_change_or_add_are_repaired_and_counted() {
    let table = table();
    let (mut it, switch) = connected(&table, options());
    redirect(&mut it, &[1]);
    table.change(|flows| flows.last_mut().unwrap().packet_count = 5);
    drive(&mut it, "the packets are counted", |it, _| it.counters().redirected_packets == 5);
    // The switch reports it, as after `ovs-ofctl del-flows`.
    let entry = ours(&table).remove(0);
    table.change(|flows| flows.retain(|flow| *flow == foreign()));
    switch.send(removal(&entry, FlowRemovedReason::DELETE));
    drive(&mut it, "it is added again", |it, _| ours(&table).len() == 1 && it.counters().repairs == 1);
    assert_eq!(it.counters().redirected_packets, 5, "earlier packets still count");
    // The idle timeout of a silent flow.
    table.change(|flows| flows.last_mut().unwrap().packet_count = 3);
    drive(&mut it, "it is counted", |it, _| it.counters().redirected_packets == 8);
    let entry = ours(&table).remove(0);
    table.change(|flows| flows.retain(|flow| *flow == foreign()));
    switch.send(removal(&entry, FlowRemovedReason::IDLE_TIMEOUT));
    drive(&mut it, "it is added again", |_, _| ours(&table).len() == 1);
    drive(&mut it, "it is known", |it, _| it.control.rules.take_changes().is_empty());
    assert_eq!(it.counters().repairs, 1, "nobody's fault");
    // Changes are not reported.
    table.change(|flows| flows.last_mut().unwrap().instructions.clear());
    drive(&mut it, "it is written again", |it, _| {
        it.counters().repairs == 2 && !ours(&table)[0].instructions.is_empty()
    });
    // Someone uses Thalweg's cookies.
    let copy = FlowStats { priority: 9, ..ours(&table)[0].clone() };
    table.change(|flows| flows.push(copy));
    drive(&mut it, "it is deleted", |it, _| ours(&table).len() == 1 && it.counters().repairs == 3);
    // Silently deleted.
    table.change(|flows| flows.retain(|flow| *flow == foreign()));
    drive(&mut it, "it is added again", |it, _| ours(&table).len() == 1 && it.counters().repairs == 4);
    assert!(is_foreign_untouched(&table));
}

#[test]
fn a_controller_that_deletes_every_rule_at_once_causes_one_change_per_reading() {
    let table = table();
    let slow = Config { audit_interval: Nanos::from_secs(1_000), ..options().connection };
    let (mut it, switch) = connected(&table, OpenFlowOptions { connection: slow, ..options() });
    redirect(&mut it, &[1]);
    table.take_mods();
    for _ in 0..3 {
        let entry = ours(&table).pop();
        table.change(|flows| flows.retain(|flow| *flow == foreign()));
        entry.into_iter().for_each(|entry| switch.send(removal(&entry, FlowRemovedReason::DELETE)));
        for _ in 0..20 {
            it.answers();
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    assert_eq!((table.take_mods(), ours(&table).len()), (0, 0), "no reading has found the rule");
}

#[test]
fn flows_are_still_read_when_the_queue_is_gone() {
    let table = table();
    let (mut it, _switch) = connected(&table, options());
    redirect(&mut it, &[1]);
    let wan = thalweg_wire::openflow::Port { name: Text::new("wan0"), ..port(2) };
    table.set_ports(vec![wan], vec![]);
    let expected = "port wan0 has no queue 1: it has none";
    drive(&mut it, "the queue is missing", |it, _| it.control.problem().as_deref() == Some(expected));
    table.change(|flows| flows.last_mut().unwrap().packet_count = 9);
    let last = reading(&mut it, |reading| packets(reading) == Some(9));
    assert_eq!(last.scavenger.sent_packets, 30, "as at the last reading");
}

#[test]
fn rules_of_an_earlier_run_are_adopted_or_deleted() {
    let table = table();
    let (mut it, switch) = connected(&table, OpenFlowOptions { keeps_at_stop: true, ..options() });
    redirect(&mut it, &[1, 2]);
    assert_eq!(it.stop(), Ok(()));
    drop((it, switch));
    assert_eq!(ours(&table).len(), 2);
    // Entries of another configuration.
    let old = FlowStats { priority: 9, ..ours(&table)[0].clone() };
    table.change(|flows| flows.push(old));
    table.take_mods();
    let mut it = OpenFlow::new(options(), None, None);
    it.start().unwrap();
    let _switch = table.connect(it.address().unwrap(), DATAPATH);
    let answers = drive(&mut it, "they are offered", |_, answers| answers.len() == 2);
    let adopted = |answer: &Input| matches!(answer, Input::Began { reason: Reason::Adopted, .. });
    assert!(answers.iter().all(adopted), "{answers:?}");
    // The redirection is claimed at once, as the loop does.
    it.control.rules.redirect(id(1), key(1));
    drive(&mut it, "the others are deleted", |_, _| ours(&table).len() == 1);
    assert_eq!(rule::key_of(&ours(&table)[0].matching), Some(key(1)));
    assert_eq!((table.take_mods(), it.counters().repairs), (2, 0), "two deletions");
    assert_eq!(it.stop(), Ok(()));
    assert!(ours(&table).is_empty() && is_foreign_untouched(&table));
}

#[test]
fn only_the_master_writes_and_a_standby_takes_over_with_all_rules() {
    let table = table();
    let (mut master, _switch) = connected(&table, OpenFlowOptions { keeps_at_stop: true, ..options() });
    redirect(&mut master, &[1]);
    let mut standby = OpenFlow::new(options(), None, None);
    standby.start().unwrap();
    let _other = table.connect(standby.address().unwrap(), DATAPATH);
    let expected = "another controller is the master of switch 00000000000000d1";
    drive(&mut standby, "it is a standby", |it, _| {
        let _ = master.read(&[], monotonic());
        it.control.problem().as_deref() == Some(expected)
    });
    let answer = standby.execute(Command::Redirect(id(9), key(9)), monotonic());
    assert!(matches!(&answer, Some(Input::Failed(_, error)) if error == expected), "{answer:?}");
    table.take_mods();
    assert_eq!(master.stop(), Ok(()));
    let answers = drive(&mut standby, "it adopts", |_, answers| !answers.is_empty());
    assert!(matches!(&answers[..], [Input::Began { key: found, .. }] if *found == key(1)), "{answers:?}");
    assert_eq!(table.take_mods(), 0);
}

#[test]
fn redirections_are_lost_with_the_role_of_master() {
    let table = table();
    let (mut it, _switch) = connected(&table, options());
    redirect(&mut it, &[1]);
    table.claim(1 << 60);
    let answers = drive(&mut it, "the role is lost", |_, answers| !answers.is_empty());
    let [Input::Lost(RedirectionId(1), error)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(error, "another controller has become the master of switch 00000000000000d1");
    assert!(it.read(&[], monotonic()).unwrap().is_none_or(|reading| reading.flows.is_empty()));
    assert_eq!(ours(&table).len(), 1, "it is that of the other now");
}

#[test]
fn a_stop_deletes_thalwegs_rules_only() {
    let table = table();
    let (mut it, switch) = connected(&table, options());
    redirect(&mut it, &[1, 2, 3]);
    assert_eq!(it.stop(), Ok(()));
    assert!(ours(&table).is_empty() && is_foreign_untouched(&table));
    drop(switch);
    let (mut it, switch) = connected(&table, options());
    redirect(&mut it, &[1]);
    drop(switch);
    drive(&mut it, "it is disconnected", |it, _| it.control.problem().is_some());
    let error = it.stop().unwrap_err();
    let expected = "cannot delete the rules: switch 00000000000000d1 is not connected; each ends when its flow is silent for 10 s";
    assert_eq!(error, expected);
}
