//! What applications see: delays, marks, drops, jumbo frames, VLANs.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use thalweg_linux::socket::Socket;
use thalweg_realtime::endpoint::{Event, ProcessOptions, Unlisted, Waiting};
use thalweg_wire::emulation_protocol::Request;
use thalweg_wire::{BitRate, Nanos};

use crate::echo_arbiter::{Answered, EchoArbiter, Rule};
use crate::endpoint_thread::{EndpointThread, Finished};
use crate::network::{Network, RECEIVER};

pub(crate) fn check(network: &Network) {
    let arbiter = EchoArbiter::start();
    let options = ProcessOptions {
        namespace: Some(network.sender()),
        sends_remaining: true,
        ..ProcessOptions::new("eth0", 1, arbiter.address(), network.hosts())
    };
    let endpoint = EndpointThread::start(options);
    // The kernel sends nothing of its own by the TAP interface.
    let interfaces = network.interfaces();
    let tap = interfaces.lines().find(|line| line.starts_with("thalweg0"));
    assert!(tap.is_some_and(|line| !line.contains("fe80")), "{interfaces}");
    round_trips_grow_by_the_delay(network, &arbiter);
    marks_arrive_with_correct_checksums(network, &arbiter);
    drops_are_losses(network, &arbiter);
    every_packet_arrives_once_although_datagrams_are_lost_and_repeated(network, &arbiter);
    vlan_tags_are_kept(network, &arbiter);
    iperf3_runs(network, &arbiter);
    remaining_bytes_are_sent(network, &arbiter);
    let Finished { report, allocations } = endpoint.finish_counted();
    // Some at each check, ten times per second; none per packet.
    let limit = 100 + 10 * report.elapsed.0 / 100_000_000;
    assert!(allocations < limit, "{allocations} of {limit}");

    let (packets, protocol) = (report.packets, report.protocol);
    // Requests for other addresses than those of the table, and neighbours, were not conveyed.
    assert!(packets.not_ip > 0 && packets.neighbour_discovery > 0, "{packets:?}");
    let passed = packets.unlisted_passed + packets.unparsed_passed + packets.local_passed;
    assert_eq!(packets.intercepted, packets.listed + passed, "{packets:?}");
    assert_eq!(packets.listed, protocol.submitted, "{protocol:?}");
    assert_eq!(protocol.submitted, protocol.sent + protocol.dropped + protocol.expired, "{protocol:?}");
    assert_eq!(packets.released, protocol.sent + passed, "{packets:?}");
    assert_eq!((report.held, packets.overflow, packets.release_refused), (0, 0, 0), "{packets:?}");
    assert!(report.hold_times.count() > 1_000 && report.round_trip.is_some());
    // Everything is as before.
    arbiter.take_requests();
    assert!(!network.interfaces().contains("thalweg"), "{}", network.interfaces());
    assert_eq!(ping(network, RECEIVER[0], &["-c", "1"]).0, 1);
    assert_eq!(arbiter.take_requests().len(), 0);
    packets_wait_until_they_have_the_overhead(network, &arbiter);
    senders_wait_for_the_link(network, &arbiter);
}

/// What does not fit into the send buffer waits for the link, and none is lost, also with another MTU.
fn senders_wait_for_the_link(network: &Network, arbiter: &EchoArbiter) {
    const PACKETS: u64 = 600;
    let endpoint = EndpointThread::start(ProcessOptions {
        namespace: Some(network.sender()),
        link_rate: Some(BitRate(10_000_000)),
        ..ProcessOptions::new("eth0", 1, arbiter.address(), network.hosts())
    });
    let (sender, _receiver) = network.sockets();
    let start = Instant::now();
    for _ in 0..PACKETS {
        assert_eq!(sender.send(&[0; 1_400]).unwrap(), 1_400);
    }
    // 0.7 s in total; the buffer has room for a hundred.
    assert!(start.elapsed() > Duration::from_millis(400), "{:?}", start.elapsed());
    network.set_mtu(9_000);
    endpoint.wait_for(|event| *event == Event::MtuChanged { mtu: 9_000 });
    sender.send(&[0; 8_000]).unwrap();
    arbiter.wait_for_requests(PACKETS as usize + 1);
    network.set_mtu(1_500);
    let report = endpoint.finish();
    assert_eq!((report.packets.listed, report.packets.queue_full), (PACKETS + 1, 0), "{:?}", report.packets);
}

fn round_trips_grow_by_the_delay(network: &Network, arbiter: &EchoArbiter) {
    let delay = Nanos::from_millis(5);
    arbiter.set_rule(Rule { delay, ..Rule::default() });
    for (address, length) in [(RECEIVER[0], 84), (RECEIVER[1], 104)] {
        let (received, fastest) = ping(network, address, &["-c", "3", "-i", "0.01"]);
        assert!(received > 0 && fastest >= 5.0, "{address}: {received} received, {fastest} ms");
        let requests = arbiter.wait_for_requests(3);
        assert_eq!(requests.len(), 3, "{address}: {requests:?}");
        for (index, (flow, request)) in (0..).zip(&requests) {
            assert_eq!((flow.source, flow.destination), (1, 2));
            assert_eq!((request.index, request.length, request.traffic_class), (index, length, 0));
        }
    }
    // Three fragments each, which stay in order.
    assert!(ping(network, RECEIVER[0], &["-c", "2", "-i", "0.01", "-s", "3000"]).0 > 0);
    let requests = arbiter.wait_for_requests(6);
    assert!(requests.len() == 6 && requests.iter().all(|(flow, _)| *flow == requests[0].0), "{requests:?}");
}

/// With each way to wait.
fn packets_wait_until_they_have_the_overhead(network: &Network, arbiter: &EchoArbiter) {
    // Half of the time until the answer is emulated.
    arbiter.set_rule(Rule {
        delay: Nanos::from_millis(10),
        emulated: Nanos::from_millis(5),
        ..Rule::default()
    });
    for waiting in [Waiting::RealTime, Waiting::BusyPoll] {
        let endpoint = EndpointThread::start(ProcessOptions {
            namespace: Some(network.sender()),
            waiting,
            unlisted: Unlisted::Drop,
            overhead: Some(Nanos::from_millis(20)),
            ..ProcessOptions::new("eth0", 1, arbiter.address(), network.hosts())
        });
        let (received, fastest) = ping(network, RECEIVER[0], &["-c", "3", "-i", "0.01"]);
        assert!(received > 0 && fastest >= 25.0, "{waiting:?}: {received} received, {fastest} ms");
        assert_eq!(ping(network, "10.98.0.99", &["-c", "1", "-W", "0.1"]).0, 0);
        let (sender, _) = network.sockets();
        sender.set_broadcast(true).unwrap();
        sender.send_to(&[1], ("10.98.0.255", 9)).unwrap();
        let report = endpoint.finish();
        let packets = report.packets;
        assert_eq!((packets.unlisted_passed, packets.released), (0, 3), "{packets:?}");
        // The answer leaves at least 5 ms of overhead, and each packet gets 20 ms.
        let [answer, release] = [&report.overheads, &report.release_overheads];
        assert!(answer.count() == 3 && answer.min() >= Some(Nanos::from_millis(5)), "{:?}", answer.min());
        assert!(release.count() == 3 && release.min() >= Some(Nanos::from_millis(20)), "{:?}", release.min());
        assert_eq!(packets.released_early, 0);
        assert!(packets.unlisted_dropped >= 1, "{packets:?}");
    }
    arbiter.set_rule(Rule::default());
}

/// tcpdump checks the checksums of IPv4.
fn marks_arrive_with_correct_checksums(network: &Network, arbiter: &EchoArbiter) {
    let dump = |count: u32, filter: &str| Dump::start(network, count, filter);
    // DSCP EF with ECT(0), and without ECN.
    arbiter.set_rule(Rule { verdict: Answered::Mark, ..Rule::default() });
    for (class, expected_4, expected_6) in
        [("0xba", "tos 0xbb,CE", "class 0xbb"), ("0xb8", "tos 0xb8,", "class 0xb8")]
    {
        let text = dump(2, "icmp[icmptype] == icmp-echo");
        ping(network, RECEIVER[0], &["-c", "2", "-i", "0.01", "-Q", class]);
        let text = text.finish();
        assert!(text.matches(expected_4).count() == 2 && !text.contains("bad cksum"), "{text}");
        let text = dump(2, "icmp6 and ip6[40] == 128");
        ping(network, RECEIVER[1], &["-c", "2", "-i", "0.01", "-Q", class]);
        let text = text.finish();
        assert_eq!(text.matches(expected_6).count(), 2, "{text}");
    }
    arbiter.set_rule(Rule { verdict: Answered::Rewrite(0x28), ..Rule::default() });
    let text = dump(1, "icmp[icmptype] == icmp-echo");
    ping(network, RECEIVER[0], &["-c", "1"]);
    let text = text.finish();
    assert!(text.contains("tos 0x28") && !text.contains("bad cksum"), "{text}");
    let classes: Vec<u8> = arbiter.take_requests().iter().map(|(_, request)| request.traffic_class).collect();
    assert_eq!(classes, [0xba, 0xba, 0xba, 0xba, 0xb8, 0xb8, 0xb8, 0xb8, 0]);
}

fn drops_are_losses(network: &Network, arbiter: &EchoArbiter) {
    arbiter.set_rule(Rule { drops: 2, ..Rule::default() });
    let (sender, receiver) = network.sockets();
    let mut byte = [0];
    for packet in 0..10 {
        sender.send(&[packet]).unwrap();
    }
    receiver.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let received: Vec<u8> = (0..5).map(|_| receiver.recv(&mut byte).map(|_| byte[0]).unwrap()).collect();
    assert!(received.iter().all(|packet| packet % 2 == received[0] % 2), "{received:?}");
    receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(receiver.recv(&mut byte).is_err(), "a dropped packet has arrived");
}

fn every_packet_arrives_once_although_datagrams_are_lost_and_repeated(
    network: &Network,
    arbiter: &EchoArbiter,
) {
    arbiter.set_rule(Rule { loses: 4, ..Rule::default() });
    let (sender, receiver) = network.sockets();
    receiver.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut counts: HashMap<u32, u32> = HashMap::new();
    let mut bytes = [0; 1_000];
    for round in 0..40_u32 {
        for packet in 0..10 {
            bytes[..4].copy_from_slice(&(10 * round + packet).to_be_bytes());
            sender.send(&bytes).unwrap();
        }
        for _ in 0..10 {
            assert_eq!(receiver.recv(&mut bytes).unwrap(), bytes.len());
            *counts.entry(u32::from_be_bytes(*bytes.first_chunk().unwrap())).or_default() += 1;
        }
    }
    receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(receiver.recv(&mut bytes).is_err(), "a packet arrived twice");
    assert!(counts.len() == 400 && counts.values().all(|&count| count == 1), "{counts:?}");
    arbiter.set_rule(Rule::default());
    arbiter.take_requests();
}

/// Not every kernel has VLAN interfaces, so a frame with a tag is written as such.
fn vlan_tags_are_kept(network: &Network, arbiter: &EchoArbiter) {
    let frame = |tags: &[u8]| {
        let mut frame = vec![0xff; 6];
        frame.extend([0x02, 0, 0, 0, 0, 1]);
        frame.extend(tags);
        // UDP without checksum.
        frame
            .extend([0x08, 0x00, 0x45, 0x02, 0, 29, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 98, 0, 1, 10, 98, 0, 2]);
        frame.extend([0x30, 0x39, 0x30, 0x39, 0, 9, 0, 0, 7]);
        frame
    };
    let sender = network.sender().within(|| {
        let index = Socket::for_ioctls().unwrap().interface_index("eth0").unwrap();
        Socket::frames_by(index, 0, 1 << 20).unwrap()
    });
    let sender = sender.unwrap();
    arbiter.set_rule(Rule { verdict: Answered::Mark, ..Rule::default() });
    for (tags, expected) in [
        ([0x81, 0x00, 0x60, 0x05].as_slice(), "vlan 5, p 3, ethertype IPv4"),
        (&[], "10.98.0.1.12345 > 10.98.0.2.12345"),
    ] {
        let text = Dump::start(network, 1, "udp port 12345 or (vlan and udp port 12345)");
        sender.send(&frame(tags)).unwrap();
        let text = text.finish();
        assert!(text.contains(expected) && text.contains("tos 0x3,CE"), "{text}");
        let requests = arbiter.take_requests();
        assert_eq!(requests.iter().map(|(_, request)| request.length).collect::<Vec<_>>(), [29]);
    }
    arbiter.set_rule(Rule::default());
}

/// Segments are cut before they are conveyed, also those of jumbo frames.
fn iperf3_runs(network: &Network, arbiter: &EchoArbiter) {
    let longest = |requests: &[(_, Request)]| requests.iter().map(|(_, request)| request.length).max();
    for (mtu, arguments) in [
        (1_500, ["-n", "3M", "-c", RECEIVER[0]].as_slice()),
        (1_500, &["-u", "-b", "20M", "-n", "300K", "-l", "1400", "-c", RECEIVER[0]]),
        (9_000, &["-n", "3M", "-c", RECEIVER[1]]),
    ] {
        network.set_mtu(mtu);
        let output = iperf3(network, arguments);
        let is_udp = arguments.contains(&"-u");
        let requests = arbiter.take_requests();
        let expected = if is_udp { 1_428 } else { mtu as u16 };
        assert_eq!(longest(&requests), Some(expected), "{mtu} {arguments:?}: {output}");
        let bytes: u64 = requests.iter().map(|(_, request)| u64::from(request.length)).sum();
        // iperf3 ends when it has written everything, not when it has sent it.
        let sent = if is_udp { 300 << 10 } else { 1 << 20 };
        assert!(bytes > sent, "{bytes}");
        assert!(!is_udp || output.contains("\"lost_packets\":\t0"), "{output}");
    }
    network.set_mtu(1_500);
}

fn remaining_bytes_are_sent(network: &Network, arbiter: &EchoArbiter) {
    const BYTES: usize = 200_000;
    let listener = network.receiver().within(|| TcpListener::bind((RECEIVER[0], 0)).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let mut stream = network.sender().within(|| TcpStream::connect(address).unwrap()).unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    arbiter.take_requests();
    stream.write_all(&vec![7; BYTES]).unwrap();
    drop(stream);
    let mut received = Vec::new();
    accepted.read_to_end(&mut received).unwrap();
    assert_eq!(received.len(), BYTES);
    let remaining = |request: &Request| Some(u32::from_be_bytes(*request.custom.as_slice().first_chunk()?));
    let requests = arbiter.take_requests();
    let remaining: Vec<u32> = requests.iter().map(|(_, request)| remaining(request).unwrap()).collect();
    let (first, last) = (remaining[0] as usize, *remaining.last().unwrap());
    // The first packet may leave before the whole is in the send buffer.
    assert!((1_448..=BYTES + 1).contains(&first) && last <= 1_449, "{remaining:?}");
    assert!(remaining.iter().any(|&bytes| bytes > 100_000), "{remaining:?}");
}

/// The number of replies, of which ping misses the last ones if they are late, and the shortest round trip in milliseconds.
fn ping(network: &Network, address: &str, arguments: &[&str]) -> (u32, f64) {
    let mut command = Command::new("ping");
    command.args(["-n", "-W", "2"]).args(arguments).arg(address).stdout(Stdio::piped());
    let output = network.sender().spawn(&mut command).unwrap().wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let received = text.split(" received").next().and_then(|text| text.rsplit(' ').next()?.parse().ok());
    let fastest = text.rsplit(" = ").next().and_then(|text| text.split('/').next()?.parse().ok());
    (received.unwrap_or_else(|| panic!("{text}")), fastest.unwrap_or(f64::NAN))
}

/// Sends to a server in the receiver's namespace. Returns the client's JSON.
fn iperf3(network: &Network, arguments: &[&str]) -> String {
    let mut server = Command::new("iperf3");
    server.args(["-s", "-1", "--forceflush"]).stdout(Stdio::piped());
    let mut server = network.receiver().spawn(&mut server).unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    assert!(lines.any(|line| line.contains("listening")), "iperf3 has started");
    let mut client = Command::new("iperf3");
    client.args(arguments).arg("-J").stdout(Stdio::piped());
    let output = network.sender().spawn(&mut client).unwrap().wait_with_output().unwrap();
    lines.for_each(drop);
    server.wait().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    text
}

/// A running tcpdump at the receiver's interface.
struct Dump {
    process: Child,
}

impl Dump {
    /// Returns when it captures.
    fn start(network: &Network, count: u32, filter: &str) -> Dump {
        let mut command = Command::new("tcpdump");
        command.args(["-n", "-v", "-e", "--immediate-mode", "-i", "eth0", "-c", &count.to_string(), filter]);
        let mut process =
            network.receiver().spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped())).unwrap();
        let lines = BufReader::new(process.stderr.as_mut().unwrap()).lines();
        assert!(lines.map(Result::unwrap).any(|line| line.contains("listening on")), "tcpdump has started");
        Dump { process }
    }

    fn finish(mut self) -> String {
        let mut text = String::new();
        self.process.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        self.process.wait().unwrap();
        text
    }
}
