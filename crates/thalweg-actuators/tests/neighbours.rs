//! Rerouting by ARP and Neighbor Discovery, against the neighbour table of Linux. Needs root; prints that it is skipped
//! otherwise.

use std::io::{self, Write as _};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_actuators::arp::{Arp, HostFrameSender};
use thalweg_actuators::{Action, ActionId, Actuator};
use thalweg_capture::live::FrameSender;
use thalweg_control::Pair;
use thalweg_linux::Namespace;
use thalweg_network::{EndpointId, LinkSpec, MacAddress, Topology, TopologyBuilder};
use thalweg_wire::{Nanos, Timestamp};

const PAIR: Pair = Pair { source: EndpointId(0), destination: EndpointId(1) };
const TIMEOUT: Duration = Duration::from_secs(10);
/// IPv4 and IPv6 addresses of the destination.
const DESTINATION: [&str; 2] = ["192.0.2.2", "2001:db8::2"];

/// A host with an interface whose other end this process sends to.
struct Host {
    namespace: Namespace,
    topology: Arc<Topology>,
    arp: Arp<Sender>,
}

struct Sender(FrameSender);

impl HostFrameSender for Sender {
    fn send(&mut self, _: EndpointId, frame: &[u8]) -> io::Result<()> {
        self.0.send(frame)
    }
}

fn topology() -> Topology {
    let mut builder = TopologyBuilder::new();
    let router = builder.add_router("tor0").unwrap();
    for (name, ip, ipv6) in [("h0", "192.0.2.1", "2001:db8::1"), ("h1", DESTINATION[0], DESTINATION[1])] {
        let host = builder.add_endpoint(name, router, LinkSpec::default()).unwrap();
        builder.set_ip(host, ip.parse().unwrap()).unwrap();
        builder.set_ipv6(host, ipv6.parse().unwrap()).unwrap();
    }
    builder.build().unwrap()
}

impl Host {
    /// Creates the host, or returns `None` without the right to.
    fn start(test: &str, settings: &[&str]) -> Option<Host> {
        let Ok(namespace) = Namespace::create(format!("twn-{test}-{}", std::process::id())) else {
            let line = format!("skipped: {test}: needs root and the right to make network namespaces\n");
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            return None;
        };
        let topology = Arc::new(topology());
        let mac = topology.mac(PAIR.source, 0);
        let run = |arguments: &str| ip(&namespace, arguments);
        run(&format!("link add eth0 address {mac} type veth peer name port0"));
        run("link set eth0 up");
        run("link set port0 up");
        run("address add 192.0.2.1/24 dev eth0");
        run("address add 2001:db8::1/64 dev eth0 nodad");
        for setting in settings {
            let mut sysctl = Command::new("sysctl");
            assert!(
                namespace.within(|| sysctl.args(["-q", "-w", setting]).status()).unwrap().unwrap().success()
            );
        }
        let sender = namespace.within(|| FrameSender::open("port0")).unwrap().unwrap();
        let arp = Arp::new(Arc::clone(&topology), Sender(sender), Nanos::from_secs(1));
        Some(Host { namespace, topology, arp })
    }

    /// Makes the host know the destination's base address, as after a packet.
    fn knows_base(&self, state: &str) {
        let mac = self.mac(0);
        for address in DESTINATION {
            ip(&self.namespace, &format!("neigh replace {address} lladdr {mac} dev eth0 nud {state}"));
        }
    }

    fn mac(&self, address: u8) -> MacAddress {
        self.topology.mac(PAIR.destination, address)
    }

    fn reroute(&mut self, address: u8, now: Timestamp) {
        let action =
            Action { id: ActionId(1), pair: PAIR, address, issued: now, deadline: now + Nanos::from_secs(1) };
        self.arp.reroute(&action).unwrap();
    }

    /// Returns what the neighbour table says about an address.
    fn neighbour(&self, address: &str) -> String {
        ip(&self.namespace, &format!("neigh show {address} dev eth0"))
    }

    /// Waits until both addresses have this MAC address and one of these states. Refreshes them each second as the daemon does, because
    /// a busy machine can lose a frame, unless the states exclude that.
    #[track_caller]
    fn wait(&mut self, address: u8, states: &[&str]) {
        let mac = self.mac(address).to_string();
        let is_there = |text: &str| text.contains(&mac) && states.iter().any(|state| text.contains(state));
        let (start, mut refreshed) = (Instant::now(), 1);
        while !DESTINATION.iter().all(|address| is_there(&self.neighbour(address))) {
            let shown = DESTINATION.map(|address| self.neighbour(address));
            assert!(start.elapsed() < TIMEOUT, "{mac} {states:?}: {shown:?}");
            if states.contains(&"REACHABLE") && start.elapsed() > Duration::from_secs(refreshed) {
                refreshed += 1;
                self.arp.refresh(Timestamp(0) + Nanos::from_secs(refreshed)).unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.namespace.delete();
    }
}

/// Runs `ip ARGUMENTS` in a namespace and returns its output.
fn ip(namespace: &Namespace, arguments: &str) -> String {
    let mut command = Command::new("ip");
    let output = namespace.within(|| command.args(arguments.split(' ')).output()).unwrap().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_host_learns_the_shadow_address_for_ipv4_and_ipv6() {
    for state in ["reachable", "stale", "delay", "probe"] {
        let Some(mut host) = Host::start("learns", &[]) else { return };
        host.knows_base(state);
        host.reroute(2, Timestamp(1));
        host.wait(2, &["STALE", "DELAY", "PROBE", "REACHABLE"]);
        host.reroute(0, Timestamp(2));
        host.wait(0, &["STALE", "DELAY", "PROBE", "REACHABLE"]);
    }
}

#[test]
fn a_refresh_confirms_the_shadow_address() {
    let Some(mut host) = Host::start("refresh", &[]) else { return };
    host.knows_base("reachable");
    host.reroute(3, Timestamp(0));
    host.wait(3, &["STALE", "DELAY", "PROBE"]);
    host.arp.refresh(Timestamp(0) + Nanos::from_secs(1)).unwrap();
    host.wait(3, &["REACHABLE"]);
}

#[test]
fn a_host_that_has_not_sent_yet_learns_the_shadow_address() {
    let Some(mut host) = Host::start("unknown", &[]) else { return };
    host.reroute(1, Timestamp(1));
    host.wait(1, &["STALE", "DELAY", "PROBE", "REACHABLE"]);
}

#[test]
fn a_host_that_drops_unsolicited_advertisements_learns_the_shadow_address() {
    let strict = ["net.ipv6.conf.eth0.drop_unsolicited_na=1", "net.ipv4.conf.eth0.drop_gratuitous_arp=1"];
    let Some(mut host) = Host::start("strict", &strict) else { return };
    host.knows_base("reachable");
    host.reroute(2, Timestamp(1));
    host.wait(2, &["STALE", "DELAY", "PROBE", "REACHABLE"]);
    host.arp.refresh(Timestamp(1) + Nanos::from_secs(1)).unwrap();
    host.wait(2, &["REACHABLE"]);
}
