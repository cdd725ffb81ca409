//! Arbiters that fail, an endpoint that is killed, an interface that goes.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

use thalweg_linux::{Namespace, clock};
use thalweg_realtime::endpoint::{EndpointProcess, Event, Losses, ProcessError, ProcessOptions};
use thalweg_realtime::protocol::Arbiter;
use thalweg_wire::Nanos;
use thalweg_wire::emulation_protocol::Session;

use crate::echo_arbiter::EchoArbiter;
use crate::endpoint_thread::EndpointThread;
use crate::network::Network;

/// The variable that makes a process of this test an endpoint.
pub(crate) const CHILD_NAMESPACE: &str = "THALWEG_TEST_ENDPOINT_NAMESPACE";

/// An address at which nobody listens.
const NOBODY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

pub(crate) fn check(network: &Network) {
    packets_wait_for_an_arbiter_that_returns(network);
    a_secondary_takes_over(network);
    without_an_arbiter_packets_expire(network);
    foreign_datagrams_are_refused(network);
    invalid_set_ups_are_refused(network);
    a_killed_endpoint_leaves_the_host_as_it_was(network);
    an_endpoint_ends_with_its_tap_interface(network);
    an_endpoint_ends_with_its_interface(network);
}

fn options(network: &Network, arbiter: SocketAddr) -> ProcessOptions {
    let options = ProcessOptions::new("eth0", 1, arbiter, network.hosts());
    ProcessOptions { namespace: Some(network.sender()), ..options }
}

/// A long deadline, so that a slow machine does not let packets expire.
fn patient(mut options: ProcessOptions) -> ProcessOptions {
    options.protocol.deadline = Nanos::from_secs(20);
    options
}

/// Sends a packet that the receiver gets.
fn send(sockets: &(UdpSocket, UdpSocket)) {
    sockets.0.send(b"packet").unwrap();
}

fn receive(sockets: &(UdpSocket, UdpSocket)) {
    sockets.1.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(sockets.1.recv(&mut [0; 10]).unwrap(), 6);
}

fn packets_wait_for_an_arbiter_that_returns(network: &Network) {
    let session = Session::started_at(clock::realtime());
    let arbiter = EchoArbiter::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), session);
    let address = arbiter.address();
    let endpoint = EndpointThread::start(patient(options(network, address)));
    let sockets = network.sockets();
    send(&sockets);
    receive(&sockets);
    drop(arbiter);
    (0..5).for_each(|_| send(&sockets));
    endpoint.wait_for(|event| matches!(event, Event::ArbiterSilent { .. }));
    let arbiter = EchoArbiter::start_at(address, session.next());
    (0..5).for_each(|_| receive(&sockets));
    endpoint.wait_for(|event| matches!(event, Event::ArbiterRestarted { .. }));
    drop(arbiter);
    let report = endpoint.finish();
    assert_eq!((report.protocol.sent, report.protocol.expired, report.held), (6, 0, 0));
    assert!(report.control.unreachable > 0, "nobody listened: {:?}", report.control);
}

fn a_secondary_takes_over(network: &Network) {
    let [primary, secondary] = [(); 2].map(|()| EchoArbiter::start());
    let mut options = patient(options(network, primary.address()));
    options.standby = Some(secondary.address());
    let endpoint = EndpointThread::start(options);
    let sockets = network.sockets();
    send(&sockets);
    receive(&sockets);
    drop(primary);
    send(&sockets);
    receive(&sockets);
    let address = secondary.address();
    endpoint.wait_for(|event| *event == Event::SwitchedArbiter { address });
    let report = endpoint.finish();
    assert_eq!((report.arbiter, report.protocol.sent), (Arbiter::Secondary, 2));
}

fn without_an_arbiter_packets_expire(network: &Network) {
    let mut options = options(network, NOBODY);
    options.protocol.deadline = Nanos::from_millis(50);
    options.protocol.max_packets = 8;
    let endpoint = EndpointThread::start(options);
    let sockets = network.sockets();
    (0..200).for_each(|_| send(&sockets));
    sockets.1.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(sockets.1.recv(&mut [0; 10]).is_err());
    endpoint.wait_for(|event| matches!(event, Event::ArbiterSilent { address: NOBODY, .. }));
    let is_counted = |losses: &Losses| losses.expired >= 8 && losses.refused_packets > 0;
    endpoint.wait_for(|event| matches!(event, Event::PacketsLost { losses } if is_counted(losses)));
    let report = endpoint.finish();
    let protocol = report.protocol;
    assert_eq!(protocol.expired + protocol.refused_packets, report.packets.listed, "{protocol:?}");
    assert!(
        protocol.expired >= 8
            && protocol.sent == 0
            && report.packets.released == report.packets.unlisted_passed
    );
}

/// An answer that cannot be read, and one of a later version.
fn foreign_datagrams_are_refused(network: &Network) {
    let arbiter = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = arbiter.local_addr().unwrap();
    let endpoint = EndpointThread::start(options(network, address));
    let (_, peer) = arbiter.recv_from(&mut [0; 2_048]).unwrap();
    for datagram in [b"".as_slice(), b"what", &[1; 60], &[2; 60], &[1; 4_000]] {
        arbiter.send_to(datagram, peer).unwrap();
    }
    endpoint.wait_for(|event| *event == Event::OtherVersion { address, version: 2 });
    let report = endpoint.finish();
    let datagrams = report.protocol.datagrams;
    assert_eq!((datagrams.malformed, datagrams.received, report.control.other_version), (5, 0, 2));
}

fn invalid_set_ups_are_refused(network: &Network) {
    let refused = |options: ProcessOptions| match EndpointProcess::start(options) {
        Ok(_) => panic!("started"),
        Err(error) => error.to_string(),
    };
    let with_interface =
        |interface: &str| ProcessOptions { interface: interface.to_owned(), ..options(network, NOBODY) };
    let message = refused(with_interface("eth1"));
    assert!(message.starts_with("no interface \"eth1\", did you mean \"eth0\"?; existing: "), "{message}");
    let message = refused(with_interface("lo"));
    assert_eq!(message, "lo is no Ethernet interface (type 772): only those can be intercepted");
    let mut other = options(network, NOBODY);
    other.protocol.endpoint = 3;
    let message = refused(other);
    assert_eq!(message, "the host table has no entry for endpoint 3: the others could not reach it");
    let mut other = options(network, NOBODY);
    other.protocol.max_packets = 262_145;
    let message = refused(other);
    assert_eq!(message, "max_packets is 262145: expected at most 262,144: each has 9 KiB of memory");
    network.set_mtu(20_000);
    let message = refused(options(network, NOBODY));
    assert!(message.starts_with("the MTU of eth0 is 20000: expected at most 9216"), "{message}");
    network.set_mtu(1_500);
    assert!(!network.interfaces().contains("thalweg"));
}

fn a_killed_endpoint_leaves_the_host_as_it_was(network: &Network) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "endpoint_of_another_process", "--nocapture"]);
    let namespace = network.sender().path();
    let mut child =
        child.env(CHILD_NAMESPACE, namespace).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !network.interfaces().contains("thalweg0") {
        assert!(child.try_wait().unwrap().is_none(), "the endpoint has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    let sockets = network.sockets();
    sockets.1.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    // The program is attached a moment after the interface appears.
    let is_intercepted = || {
        std::thread::sleep(Duration::from_millis(10));
        send(&sockets);
        sockets.1.recv(&mut [0; 10]).is_err()
    };
    assert!((0..500).any(|_| is_intercepted()));
    let Err(ProcessError::Interception(error)) = EndpointProcess::start(options(network, NOBODY)) else {
        panic!("a second endpoint has started");
    };
    let expected = format!("eth0 is held by process {}: another endpoint runs on it", child.id());
    assert_eq!(error.to_string(), expected);
    child.kill().unwrap();
    child.wait().unwrap();
    send(&sockets);
    receive(&sockets);
    assert!(!network.interfaces().contains("thalweg"), "{}", network.interfaces());
}

/// The endpoint of a process that is killed.
pub(crate) fn run_until_killed(namespace: &str) {
    let network = "1 10.98.0.1\n2 10.98.0.2\n";
    let hosts = thalweg_realtime::endpoint::HostTable::parse(network, std::path::Path::new("hosts")).unwrap();
    let mut options = ProcessOptions::new("eth0", 1, NOBODY, hosts);
    options.namespace = Some(Namespace::named(namespace));
    options.protocol.deadline = Nanos::from_secs(60);
    let mut process = EndpointProcess::start(options).unwrap();
    process.run(clock::monotonic() + Nanos::from_secs(60), || false, |_| ()).unwrap();
}

fn an_endpoint_ends_with_its_tap_interface(network: &Network) {
    let endpoint = EndpointThread::start(options(network, NOBODY));
    network.delete_tap();
    let error = endpoint.error().to_string();
    assert_eq!(error, "the TAP interface of eth0 was deleted: nothing can be intercepted any longer");
    let sockets = network.sockets();
    send(&sockets);
    receive(&sockets);
}

fn an_endpoint_ends_with_its_interface(network: &Network) {
    let endpoint = EndpointThread::start(options(network, NOBODY));
    network.set_mtu(1_400);
    endpoint.wait_for(|event| *event == Event::MtuChanged { mtu: 1_400 });
    network.set_up(false);
    endpoint.wait_for(|event| *event == Event::InterfaceDown);
    network.set_up(true);
    endpoint.wait_for(|event| *event == Event::InterfaceUp);
    network.disconnect();
    let error = endpoint.error().to_string();
    assert_eq!(error, "interface eth0 was deleted or moved to another network namespace");
    network.connect();
}
