//! Isolation by traffic control, with real queues and packets in network namespaces. Needs root.

mod kills;
mod router;
mod tcp;

use thalweg_actuators::isolation::Isolator;
use thalweg_actuators::isolation::tc::{QueuePlan, Queueing, TcOptions};
use thalweg_control::isolate::message::FlowCounters;
use thalweg_control::isolate::{Command, Input, Isolation, IsolationOptions, Reason, RedirectionId};
use thalweg_linux::tc::queue::handle;
use thalweg_wire::{BitRate, Bytes, FlowKey, Nanos};

use router::{INTERFACE, PRIMARY, Router, SCAVENGER, now, options, wait};

/// Any number: the isolator only returns it.
const ID: RedirectionId = RedirectionId(1);

fn redirect(tc: &mut dyn Isolator, key: FlowKey) {
    let answer = tc.execute(Command::Redirect(ID, key), now());
    assert!(matches!(answer, Some(Input::Redirected(ID))), "{answer:?}");
}

fn counters(tc: &mut dyn Isolator, key: FlowKey) -> Option<FlowCounters> {
    let reading = tc.read(&[key], now()).unwrap().unwrap();
    assert_eq!(reading.flows.len(), 1);
    reading.flows[0].1
}

#[test]
fn only_redirected_flows_are_in_the_scavenger_class() {
    for is_v6 in [false, true] {
        for queueing in [Queueing::Borrow { scavenger_share: 0.05 }, Queueing::Strict] {
            let Some(router) = Router::start() else { return };
            let queues = QueuePlan { queueing, ..options().queues };
            let mut tc = router.open(TcOptions { queues, ..options() }).unwrap();
            let (mut cheetah, mut other) = (router.flow(is_v6, 5_001), router.flow(is_v6, 5_002));
            cheetah.send(10);
            other.send(10);
            wait("all are primary", || router.sent(PRIMARY) >= 20);
            assert_eq!(router.sent(SCAVENGER), 0);
            redirect(&mut tc, cheetah.key);
            cheetah.send(30);
            other.send(7);
            wait("the cheetah is in the scavenger class", || router.sent(SCAVENGER) == 30);
            wait("the other is not", || other.received().last() == Some(&16));
            let counted = counters(&mut tc, cheetah.key).unwrap();
            assert_eq!(counted.packets, 30);
            assert_eq!(counted.bytes, Bytes(30 * (1_000 + 8 + 14 + if is_v6 { 40 } else { 20 })));
            assert_eq!(counters(&mut tc, other.key), None);
            let release = Command::Release { id: ID, key: cheetah.key, if_packets: Some(30) };
            assert!(matches!(tc.execute(release, now()), Some(Input::Released(ID))));
            cheetah.send(3);
            wait("it is back", || cheetah.received().last() == Some(&42));
            assert_eq!(router.sent(SCAVENGER), 30);
            assert_eq!(tc.counters().redirected_packets, 30);
        }
    }
}

#[test]
fn the_time_of_the_first_redirected_packet_is_kept() {
    let Some(router) = Router::start() else { return };
    let mut tc = router.open(options()).unwrap();
    let mut flow = router.flow(false, 5_001);
    redirect(&mut tc, flow.key);
    assert_eq!(counters(&mut tc, flow.key).unwrap().first, None, "no packet yet");
    let before = now();
    flow.send(1);
    let after = now();
    flow.send(5);
    wait("all are redirected", || router.sent(SCAVENGER) == 6);
    let first = counters(&mut tc, flow.key).unwrap().first.unwrap();
    assert!((before..=after).contains(&first), "{before} {first} {after}");
}

/// A cheetah flow queues 60 packets on a slow link, then another flow sends five. Returns how many packets of the cheetah
/// arrive before the first of the other.
fn packets_ahead(is_redirected: bool) -> Option<usize> {
    const CHEETAH: u32 = 60;
    const OTHER: u32 = 1_000;
    let router = Router::start()?;
    let queues = QueuePlan { rate: BitRate(400_000), queueing: Queueing::Strict, ..options().queues };
    let mut tc = router.open(TcOptions { queues, ..options() }).unwrap();
    let mut cheetah = router.flow(false, 5_001);
    let mut other = cheetah.beside(&router, 5_002, OTHER);
    if is_redirected {
        redirect(&mut tc, cheetah.key);
    }
    cheetah.send(CHEETAH);
    other.send(5);
    let mut received = Vec::new();
    wait("all arrive", || {
        received.extend(cheetah.received());
        received.len() == CHEETAH as usize + 5
    });
    received.iter().position(|&number| number >= OTHER)
}

#[test]
fn other_flows_do_not_wait_behind_a_cheetah() {
    let Some(behind) = packets_ahead(false) else { return };
    assert_eq!(behind, 60, "one queue");
    let ahead = packets_ahead(true).unwrap();
    assert!(ahead < 60, "{ahead} packets of the cheetah were ahead");
}

#[test]
fn a_flow_that_has_sent_since_is_not_released() {
    let Some(router) = Router::start() else { return };
    let mut tc = router.open(options()).unwrap();
    let mut flow = router.flow(false, 5_001);
    redirect(&mut tc, flow.key);
    flow.send(5);
    let release = |packets| Command::Release { id: ID, key: flow.key, if_packets: Some(packets) };
    let (early, late) = (release(4), release(6));
    assert!(matches!(tc.execute(early, now()), Some(Input::StillSending(ID))));
    flow.send(1);
    wait("it stays redirected", || router.sent(SCAVENGER) == 6);
    assert!(matches!(tc.execute(late, now()), Some(Input::Released(ID))));
    assert_eq!(counters(&mut tc, flow.key), None);
}

#[test]
fn a_redirection_expires_without_the_daemon() {
    let Some(router) = Router::start() else { return };
    let mut tc = router.open(TcOptions { expiry: Nanos::from_millis(300), ..options() }).unwrap();
    let mut flow = router.flow(false, 5_001);
    redirect(&mut tc, flow.key);
    // The daemon is killed: nothing of it runs any more.
    drop(tc);
    wait("the program ends the redirection", || {
        let before = router.sent(SCAVENGER);
        flow.send(1);
        std::thread::sleep(std::time::Duration::from_millis(20));
        router.sent(PRIMARY) > 0 && router.sent(SCAVENGER) == before && !flow.received().is_empty()
    });
    assert_eq!(router.root().kind, "htb", "the queues stay");
    // The next start removes what has expired.
    let mut tc = router.open(options()).unwrap();
    assert_eq!(tc.adopted(), []);
    assert_eq!(counters(&mut tc, flow.key), None);
    assert!(tc.counters().expired_packets > 0);
}

#[test]
fn entries_that_have_expired_are_removed_and_make_room() {
    let Some(router) = Router::start() else { return };
    let mut tc = router.open(TcOptions { capacity: 2, ..options() }).unwrap();
    let keys = [5_001, 5_002, 5_003].map(|port| router.flow(false, port).key);
    redirect(&mut tc, keys[0]);
    redirect(&mut tc, keys[1]);
    let full = tc.execute(Command::Redirect(ID, keys[2]), now());
    assert!(matches!(full, Some(Input::Failed(ID, _))), "{full:?}");
    tc.maintain(now()).unwrap();
    assert_eq!(counters(&mut tc, keys[0]).map(|flow| flow.packets), Some(0), "it has not expired");
    tc.maintain(now() + options().expiry + Nanos::from_secs(1)).unwrap();
    assert_eq!(counters(&mut tc, keys[0]), None);
    redirect(&mut tc, keys[2]);
}

#[test]
fn a_restart_takes_over_program_queues_and_redirections() {
    let Some(router) = Router::start() else { return };
    let mut tc = router.open(options()).unwrap();
    let mut flow = router.flow(true, 5_001);
    redirect(&mut tc, flow.key);
    flow.send(4);
    wait("it is redirected", || router.sent(SCAVENGER) == 4);
    let programs = || {
        let netlink = router.netlink();
        netlink.egress_programs(netlink.interface(INTERFACE).unwrap()).unwrap()
    };
    let before = programs();
    drop(tc);
    flow.send(2);
    let mut tc = router.open(options()).unwrap();
    assert_eq!(tc.adopted(), [flow.key]);
    assert_eq!(programs(), before, "the same program");
    assert_eq!(counters(&mut tc, flow.key).unwrap().packets, 6);
    wait("the classes were not replaced", || router.sent(SCAVENGER) == 6);
    drop(tc);
    // Another capacity needs other maps: the program is replaced, and the entries are copied.
    let mut tc = router.open(TcOptions { capacity: 32, ..options() }).unwrap();
    assert_eq!(tc.adopted(), [flow.key]);
    assert_ne!(programs(), before);
    assert_eq!(programs().len(), 1);
    flow.send(1);
    wait("it is still redirected", || router.sent(SCAVENGER) == 7);
    assert_eq!(counters(&mut tc, flow.key).unwrap().packets, 7);
}

#[test]
fn what_others_change_is_repaired() {
    let Some(router) = Router::start() else { return };
    let mut tc = router.open(options()).unwrap();
    let mut flow = router.flow(false, 5_001);
    redirect(&mut tc, flow.key);
    let works = |flow: &mut router::Flow| {
        let before = router.sent(SCAVENGER);
        flow.send(1);
        wait("it is redirected again", || router.sent(SCAVENGER) == before + 1);
    };
    works(&mut flow);
    assert_eq!(tc.maintain(now()).unwrap(), [""; 0]);
    for commands in [
        &["qdisc del dev out root"][..],
        &["qdisc replace dev out root handle 9: pfifo limit 77"],
        &["qdisc del dev out clsact"],
        &["filter del dev out egress"],
        &["class change dev out parent 7468:1 classid 7468:20 htb rate 1mbit ceil 2mbit"],
        &["qdisc replace dev out parent 7468:20 handle 5: pfifo limit 3"],
        &["qdisc del dev out root", "qdisc del dev out clsact"],
    ] {
        for command in commands {
            router.run("tc", &command.split(' ').collect::<Vec<_>>());
        }
        let repaired = tc.maintain(now()).unwrap();
        assert!(!repaired.is_empty(), "{commands:?}");
        works(&mut flow);
        assert_eq!(tc.maintain(now()).unwrap(), [""; 0], "{commands:?} is repaired once");
    }
    // Queues with classes could not be set again.
    router.run("tc", &"qdisc replace dev out root handle 1: htb default 3".split(' ').collect::<Vec<_>>());
    let error = tc.maintain(now()).unwrap_err();
    assert!(error.starts_with("out has the queue htb 1: of someone else. It is left as it is"), "{error}");
    assert_eq!(router.root().handle, handle(1, 0));
    assert!(tc.counters().repairs >= 7 && tc.counters().failed_checks == 1, "{:?}", tc.counters());
    drop(tc);
    let error = router.open(options()).err().unwrap();
    assert!(error.contains("tc qdisc del dev out root"), "{error}");
}

#[test]
fn an_interface_has_one_living_owner() {
    let (Some(router), Some(other)) = (Router::start(), Router::start()) else { return };
    let mut tc = router.open(options()).unwrap();
    let mut flow = router.flow(false, 5_001);
    redirect(&mut tc, flow.key);
    flow.send(4);
    wait("it is redirected", || router.sent(SCAVENGER) == 4);
    let expected =
        format!("another daemon already isolates flows at interface out (process {})", std::process::id());
    let larger = TcOptions { capacity: 32, ..options() };
    let error = router.prepare(larger.clone()).err().unwrap();
    assert!(error.starts_with(&expected), "{error}");
    assert_eq!(counters(&mut tc, flow.key).unwrap().packets, 4, "the first one keeps its redirection");
    assert_eq!(tc.maintain(now()).unwrap(), [""; 0], "and its program");
    // An interface of the same name and index in another namespace.
    other.open(options()).unwrap().stop().unwrap();
    // By its index.
    for command in [&["set", INTERFACE, "down"][..], &["set", INTERFACE, "name", "wan"]] {
        router.run("ip", &[&["link"][..], command].concat());
    }
    let renamed = TcOptions { interface: "wan".to_owned(), ..options() };
    let error = router.prepare(renamed.clone()).err().unwrap();
    assert!(error.contains("isolates flows at interface wan (process"), "{error}");
    // The daemon is killed.
    drop(tc);
    let mut tc = router.prepare(renamed).unwrap();
    tc.start().unwrap();
    assert_eq!(tc.adopted(), [flow.key]);
    // A stopped one owns nothing.
    tc.stop().unwrap();
    assert!(router.prepare(TcOptions { interface: "wan".to_owned(), ..larger }).is_ok());
}

#[test]
fn a_start_that_fails_leaves_the_interface_as_it_was() {
    let Some(router) = Router::start() else { return };
    let tc = |command: &str| router.run("tc", &command.split(' ').collect::<Vec<_>>());
    tc("qdisc replace dev out root handle 9: pfifo limit 77");
    let root = || {
        let root = router.root();
        (root.kind, root.handle, root.options)
    };
    let before = root();
    let prepared = router.prepare(options()).unwrap();
    assert_eq!(root(), before, "nothing has started");
    let netlink = router.netlink();
    let programs = || netlink.egress_programs(netlink.interface(INTERFACE).unwrap()).unwrap_or_default();
    assert_eq!(programs(), []);
    drop(prepared);
    // Another kind of filter has the place of the program, which is attached last.
    tc("qdisc add dev out clsact");
    tc("filter add dev out egress protocol all prio 7 u32 match u32 0 0 flowid 1:1");
    let error = router.open(options()).err().unwrap();
    assert!(error.contains("attach a program") && !error.contains("undone"), "{error}");
    assert_eq!(root(), before);
    assert!(programs().iter().all(|program| program.name.is_empty()), "only the filter: {:?}", programs());
}

#[test]
fn the_end_restores_the_previous_queue() {
    let Some(router) = Router::start() else { return };
    let default = router.root();
    let mut tc = router.open(options()).unwrap();
    tc.stop().unwrap();
    assert_eq!((router.root().kind, router.root().handle), (default.kind, 0));
    router.run("tc", &"qdisc replace dev out root handle 9: pfifo limit 77".split(' ').collect::<Vec<_>>());
    let before = router.root();
    let tc = router.open(options()).unwrap();
    assert_eq!(router.root().kind, "htb");
    // Even after a crash, because the program's maps remember it.
    drop(tc);
    router.open(options()).unwrap().stop().unwrap();
    let after = router.root();
    assert_eq!((after.kind, after.handle, after.options), (before.kind, before.handle, before.options));
    let netlink = router.netlink();
    assert_eq!(netlink.egress_programs(netlink.interface(INTERFACE).unwrap()).unwrap_or_default(), []);
    let mut kept = router.open(TcOptions { keeps_at_stop: true, ..options() }).unwrap();
    kept.stop().unwrap();
    assert_eq!(router.root().kind, "htb");
}

#[test]
fn an_interface_that_returns_is_set_up_again() {
    let Some(router) = Router::start() else { return };
    let mut tc = router.open(options()).unwrap();
    let flow = router.flow(false, 5_001);
    redirect(&mut tc, flow.key);
    router.run("ip", &["link", "set", INTERFACE, "down"]);
    router.run("ip", &["link", "set", INTERFACE, "name", "other"]);
    assert_eq!(tc.maintain(now()).unwrap(), [""; 0], "a renamed interface is followed");
    router.run("ip", &["link", "del", "other"]);
    let error = tc.maintain(now()).unwrap_err();
    assert_eq!(error, "interface out does not exist");
    assert!(tc.read(&[flow.key], now()).unwrap().is_none());
    let answer = tc.execute(Command::Redirect(ID, flow.key), now());
    assert!(matches!(answer, Some(Input::Failed(ID, _))), "{answer:?}");
    router.run("ip", &["link", "add", INTERFACE, "type", "veth", "peer", "name", "peer"]);
    assert!(tc.maintain(now()).unwrap().len() >= 6);
    assert_eq!(counters(&mut tc, flow.key).unwrap().packets, 0, "the redirection has survived");
    drop(tc);
    router.run("ip", &["link", "del", INTERFACE]);
    let mut tc = router.open(options()).unwrap();
    assert!(tc.maintain(now()).is_err());
    router.run("ip", &["link", "add", INTERFACE, "type", "veth", "peer", "name", "peer"]);
    assert!(!tc.maintain(now()).unwrap().is_empty());
}

/// Sends a flow through a slow scavenger queue, and releases it while packets are queued: by the decisions of the loop, or at
/// once. Returns the numbers of the packets in their order of arrival.
fn released(conditionally: bool) -> Option<Vec<u32>> {
    const PACKETS: u32 = 100;
    let router = Router::start()?;
    // The link itself is slow.
    let queues = QueuePlan { rate: BitRate(4_000_000), queueing: Queueing::Strict, ..options().queues };
    let mut tc = router.open(TcOptions { queues, ..options() }).unwrap();
    let limits = IsolationOptions { quiet: Nanos::from_secs(900), ..IsolationOptions::default() };
    let mut isolation = Isolation::new(limits, now());
    let mut flow = router.flow(false, 5_001);
    isolation.handle(now(), Input::Began { key: flow.key, reason: Reason::Pinned });
    let mut step = |isolation: &mut Isolation| {
        while let Some(command) = isolation.next_command() {
            let command = match command {
                Command::Release { id, key, .. } if !conditionally => {
                    Command::Release { id, key, if_packets: None }
                }
                other => other,
            };
            if let Some(answer) = tc.execute(command, now()) {
                isolation.handle(now(), answer);
            }
        }
        let reading = tc.read(&isolation.next_to_read(1), now()).unwrap().unwrap();
        isolation.handle(now(), Input::Reading(reading));
        isolation.handle(now(), Input::Tick);
    };
    let mut received = Vec::new();
    // The buffer of the receiver's socket holds about a hundred packets.
    let send = |flow: &mut router::Flow, received: &mut Vec<u32>, count| {
        for _ in 0..count {
            flow.send(1);
            received.extend(flow.received());
        }
    };
    step(&mut isolation);
    send(&mut flow, &mut received, PACKETS);
    if !conditionally {
        // What a controller does that deletes its rule when the flow has ended.
        let key = flow.key;
        let id = isolation.of(&key).unwrap().id;
        tc.execute(Command::Release { id, key, if_packets: None }, now());
        send(&mut flow, &mut received, PACKETS);
    } else {
        isolation.handle(now(), Input::Release(flow.key));
        step(&mut isolation);
        send(&mut flow, &mut received, PACKETS / 2);
        wait("it is released", || {
            step(&mut isolation);
            received.extend(flow.received());
            isolation.of(&flow.key).is_none()
        });
        send(&mut flow, &mut received, PACKETS / 2);
    }
    wait("all arrive", || {
        received.extend(flow.received());
        received.len() == 2 * PACKETS as usize
    });
    Some(received)
}

/// HTB sends what a class has guaranteed while the other one waits for its own rate, so the guaranteed burst of the scavenger class
/// overtakes.
#[test]
fn at_most_one_packet_overtakes_when_a_flow_moves_to_a_strict_scavenger_queue() {
    const PACKETS: u32 = 60;
    let Some(router) = Router::start() else { return };
    // The packets in the primary queue take 250 ms, in which 8 kbit/s carry a quarter of a packet.
    let queues = QueuePlan { rate: BitRate(2_000_000), queueing: Queueing::Strict, ..options().queues };
    let mut tc = router.open(TcOptions { queues, ..options() }).unwrap();
    let mut flow = router.flow(false, 5_001);
    flow.send(PACKETS);
    redirect(&mut tc, flow.key);
    flow.send(PACKETS / 2);
    let mut received = Vec::new();
    wait("all arrive", || {
        received.extend(flow.received());
        received.len() == (PACKETS + PACKETS / 2) as usize
    });
    let last = received.iter().position(|&number| number == PACKETS - 1).unwrap();
    let overtaking = received[..last].iter().filter(|&&number| number >= PACKETS).count();
    assert!(overtaking <= 1, "{overtaking} packets: {received:?}");
}

#[test]
fn moving_back_reorders_nothing() {
    let Some(received) = released(true) else { return };
    assert!(received.is_sorted(), "{received:?}");
    let at_once = released(false).unwrap();
    assert!(!at_once.is_sorted(), "the test would notice");
}
