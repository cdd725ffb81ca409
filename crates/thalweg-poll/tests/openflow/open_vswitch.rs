//! The OpenFlow source against Open vSwitch in user space, with real queues and packets. Needs root and Open vSwitch.

use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use thalweg_linux::Netlink;
use thalweg_linux::clock::monotonic;
use thalweg_openflow::{Config, Event, Switches};
use thalweg_poll::{Differences, Unusable};
use thalweg_wire::openflow::{Role, RoleRequest};

use super::*;
use crate::network::{LISTEN, Network, PATIENCE, PORT, PRIMARY, SCAVENGER, wait};

/// Returns the number after `name` in the line of ovs-ofctl that contains `line`, or in the one after it.
fn shown(text: &str, line: &str, name: &str) -> u64 {
    let after = text.split_once(line).unwrap_or_else(|| panic!("{line}: {text}")).1;
    let value = after.split_once(&format!("{name}=")).unwrap_or_else(|| panic!("{name}: {text}")).1;
    let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Counters as ovs-ofctl shows them: packets and errors of both queues, sent and dropped packets of the port, received ones.
fn by_ofctl(network: &Network, number: u32) -> [u64; 7] {
    let (queues, ports) = (network.ofctl("queue-stats", None), network.ofctl("dump-ports", None));
    let queue = |queue: u32, name: &str| shown(&queues, &format!("port {number} queue {queue}:"), name);
    let port = |name: &str| {
        let line = ports.split_once(&format!("port  {number}:")).unwrap_or_else(|| panic!("{ports}")).1;
        let (received, sent) = line.split_once("tx ").unwrap();
        match name {
            "rx" => shown(received, "rx", "pkts"),
            name => shown(&format!("tx {sent}"), "tx", name),
        }
    };
    [
        queue(0, "pkts"),
        queue(0, "errors"),
        queue(1, "pkts"),
        queue(1, "errors"),
        port("pkts"),
        port("drop"),
        port("rx"),
    ]
}

fn of(reading: &InterfaceReading) -> [u64; 7] {
    let (primary, scavenger) = (reading.primary.unwrap(), reading.scavenger.unwrap());
    let discards = reading.output.discards.unwrap().value;
    [
        primary.sent_packets.value,
        primary.dropped_packets.value,
        scavenger.sent_packets.value,
        scavenger.dropped_packets.value,
        reading.output.packets.value - discards,
        discards,
        reading.input.packets.value,
    ]
}

/// Reads until the source and ovs-ofctl agree: packets may pass between both.
fn agreed(network: &Network, source: &mut OpenFlow) -> InterfaceReading {
    let until = Instant::now() + PATIENCE;
    loop {
        let reading = source.read(&monotonic).unwrap();
        let expected = by_ofctl(network, reading.index);
        if of(&reading) == expected {
            return reading;
        }
        assert!(Instant::now() < until, "{reading:?} {expected:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn role(switches: &Switches, events: &Receiver<Event>, role: Role, generation_id: u64) -> Role {
    let switch = switches.switch(SWITCH).unwrap();
    switch.request_role(RoleRequest { role, generation_id }).unwrap();
    loop {
        match events.recv_timeout(PATIENCE).unwrap() {
            Event::Role { role, .. } => return role.role,
            Event::Error { error, .. } => panic!("{error}"),
            _ => {}
        }
    }
}

#[test]
fn polls_equal_what_ovs_ofctl_shows() {
    let Some(mut network) = Network::start() else { return };
    // A master of the switch, and rules that mark one flow for the scavenger queue.
    let (switches, events) = Switches::new(Config::default());
    network.switch.within(|| switches.connect(LISTEN.parse().unwrap(), None)).unwrap().unwrap();
    wait("the master is connected", || switches.switch(SWITCH).is_some());
    assert_eq!(role(&switches, &events, Role::MASTER, 1), Role::MASTER);
    network.ofctl("add-flow", Some("priority=9,udp,tp_src=5002,actions=mod_nw_tos:4,normal"));
    // A short queue: otherwise the send buffer of the switch fills first, and its losses are counted nowhere.
    network.in_switch("tc class change dev wan0 parent 1:fffe classid 1:1 htb rate 1mbit ceil 1mbit");
    network.in_switch("tc qdisc add dev wan0 parent 1:1 handle 11: pfifo limit 10");
    let (flow, other) = (network.flow(0, false, 5_001), network.flow(1, false, 5_002));
    wait("packets are forwarded", || {
        flow.send(1);
        other.send(1);
        network.sent(PRIMARY) > 10 && network.sent(SCAVENGER) > 10
    });
    let peer = Peer::Connect(LISTEN.parse().unwrap(), String::new());
    let connections = Arc::new(Connections::new(peer, None, Some(network.switch.clone())));
    connections.start().unwrap();
    let source = |options| OpenFlow::new(options, Arc::clone(&connections));
    let mut queues = source(options(PATIENT));
    let without = OpenFlowOptions { primary: None, scavenger: None, has_one_queue: true, ..options(PATIENT) };
    let mut one_queue = source(without);
    let (start, start_of_port) = (agreed(&network, &mut queues), one_queue.read(&monotonic).unwrap());
    for _ in 0..300 {
        flow.send(1);
        other.send(1);
        // One packet at a time, because Open vSwitch counts one drop for a batch of packets that the queue refuses.
        std::thread::sleep(Duration::from_micros(500));
    }
    wait("the queue is empty", || {
        let netlink = Netlink::open_within(&network.switch).unwrap();
        let queues = netlink.classes(netlink.interface(PORT).unwrap()).unwrap();
        queues.iter().all(|class| class.counters.backlog.0 == 0)
    });
    let (end, end_of_port) = (agreed(&network, &mut queues), one_queue.read(&monotonic).unwrap());
    let interval = between(&start, &end);
    let loss = interval.loss.unwrap();
    assert!(loss.drops > 100 && loss.packets > loss.drops && loss.packets < 1_000, "{loss:?}");
    let scavenger = interval.scavenger.unwrap();
    assert!(scavenger.drops == 0 && scavenger.packets >= 250, "{scavenger:?}");
    let classes = network.in_switch("tc -s class show dev wan0");
    let dropped = end.primary.unwrap().dropped_packets.value;
    assert!(classes.contains(&format!("(dropped {dropped},")), "{dropped}: {classes}");
    // It does not count drops of queues at the port.
    let loss = between(&start_of_port, &end_of_port).loss.unwrap();
    assert!(loss.drops == 0 && loss.packets > 300, "{loss:?}");
    // Ports and queues have an age, from their creation.
    let ages = |reading: &InterfaceReading| {
        let ages = [reading.primary, reading.scavenger].map(|queue| queue.unwrap().age.unwrap());
        (ages, Nanos(u64::from(reading.uptime_ticks.unwrap()) * 10_000_000))
    };
    let hour = Nanos::from_secs(3_600);
    let ((queues_before, port_before), (queues_after, port_after)) = (ages(&start), ages(&end));
    assert!(queues_before < queues_after && queues_after.iter().all(|age| *age < hour));
    assert!(port_before < port_after && port_after < hour);
    assert_eq!((end.index, end.name.as_str(), end.is_up), (3, PORT, true));
    // A port without queues.
    let lan = OpenFlowOptions { port: "lan0".to_owned(), scavenger: None, ..options(PATIENT) };
    let error = message(source(lan).read(&monotonic));
    assert!(error.ends_with("bad queue (type 9, code 1); the port has no queues"), "{error}");
    // The master is still the master, and the switch forwards as before.
    assert_eq!(role(&switches, &events, Role::NO_CHANGE, 0), Role::MASTER);
    let flows = network.ofctl("dump-flows", None);
    assert!(flows.contains("priority=0 actions=NORMAL"), "{flows}");
    // Other queues, a restart of the switch, and another number of the port.
    let mut differences = Differences::default();
    differences.next(end);
    network.vsctl("clear port wan0 qos");
    network.vsctl(
        "set port wan0 qos=@qos -- --id=@qos create qos type=linux-htb other-config:max-rate=60000000 queues:0=@q0 queues:1=@q1 \
         -- --id=@q0 create queue other-config:min-rate=45000000 -- --id=@q1 create queue other-config:min-rate=5000000",
    );
    let mut other_queues = None;
    wait("the switch has other queues", || {
        other_queues = queues.read(&monotonic).ok().filter(|reading| ages(reading).0[0] < queues_after[0]);
        other_queues.is_some()
    });
    let reason = differences.next(other_queues.unwrap()).loss.unwrap_err();
    assert_eq!(reason, Unusable::Reset);
    network.kill_switch();
    let mut queues = source(options(SHORT));
    wait("the switch is gone", || queues.read(&monotonic).is_err());
    network.start_switch();
    let mut again = None;
    wait("the switch is read again", || {
        again = queues.read(&monotonic).ok();
        again.is_some()
    });
    assert_eq!(differences.next(again.unwrap()).loss.unwrap_err(), Unusable::Restarted);
    network.vsctl("set interface wan0 ofport_request=7");
    let mut moved = None;
    wait("the port has another number", || {
        moved = queues.read(&monotonic).ok().filter(|reading| reading.index == 7);
        moved.is_some()
    });
    let reason = differences.next(moved.unwrap()).loss.unwrap_err();
    assert!(matches!(reason, Unusable::Restarted | Unusable::Reindexed), "{reason:?}");
}
