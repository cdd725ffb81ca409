//! Forwarding, mirroring, ARP and counters of switches.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Duration;

use thalweg_capture::live::{LiveOptions, LiveSource};
use thalweg_lab::{DEFAULT_ADDRESSES, Plan, TableEntry, TableError, shortest_path_tables};
use thalweg_network::{EndpointId, PortIndex, RouterId};
use thalweg_wire::{BitRate, Source as _};

use crate::setup::{TestLab, plan};

/// Length of the Ethernet, IPv4 and UDP headers.
const HEADERS: u64 = 14 + 20 + 8;

/// Maximum number of datagrams in flight: fewer than a queue or a socket buffer holds.
const WINDOW: u64 = 32;

/// A datagram is lost if none arrives within this time.
const LOST: Duration = Duration::from_millis(500);

/// After this time no frame is in flight.
const SETTLED: Duration = Duration::from_millis(100);

/// Sends `count` datagrams of `size` bytes between hosts and returns the number that arrived. The hosts must know each
/// other's address, so that no other frames are sent.
fn send(lab: &TestLab, from: u16, to: u16, count: u64, size: usize) -> u64 {
    let (sender, receiver) = (lab.socket(from, 5_000), lab.socket(to, 5_001));
    let (payload, address) = (vec![7; size], receiver.local_addr().unwrap());
    let mut received = 0;
    for sent in 1..=count {
        sender.send_to(&payload, address).unwrap();
        while sent - received >= WINDOW && arrives(&receiver, LOST) {
            received += 1;
        }
        assert!(sent - received < WINDOW, "{received} of {sent} datagrams arrived");
    }
    while received < count && arrives(&receiver, LOST) {
        received += 1;
    }
    // None arrives twice. Meanwhile the monitor ports send their copies.
    while arrives(&receiver, SETTLED) {
        received += 1;
    }
    received
}

/// Whether a datagram arrives within this time.
fn arrives(socket: &UdpSocket, within: Duration) -> bool {
    socket.set_read_timeout(Some(within)).unwrap();
    match socket.recv(&mut [0; 2_000]) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_port_on_the_path_counts_the_frames() {
    let Some(lab) = TestLab::up(plan()) else { return };
    assert_eq!(lab.ping(0, 4, 1), 1);
    // h0 is at leaf r0, h4 at leaf r2; its base address has number 4 and leads over the first spine, r3.
    let path = [(0, 0, true), (0, 2, false), (3, 0, true), (3, 2, false), (2, 2, true), (2, 0, false)];
    let before = path.map(|(router, port, _)| lab.port(router, port));
    assert_eq!(send(&lab, 0, 4, 500, 958), 500);
    let bytes = 500 * (958 + HEADERS);
    for ((router, port, comes_in), before) in path.into_iter().zip(before) {
        let after = lab.port(router, port);
        let received =
            (after.received_packets - before.received_packets, after.received_bytes - before.received_bytes);
        let sent = (after.sent_packets - before.sent_packets, after.sent_bytes - before.sent_bytes);
        let mirrored =
            (after.mirrored_packets - before.mirrored_packets, after.mirrored_bytes - before.mirrored_bytes);
        let (through, not) = if comes_in { (received, sent) } else { (sent, received) };
        assert_eq!((through, not), ((500, bytes), (0, 0)), "r{router}p{port}");
        assert_eq!(mirrored, received, "every received frame is mirrored once");
        assert_eq!(after.drops.total(), 0);
    }
}

#[test]
fn pings_and_replies_are_counted() {
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
fn switch_answers_broadcast_arp_and_does_not_flood() {
    let Some(lab) = TestLab::up(plan()) else { return };
    assert_eq!(lab.ping(0, 5, 1), 1);
    assert_eq!(lab.port(0, 0).arp_answered, 1);
    let answered = lab
        .status()
        .unwrap()
        .switches
        .iter()
        .flat_map(|switch| &switch.ports)
        .map(|port| port.switch.arp_answered)
        .sum::<u64>();
    assert_eq!(answered, 2, "one request of each host");
    assert_eq!(lab.ping_address(0, "10.0.9.9", 1), 0, "no host has this address");
    assert!(lab.port(0, 0).drops.group > 0);
}

#[test]
fn shadow_address_takes_its_tree_and_arrives_as_the_base_address() {
    let Some(lab) = TestLab::up(plan()) else { return };
    let (base, shadow) = (lab.topology().mac(EndpointId(4), 0), lab.topology().mac(EndpointId(4), 1));
    assert_eq!(lab.ping(0, 4, 1), 1);
    let (first, second) = (lab.forwarded(3), lab.forwarded(4));
    lab.ip(0, &["neighbour", "replace", "10.0.0.5", "lladdr", &shadow.to_string(), "dev", "eth0"]);
    let mut copies = monitor(&lab, 2);
    // The host accepts them, so they arrived with its base address.
    assert_eq!(send(&lab, 0, 4, 100, 200), 100);
    assert_eq!((lab.forwarded(3) - first, lab.forwarded(4) - second), (0, 100), "over the other spine");

    let seen = read(&mut copies);
    let destinations: Vec<_> = seen.iter().map(|frame| frame[..6].to_vec()).collect();
    assert_eq!(destinations, vec![shadow.0; 100], "the last switch mirrors frames before the rewrite");
    lab.ip(0, &["neighbour", "replace", "10.0.0.5", "lladdr", &base.to_string(), "dev", "eth0"]);
    assert_eq!(send(&lab, 0, 4, 10, 200), 10);
    assert_eq!((lab.forwarded(3) - first, lab.forwarded(4) - second), (10, 100));
}

#[test]
fn unicast_arp_request_reroutes_a_host() {
    let Some(lab) = TestLab::up(plan()) else { return };
    assert_eq!(lab.ping(0, 4, 1), 1);
    let mut last = lab.forwarded(4);
    // Four times within a second: the lock time of an ARP entry after a change applies to replies, not to requests.
    for (address, goes_over_the_second) in [(1, true), (0, false), (1, true), (0, false)] {
        request(&lab, 0, 4, address);
        assert_eq!(send(&lab, 0, 4, 10, 100), 10);
        let now = lab.forwarded(4);
        assert_eq!(now - last >= 10, goes_over_the_second, "address {address}");
        last = now;
    }
}

/// Sends a unicast ARP request to host `to` that gives host `of` an address, from the switch's end of the link, as a
/// controller does (Planck, section 6.2).
pub(crate) fn request(lab: &TestLab, to: u16, of: u16, address: u8) {
    let (router, port) = lab.port_of(to);
    let interface = lab.port_interface(router, port).unwrap();
    let (receiver, subject) =
        (&lab.topology().endpoints()[usize::from(to)], &lab.topology().endpoints()[usize::from(of)]);
    let sender = lab.topology().mac(EndpointId(of), address);
    let mut frame = Vec::new();
    frame.extend(receiver.mac.0);
    frame.extend(sender.0);
    frame.extend([0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
    frame.extend(sender.0);
    frame.extend(subject.ip.octets());
    frame.extend([0; 6]);
    frame.extend(receiver.ip.octets());
    lab.send_frame(&interface, &frame);
    // Time for the host to process the request.
    std::thread::sleep(Duration::from_millis(50));
}

/// Opens the monitor port of a switch.
fn monitor(lab: &TestLab, router: u16) -> LiveSource {
    let interface = lab.monitor_interface(RouterId(router)).unwrap();
    lab.fabric().within(|| LiveSource::open(&LiveOptions::new(&interface))).unwrap().unwrap()
}

/// Reads copies until none arrive for a while.
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
fn oversubscribed_monitor_port_counts_its_drops() {
    let slow = Plan { monitor_rate: Some(BitRate(10_000_000)), ..plan() };
    let Some(lab) = TestLab::up(slow) else { return };
    assert_eq!(lab.ping(0, 1, 1), 1);
    let queue = |lab: &TestLab| lab.status().unwrap().switches[0].monitor_queue;
    let mut copies = monitor(&lab, 0);
    let before = (queue(&lab), lab.port(0, 0).mirrored_packets);
    assert_eq!(send(&lab, 0, 1, 1_000, 1_000), 1_000, "mirroring does not slow forwarding");
    let seen = read(&mut copies).len() as u64;
    let (after, mirrored) = (queue(&lab), lab.port(0, 0).mirrored_packets - before.1);
    let (sent, dropped) =
        (after.sent_packets - before.0.sent_packets, after.dropped_packets - before.0.dropped_packets);
    assert_eq!(mirrored, 1_000);
    assert_eq!(sent + dropped, 1_000);
    assert_eq!(seen, sent, "every copy sent arrives");
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
fn loops_missing_routes_and_hairpins_are_counted() {
    let Some(lab) = TestLab::up(plan()) else { return };
    assert_eq!(lab.ping(0, 4, 1), 1);
    let mac = lab.topology().mac(EndpointId(4), 0);
    let mut tables = lab.tables().unwrap();
    let good = tables.get(RouterId(3), mac).unwrap().unwrap();
    // A loop: first leaf, first spine, another leaf, other spine, first leaf.
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
    assert_eq!(drops(&lab), (3, 0, 0), "every looping frame was dropped");

    tables.remove(RouterId(3), mac).unwrap();
    assert_eq!(tables.get(RouterId(3), mac).unwrap(), None);
    assert_eq!(send(&lab, 0, 4, 3, 100), 0);
    assert_eq!(drops(&lab), (3, 3, 0));
    tables.set(&TableEntry { port: PortIndex(0), ..good }).unwrap();
    assert_eq!(send(&lab, 0, 4, 3, 100), 0);
    assert_eq!(drops(&lab), (3, 3, 3), "output port is the input port");

    tables.set(&good).unwrap();
    tables.set_all(&straight).unwrap();
    assert_eq!(send(&lab, 0, 4, 3, 100), 3, "forwarding is restored");
}

#[test]
fn install_writes_differences_and_removes_the_rest() {
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
fn invalid_entries_are_rejected() {
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
        assert!(number < 10_000, "the capacity is 5 x 6 x 16");
    };
    assert!(matches!(full, TableError::Full { capacity: 480 }), "{full}");
}
