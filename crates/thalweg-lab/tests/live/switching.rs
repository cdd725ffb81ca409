//! What switches do with frames, and that they count it.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Duration;

use thalweg_capture::live::{LiveOptions, LiveSource};
use thalweg_lab::{DEFAULT_ADDRESSES, Plan, TableEntry, TableError, shortest_path_tables};
use thalweg_network::{EndpointId, PortIndex, RouterId};
use thalweg_wire::{BitRate, Source as _};

use crate::setup::{TestLab, plan};

/// Ethernet, IPv4 and UDP header.
const HEADERS: u64 = 14 + 20 + 8;

/// So many datagrams may be on the way: fewer than a queue or a socket holds, however long its reader is kept waiting.
const WINDOW: u64 = 32;

/// How long nothing has to come until it is taken for lost.
const LOST: Duration = Duration::from_millis(500);

/// How long until nothing is under way any more.
const SETTLED: Duration = Duration::from_millis(100);

/// Sends so many datagrams of so many bytes from a host to another; both know each other's address before and after,
/// so that nothing else is on the way. Says how many arrived.
fn send(lab: &TestLab, from: u16, to: u16, count: u64, size: usize) -> u64 {
    let (sender, receiver) = (lab.socket(from, 5_000), lab.socket(to, 5_001));
    let (payload, address) = (vec![7; size], receiver.local_addr().unwrap());
    let mut received = 0;
    for sent in 1..=count {
        sender.send_to(&payload, address).unwrap();
        while sent - received >= WINDOW && arrives(&receiver, LOST) {
            received += 1;
        }
        assert!(sent - received < WINDOW, "{received} of {sent} datagrams arrive");
    }
    while received < count && arrives(&receiver, LOST) {
        received += 1;
    }
    // None comes twice. Copies have time to be sent meanwhile.
    while arrives(&receiver, SETTLED) {
        received += 1;
    }
    received
}

/// Whether a datagram comes within this time.
fn arrives(socket: &UdpSocket, within: Duration) -> bool {
    socket.set_read_timeout(Some(within)).unwrap();
    match socket.recv(&mut [0; 2_000]) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_port_on_the_way_counts_what_was_sent() {
    let Some(lab) = TestLab::up(plan()) else { return };
    assert_eq!(lab.ping(0, 4, 1), 1);
    // h0 is at leaf r0, h4 at leaf r2; its base address has the number 4 and leads over the first spine, r3.
    let way = [(0, 0, true), (0, 2, false), (3, 0, true), (3, 2, false), (2, 2, true), (2, 0, false)];
    let before = way.map(|(router, port, _)| lab.port(router, port));
    assert_eq!(send(&lab, 0, 4, 500, 958), 500);
    let bytes = 500 * (958 + HEADERS);
    for ((router, port, comes_in), before) in way.into_iter().zip(before) {
        let after = lab.port(router, port);
        let received =
            (after.received_packets - before.received_packets, after.received_bytes - before.received_bytes);
        let sent = (after.sent_packets - before.sent_packets, after.sent_bytes - before.sent_bytes);
        let mirrored =
            (after.mirrored_packets - before.mirrored_packets, after.mirrored_bytes - before.mirrored_bytes);
        let (through, not) = if comes_in { (received, sent) } else { (sent, received) };
        assert_eq!((through, not), ((500, bytes), (0, 0)), "r{router}p{port}");
        assert_eq!(mirrored, received, "what comes in is mirrored, once");
        assert_eq!(after.drops.total(), 0);
    }
}

#[test]
fn pings_are_counted_one_by_one_and_answers_too() {
    let Some(lab) = TestLab::up(plan()) else { return };
    assert_eq!(lab.ping(1, 2, 1), 1);
    let before = lab.port(0, 1);
    assert_eq!(lab.ping(1, 2, 40), 40);
    let after = lab.port(0, 1);
    assert_eq!(
        (after.received_packets - before.received_packets, after.sent_packets - before.sent_packets),
        (40, 40)
    );
}

#[test]
fn a_question_to_all_is_answered_by_the_switch_and_goes_no_further() {
    let Some(lab) = TestLab::up(plan()) else { return };
    assert_eq!(lab.ping(0, 5, 1), 1);
    assert_eq!(lab.port(0, 0).arp_answered, 1);
    let asked = lab
        .status()
        .unwrap()
        .switches
        .iter()
        .flat_map(|switch| &switch.ports)
        .map(|port| port.switch.arp_answered)
        .sum::<u64>();
    assert_eq!(asked, 2, "one by each of the two hosts");
    assert_eq!(lab.ping_address(0, "10.0.9.9", 1), 0, "nobody has it");
    assert!(lab.port(0, 0).drops.group > 0);
}

#[test]
fn a_shadow_address_goes_its_own_way_and_arrives_as_the_base_address() {
    let Some(lab) = TestLab::up(plan()) else { return };
    let (base, shadow) = (lab.topology().mac(EndpointId(4), 0), lab.topology().mac(EndpointId(4), 1));
    assert_eq!(lab.ping(0, 4, 1), 1);
    let (first, second) = (lab.forwarded(3), lab.forwarded(4));
    lab.ip(0, &["neighbour", "replace", "10.0.0.5", "lladdr", &shadow.to_string(), "dev", "eth0"]);
    let mut copies = monitor(&lab, 2);
    // That they are taken says that they came with the base address: a host takes no other's.
    assert_eq!(send(&lab, 0, 4, 100, 200), 100);
    assert_eq!((lab.forwarded(3) - first, lab.forwarded(4) - second), (0, 100), "over the other spine");

    let seen = read(&mut copies);
    let destinations: Vec<_> = seen.iter().map(|frame| frame[..6].to_vec()).collect();
    assert_eq!(
        destinations,
        vec![shadow.0; 100],
        "the last switch mirrors what comes, before it writes back"
    );
    lab.ip(0, &["neighbour", "replace", "10.0.0.5", "lladdr", &base.to_string(), "dev", "eth0"]);
    assert_eq!(send(&lab, 0, 4, 10, 200), 10);
    assert_eq!((lab.forwarded(3) - first, lab.forwarded(4) - second), (10, 100));
}

#[test]
fn an_arp_request_to_one_host_moves_its_entry_and_its_traffic() {
    let Some(lab) = TestLab::up(plan()) else { return };
    assert_eq!(lab.ping(0, 4, 1), 1);
    let mut last = lab.forwarded(4);
    // Four times within a second: the time for which an entry is locked after a change concerns answers, not requests.
    for (address, goes_over_the_second) in [(1, true), (0, false), (1, true), (0, false)] {
        request(&lab, 0, 4, address);
        assert_eq!(send(&lab, 0, 4, 10, 100), 10);
        let now = lab.forwarded(4);
        assert_eq!(now - last >= 10, goes_over_the_second, "address {address}");
        last = now;
    }
}

/// Tells host `to` by a unicast ARP request that host `of` has an address: from the switch's end of its link, as a
/// controller does (Planck, section 6.2).
pub(crate) fn request(lab: &TestLab, to: u16, of: u16, address: u8) {
    let (router, port) = lab.port_of(to);
    let interface = lab.port_interface(router, port).unwrap();
    let (told, told_of) =
        (&lab.topology().endpoints()[usize::from(to)], &lab.topology().endpoints()[usize::from(of)]);
    let sender = lab.topology().mac(EndpointId(of), address);
    let mut frame = Vec::new();
    frame.extend(told.mac.0);
    frame.extend(sender.0);
    frame.extend([0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
    frame.extend(sender.0);
    frame.extend(told_of.ip.octets());
    frame.extend([0; 6]);
    frame.extend(told.ip.octets());
    lab.send_frame(&interface, &frame);
    // The answer is on its way when the request has been taken.
    std::thread::sleep(Duration::from_millis(50));
}

/// Reads copies at the monitor port of a switch.
fn monitor(lab: &TestLab, router: u16) -> LiveSource {
    let interface = lab.monitor_interface(RouterId(router)).unwrap();
    lab.fabric().within(|| LiveSource::open(&LiveOptions::new(&interface))).unwrap().unwrap()
}

/// The copies that have arrived, and arrive until none have for a while.
fn read(source: &mut LiveSource) -> Vec<Vec<u8>> {
    let (mut seen, mut idle) = (Vec::new(), 0);
    while idle < 3 {
        let batch = source.next_batch().unwrap().unwrap();
        idle = if batch.frames.is_empty() { idle + 1 } else { 0 };
        seen.extend(batch.iter().map(|frame| frame.bytes.to_vec()));
    }
    seen
}

#[test]
fn copies_appear_at_the_monitor_port_and_what_it_cannot_send_is_dropped_and_counted() {
    let slow = Plan { monitor_rate: Some(BitRate(10_000_000)), ..plan() };
    let Some(lab) = TestLab::up(slow) else { return };
    assert_eq!(lab.ping(0, 1, 1), 1);
    let queue = |lab: &TestLab| lab.status().unwrap().switches[0].monitor_queue;
    let mut copies = monitor(&lab, 0);
    let before = (queue(&lab), lab.port(0, 0).mirrored_packets);
    assert_eq!(send(&lab, 0, 1, 1_000, 1_000), 1_000, "what is mirrored does not hold up what is forwarded");
    let seen = read(&mut copies).len() as u64;
    let (after, mirrored) = (queue(&lab), lab.port(0, 0).mirrored_packets - before.1);
    let (sent, dropped) =
        (after.sent_packets - before.0.sent_packets, after.dropped_packets - before.0.dropped_packets);
    assert_eq!(mirrored, 1_000);
    assert_eq!(sent + dropped, 1_000);
    assert_eq!(seen, sent, "what the port has sent arrives");
    // 1000 frames at 96 Mbit/s take 87 ms, in which the port sends about 110; it would need 0.8 s for all.
    assert!(sent > 50 && dropped > 0, "{sent} copies sent, {dropped} dropped");

    lab.set_mirror(RouterId(0), false).unwrap();
    assert!(!lab.status().unwrap().switches[0].is_mirrored);
    assert_eq!(send(&lab, 0, 1, 100, 1_000), 100);
    assert_eq!(queue(&lab).sent_packets, after.sent_packets, "no copies");
    lab.set_mirror(RouterId(0), true).unwrap();
    assert_eq!(send(&lab, 0, 1, 5, 100), 5);
    assert_eq!(queue(&lab).sent_packets, after.sent_packets + 5);
}

#[test]
fn a_loop_ends_and_is_counted_as_is_what_has_no_way() {
    let Some(lab) = TestLab::up(plan()) else { return };
    assert_eq!(lab.ping(0, 4, 1), 1);
    let mac = lab.topology().mac(EndpointId(4), 0);
    let mut tables = lab.tables().unwrap();
    let good = tables.get(RouterId(3), mac).unwrap().unwrap();
    // The first spine sends it to another leaf, which sends it to the other spine, which sends it to the first leaf.
    let ring = [(0, 2), (3, 1), (1, 3), (4, 0)];
    let ring = ring.map(|(router, port)| TableEntry {
        router: RouterId(router),
        mac,
        port: PortIndex(port),
        rewrite: None,
    });
    let straight = [0, 1, 4].map(|router| tables.get(RouterId(router), mac).unwrap().unwrap());
    tables.set_all(&ring).unwrap();
    assert_eq!(send(&lab, 0, 4, 3, 100), 0);
    let drops = |lab: &TestLab| {
        let status = lab.status().unwrap();
        let drops: Vec<_> =
            status.switches.iter().flat_map(|switch| &switch.ports).map(|port| port.switch.drops).collect();
        (
            drops.iter().map(|drops| drops.looped).sum::<u64>(),
            drops.iter().map(|drops| drops.no_entry).sum::<u64>(),
            drops.iter().map(|drops| drops.hairpin).sum::<u64>(),
        )
    };
    assert_eq!(drops(&lab), (3, 0, 0), "each went round, and ended");

    tables.remove(RouterId(3), mac).unwrap();
    assert_eq!(tables.get(RouterId(3), mac).unwrap(), None);
    assert_eq!(send(&lab, 0, 4, 3, 100), 0);
    assert_eq!(drops(&lab), (3, 3, 0));
    tables.set(&TableEntry { port: PortIndex(0), ..good }).unwrap();
    assert_eq!(send(&lab, 0, 4, 3, 100), 0);
    assert_eq!(drops(&lab), (3, 3, 3), "back by the port by which it came");

    tables.set(&good).unwrap();
    tables.set_all(&straight).unwrap();
    assert_eq!(send(&lab, 0, 4, 3, 100), 3, "and all is well again");
}

#[test]
fn installing_writes_what_is_different_and_removes_what_is_not_wanted() {
    let Some(lab) = TestLab::up(plan()) else { return };
    let mut tables = lab.tables().unwrap();
    let wanted = shortest_path_tables(lab.topology(), DEFAULT_ADDRESSES).unwrap();
    let all = 5 * 6 * 4;
    let again = tables.install(&wanted).unwrap();
    assert_eq!((again.written, again.removed, again.unchanged), (0, 0, all));
    let entries = tables.entries().unwrap();

    let stray = lab.topology().mac(EndpointId(0), 200);
    let entry = TableEntry { router: RouterId(1), mac: stray, port: PortIndex(0), rewrite: None };
    tables.set_all(&[entry, TableEntry { port: PortIndex(3), ..entries[7] }]).unwrap();
    let repaired = tables.install(&wanted).unwrap();
    assert_eq!((repaired.written, repaired.removed, repaired.unchanged), (1, 1, all - 1));
    assert_eq!(tables.entries().unwrap(), entries);

    let fewer = tables.install(&shortest_path_tables(lab.topology(), 1).unwrap()).unwrap();
    assert_eq!((fewer.written, fewer.removed, fewer.unchanged), (0, 5 * 6 * 3, 5 * 6));
}

#[test]
fn entries_that_cannot_be_are_refused() {
    let Some(lab) = TestLab::up(plan()) else { return };
    let mut tables = lab.tables().unwrap();
    let good = tables.entries().unwrap()[0];
    let no_port = TableEntry { port: PortIndex(4), ..good };
    assert!(matches!(
        tables.set(&no_port),
        Err(TableError::Port { router: RouterId(0), port: PortIndex(4) })
    ));
    let no_switch = TableEntry { router: RouterId(5), ..good };
    assert!(matches!(tables.set_all(&[good, no_switch]), Err((1, TableError::Port { .. }))));
    let to_all = TableEntry { mac: thalweg_network::MacAddress([255; 6]), ..good };
    assert!(matches!(tables.set(&to_all), Err(TableError::Mac { .. })));
    let mut number = 0_u32;
    let full = loop {
        let [_, a, b, c] = number.to_be_bytes();
        let mac = thalweg_network::MacAddress([2, 0, 0, a, b, c]);
        if let Err(error) = tables.set(&TableEntry { mac, ..good }) {
            break error;
        }
        number += 1;
        assert!(number < 10_000, "there is room for 5 x 6 x 16");
    };
    assert!(matches!(full, TableError::Full { capacity: 480 }), "{full}");
}
