//! Two network namespaces joined by a veth pair: `twl0` in the reader's, `twl1` in the sender's. Neighbours are
//! static and IPv6 is off, so that the wire carries only what a test sends.

use std::fs::File;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use thalweg_capture::live::{LiveError, LiveOptions, LiveSource};

/// The address of `twl0`.
pub(crate) const READER: &str = "10.99.0.1";
/// The address of `twl1`.
pub(crate) const SENDER: &str = "10.99.0.2";

const READER_MAC: &str = "02:00:00:00:00:01";
const SENDER_MAC: &str = "02:00:00:00:00:02";

/// Deleted when dropped.
pub(crate) struct Network {
    reader: String,
    sender: String,
}

impl Network {
    /// Creates the namespaces, or prints why it cannot.
    pub(crate) fn new() -> Option<Network> {
        Network::with_queues(1)
    }

    /// Like [`new`](Self::new), with several queues at each end, in both directions.
    pub(crate) fn with_queues(queue_count: u32) -> Option<Network> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |end| format!("twl-{}-{number}-{end}", std::process::id());
        let network = Network { reader: name("r"), sender: name("s") };
        if !try_ip(&["netns", "add", &network.reader]) {
            crate::skip::skip("needs root and ip(8) to make network namespaces");
            return None;
        }
        ip(&["netns", "add", &network.sender]);
        let (reader, sender) = (&network.reader, &network.sender);
        for namespace in [reader, sender] {
            let disable = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6";
            ip(&["netns", "exec", namespace, "sh", "-c", disable]);
        }
        let count = queue_count.to_string();
        let queues = ["numrxqueues", &count, "numtxqueues", &count];
        let one_end = ["-n", reader, "link", "add", "twl0", "address", READER_MAC];
        let other_end = ["type", "veth", "peer", "name", "twl1", "address", SENDER_MAC];
        ip(&[&one_end, queues.as_slice(), &other_end, &queues, &["netns", sender]].concat());
        for (namespace, interface, address) in [(reader, "twl0", READER), (sender, "twl1", SENDER)] {
            ip(&["-n", namespace, "address", "add", &format!("{address}/24"), "dev", interface]);
            ip(&["-n", namespace, "link", "set", "lo", "up"]);
            ip(&["-n", namespace, "link", "set", interface, "up"]);
        }
        network.add_neighbours();
        Some(network)
    }

    /// Sets both ends' neighbour entries; to be repeated after a link was down.
    pub(crate) fn add_neighbours(&self) {
        for (namespace, interface, address, mac) in
            [(&self.reader, "twl0", SENDER, SENDER_MAC), (&self.sender, "twl1", READER, READER_MAC)]
        {
            let entry = ["neighbour", "replace", address, "lladdr", mac, "dev", interface];
            ip(&[&["-n", namespace.as_str()], entry.as_slice()].concat());
        }
    }

    /// Returns the reader's namespace.
    pub(crate) fn reader(&self) -> &str {
        &self.reader
    }

    /// Opens a source in the reader's namespace.
    pub(crate) fn open(&self, options: &LiveOptions) -> Result<LiveSource, LiveError> {
        self.in_reader(|| LiveSource::open(options))
    }

    /// Opens a group of sources in the reader's namespace.
    pub(crate) fn open_group(
        &self,
        options: &LiveOptions,
        workers: NonZeroUsize,
    ) -> Result<Vec<LiveSource>, LiveError> {
        self.in_reader(|| LiveSource::open_group(options, workers))
    }

    /// Runs `work` in a thread within the reader's namespace.
    pub(crate) fn in_reader<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        in_namespace(&self.reader, work)
    }

    /// Runs `work` in a thread within the sender's namespace.
    pub(crate) fn in_sender<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        in_namespace(&self.sender, work)
    }

    /// Returns the output of `ip` for `twl0`.
    pub(crate) fn show_reader(&self) -> String {
        let arguments = ["-n", &self.reader, "-details", "link", "show", "dev", "twl0"];
        String::from_utf8(Command::new("ip").args(arguments).output().unwrap().stdout).unwrap()
    }

    /// Runs `ip` within the reader's namespace.
    pub(crate) fn ip_reader(&self, arguments: &[&str]) {
        ip(&[&["-n", self.reader.as_str()], arguments].concat());
    }

    /// Enables IPv6 on `twl0`, which then gets an automatic address.
    pub(crate) fn enable_ipv6_at_reader(&self) {
        let enable = "echo 0 > /proc/sys/net/ipv6/conf/twl0/disable_ipv6";
        ip(&["netns", "exec", &self.reader, "sh", "-c", enable]);
    }

    /// Returns the frames that were dropped because the ring of the veth pair was full.
    pub(crate) fn dropped_by_sender(&self) -> u64 {
        let arguments = ["-n", &self.sender, "-stats", "link", "show", "dev", "twl1"];
        let shown = String::from_utf8(Command::new("ip").args(arguments).output().unwrap().stdout).unwrap();
        let numbers = shown.lines().skip_while(|line| !line.trim().starts_with("TX:")).nth(1);
        numbers.and_then(|line| line.split_whitespace().nth(3)).and_then(|text| text.parse().ok()).unwrap()
    }

    /// Runs `ip` within the sender's namespace.
    pub(crate) fn ip_sender(&self, arguments: &[&str]) {
        ip(&[&["-n", self.sender.as_str()], arguments].concat());
    }

    /// Sends one datagram with `size` bytes of payload.
    pub(crate) fn send_udp(&self, from: &str, from_port: u16, to: &str, to_port: u16, size: usize) {
        self.send(from, from_port, to, to_port, size, 1);
    }

    /// Sends `count` datagrams; the first four bytes are their number.
    pub(crate) fn send_udp_many(
        &self,
        from: &str,
        from_port: u16,
        to: &str,
        to_port: u16,
        size: usize,
        count: u32,
    ) {
        assert!(size >= 4);
        self.send(from, from_port, to, to_port, size, count);
    }

    fn send(&self, from: &str, from_port: u16, to: &str, to_port: u16, size: usize, count: u32) {
        let namespace = if from == SENDER { &self.sender } else { &self.reader };
        in_namespace(namespace, || {
            // A socket that discards what arrives, so that no ICMP error is sent.
            let socket = bind(from, from_port);
            let other = if from == SENDER { &self.reader } else { &self.sender };
            let _sink = (from != to).then(|| in_namespace(other, || bind(to, to_port)));
            let mut payload = vec![0; size];
            for number in 0..count {
                if size >= 4 {
                    payload[..4].copy_from_slice(&number.to_be_bytes());
                }
                socket.send_to(&payload, (to, to_port)).unwrap();
            }
        });
    }

    /// Sends datagrams of `flow_count` flows in turn until `stop` is set, at most 100,000. The first four bytes
    /// number those of a flow; `sent_count` counts all.
    pub(crate) fn send_flows_until(&self, flow_count: u16, stop: &AtomicBool, sent_count: &AtomicU32) {
        in_namespace(&self.sender, || {
            let sockets: Vec<_> = (0..flow_count).map(|index| bind(SENDER, 5000 + index)).collect();
            let _sink = in_namespace(&self.reader, || bind(READER, 6000));
            for number in 0..100_000 / u32::from(flow_count) {
                for socket in &sockets {
                    socket.send_to(&number.to_be_bytes(), (READER, 6000)).unwrap();
                    sent_count.fetch_add(1, Ordering::Relaxed);
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            // Never let a test wait for more.
            sent_count.store(u32::MAX, Ordering::Relaxed);
        });
    }

    /// Returns a frame to `twl0`: the addresses, then `ethertypes` (tags included), then `length` bytes of payload.
    pub(crate) fn frame(&self, ethertypes: &[u8], length: usize) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        frame.extend(ethertypes);
        frame.extend((0..length).map(|index| index as u8));
        frame
    }

    /// Sends a frame from `twl1` unchanged.
    pub(crate) fn send_frame(&self, frame: &[u8]) {
        in_namespace(&self.sender, || {
            // SAFETY: takes a C string.
            let index = unsafe { libc::if_nametoindex(c"twl1".as_ptr()) };
            // SAFETY: takes numbers only.
            let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
            // SAFETY: all-zero bytes are a valid address.
            let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_ifindex = index as i32;
            let address_length = size_of::<libc::sockaddr_ll>() as u32;
            // SAFETY: the frame and the address have the given lengths.
            let sent = unsafe {
                let to = (&raw const address).cast();
                libc::sendto(socket, frame.as_ptr().cast(), frame.len(), 0, to, address_length)
            };
            assert_eq!(sent, frame.len() as isize, "{}", std::io::Error::last_os_error());
            // SAFETY: opened above, and closed once.
            unsafe { libc::close(socket) };
        });
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        try_ip(&["netns", "delete", &self.reader]);
        try_ip(&["netns", "delete", &self.sender]);
    }
}

/// Restricts the calling thread to these effective capabilities.
pub(crate) fn has_capabilities_only(kept: &[caps::Capability]) {
    caps::set(None, caps::CapSet::Effective, &kept.iter().copied().collect()).unwrap();
}

/// Runs `work` in a new thread within a namespace.
pub(crate) fn in_namespace<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let namespace = File::open(format!("/run/netns/{name}")).unwrap();
            // SAFETY: the descriptor is open; the thread has nothing yet that belongs to another namespace.
            assert_eq!(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A port stays in use for a moment after its socket is closed: while another test starts a program, that program has
/// a copy of the socket.
fn bind(address: &str, port: u16) -> UdpSocket {
    for _ in 0..1000 {
        match UdpSocket::bind((address, port)) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                std::thread::sleep(Duration::from_millis(1))
            }
            bound => return bound.unwrap(),
        }
    }
    panic!("{address}:{port} stays in use");
}

fn ip(arguments: &[&str]) {
    assert!(try_ip(arguments), "ip {}", arguments.join(" "));
}

fn try_ip(arguments: &[&str]) -> bool {
    Command::new("ip").args(arguments).stderr(std::process::Stdio::null()).status().is_ok_and(|s| s.success())
}
