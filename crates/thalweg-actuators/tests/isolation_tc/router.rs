//! A router in a network namespace, whose interface leads to a receiver in another one.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use thalweg_actuators::isolation::Isolator as _;
use thalweg_actuators::isolation::tc::{QueuePlan, Queueing, Tc, TcOptions};
use thalweg_linux::clock::monotonic;
use thalweg_linux::tc::queue::{Class, Queue, handle};
use thalweg_linux::{Namespace, Netlink};
use thalweg_wire::{BitRate, Bytes, FlowKey, Nanos, Timestamp};

/// The interface of the router.
pub(crate) const INTERFACE: &str = "out";

pub(crate) const PRIMARY: u32 = handle(0x7468, 0x10);
pub(crate) const SCAVENGER: u32 = handle(0x7468, 0x20);

/// Maximum time of any step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Port of the receiver.
const PORT: u16 = 9_000;

/// Both namespaces, which are deleted on drop.
pub(crate) struct Router {
    pub(crate) router: Namespace,
    pub(crate) receiver: Namespace,
}

/// A sender in the router's namespace, and its receiver.
pub(crate) struct Flow {
    socket: UdpSocket,
    receiver: UdpSocket,
    pub(crate) key: FlowKey,
    sent: u32,
}

fn skip(reason: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}

impl Router {
    /// Creates both namespaces, or reports why the test is skipped.
    pub(crate) fn start() -> Option<Router> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |end: &str| format!("te-{}-{number}{end}", std::process::id());
        let router = match Namespace::create(name("r")) {
            Ok(router) => router,
            Err(error) => {
                skip(&format!("needs root: {error}"));
                return None;
            }
        };
        let receiver = Namespace::create(name("h")).unwrap();
        let it = Router { router, receiver };
        let peer = it.receiver.name().to_owned();
        it.run("ip", &["link", "add", INTERFACE, "type", "veth", "peer", "name", "in", "netns", &peer]);
        it.run("ip", &["link", "set", "lo", "up"]);
        it.run("ip", &["addr", "add", "10.9.0.1/24", "dev", INTERFACE]);
        it.run("ip", &["addr", "add", "fd09::1/64", "dev", INTERFACE, "nodad"]);
        it.run("ip", &["link", "set", INTERFACE, "up"]);
        it.run_at_receiver(&["addr", "add", "10.9.0.2/24", "dev", "in"]);
        it.run_at_receiver(&["addr", "add", "fd09::2/64", "dev", "in", "nodad"]);
        it.run_at_receiver(&["link", "set", "in", "up"]);
        Some(it)
    }

    /// Runs a command in the router's namespace.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) {
        run(&self.router, program, arguments);
    }

    fn run_at_receiver(&self, arguments: &[&str]) {
        run(&self.receiver, "ip", arguments);
    }

    pub(crate) fn netlink(&self) -> Netlink {
        Netlink::open_within(&self.router).unwrap()
    }

    /// Opens and starts the isolator with these options.
    pub(crate) fn open(&self, options: TcOptions) -> Result<Tc, String> {
        let mut tc = self.prepare(options)?;
        tc.start()?;
        Ok(tc)
    }

    /// Opens the isolator with these options, without its start.
    pub(crate) fn prepare(&self, options: TcOptions) -> Result<Tc, String> {
        Tc::open(options, Some(&self.router), monotonic())
    }

    pub(crate) fn queues(&self) -> Vec<Queue> {
        let netlink = self.netlink();
        netlink.queues(netlink.interface(INTERFACE).unwrap()).unwrap()
    }

    pub(crate) fn root(&self) -> Queue {
        self.queues().into_iter().find(|queue| queue.parent.is_none()).unwrap_or_default()
    }

    /// Returns the classes of the interface.
    pub(crate) fn classes(&self) -> BTreeMap<u32, Class> {
        let netlink = self.netlink();
        let classes = netlink.classes(netlink.interface(INTERFACE).unwrap()).unwrap();
        classes.into_iter().map(|class| (class.handle, class)).collect()
    }

    /// Packets that a class has sent, dropped or holds.
    pub(crate) fn sent(&self, class: u32) -> u64 {
        self.classes()[&class].counters.sent_packets
    }

    /// Opens a flow from this port of the router's namespace.
    pub(crate) fn flow(&self, is_v6: bool, port: u16) -> Flow {
        let [from, to]: [IpAddr; 2] = match is_v6 {
            false => [[10, 9, 0, 1].into(), [10, 9, 0, 2].into()],
            true => ["fd09::1".parse().unwrap(), "fd09::2".parse().unwrap()],
        };
        let own = SocketAddr::new(from, port);
        let peer = SocketAddr::new(to, PORT + port % 1_000);
        let receiver = self.receiver.within(|| UdpSocket::bind(peer).unwrap()).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let socket = self.router.within(|| UdpSocket::bind(own).unwrap()).unwrap();
        socket.connect(peer).unwrap();
        let key = format!("udp {own} > {peer}").parse().unwrap();
        Flow { socket, receiver, key, sent: 0 }
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.router.delete();
        let _ = self.receiver.delete();
    }
}

impl Flow {
    /// Sends `count` numbered packets of 1,000 bytes.
    pub(crate) fn send(&mut self, count: u32) {
        let mut bytes = [0; 1_000];
        for _ in 0..count {
            bytes[..4].copy_from_slice(&self.sent.to_ne_bytes());
            self.socket.send(&bytes).unwrap();
            self.sent += 1;
        }
    }

    /// Opens another flow to the same receiver, from another port. Its packets have the numbers from `first` on.
    pub(crate) fn beside(&self, router: &Router, port: u16, first: u32) -> Flow {
        let own = SocketAddr::new(self.key.src(), port);
        let peer = SocketAddr::new(self.key.dst(), self.key.dst_port);
        let socket = router.router.within(|| UdpSocket::bind(own).unwrap()).unwrap();
        socket.connect(peer).unwrap();
        let key = format!("udp {own} > {peer}").parse().unwrap();
        Flow { socket, receiver: self.receiver.try_clone().unwrap(), key, sent: first }
    }

    /// Returns the numbers of the packets that have arrived since the last call.
    pub(crate) fn received(&self) -> Vec<u32> {
        let mut bytes = [0; 2_000];
        let next = || {
            self.receiver.recv(&mut bytes).ok().map(|_| u32::from_ne_bytes(bytes[..4].try_into().unwrap()))
        };
        std::iter::from_fn(next).collect()
    }
}

fn run(namespace: &Namespace, program: &str, arguments: &[&str]) {
    let output = namespace.within(|| Command::new(program).args(arguments).output()).unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
}

/// Waits until `is_so`; panics if it takes too long even for a busy machine.
pub(crate) fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn options() -> TcOptions {
    TcOptions {
        interface: INTERFACE.to_owned(),
        queues: QueuePlan {
            rate: BitRate(100_000_000),
            queueing: Queueing::Borrow { scavenger_share: 0.05 },
            primary_queue: Bytes(5_000_000),
            scavenger_queue: Bytes(5_000_000),
        },
        expiry: Nanos::from_secs(1_000),
        capacity: 16,
        keeps_at_stop: false,
    }
}

pub(crate) fn now() -> Timestamp {
    monotonic()
}
