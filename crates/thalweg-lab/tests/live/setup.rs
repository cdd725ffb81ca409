//! The lab of a test.

use std::ffi::CString;
use std::io::Write as _;
use std::net::UdpSocket;
use std::ops::Deref;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use thalweg_lab::{DEFAULT_RATE, Lab, LabError, Plan, Prefix, SwitchCounters};
use thalweg_network::{EndpointId, PortIndex, RouterId};

/// Only one test has a lab at a time: labs share the processors, and tests inspect the whole machine.
static ALONE: Mutex<()> = Mutex::new(());

/// A lab that is removed when it goes out of scope.
pub(crate) struct TestLab {
    lab: Option<Lab>,
    pub(crate) prefix: Prefix,
    alone: Option<MutexGuard<'static, ()>>,
}

/// Prints why a test is skipped, to standard error itself, because the test runner captures `eprintln!`.
pub(crate) fn skip(reason: impl std::fmt::Display) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // There is nowhere to report a failure.
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}

/// Returns the default leaf-spine of three leaves with two hosts each: `r0` to `r2` are leaves, `r3` and `r4` spines.
/// The prefix differs between concurrent runs of these tests.
pub(crate) fn plan() -> Plan {
    let prefix = format!("t{}-", std::process::id() % 10_000_000).parse().unwrap();
    Plan { prefix, ..Plan::leaf_spine(DEFAULT_RATE).unwrap() }
}

impl TestLab {
    /// Creates the lab, or prints why the test is skipped.
    pub(crate) fn up(plan: Plan) -> Option<TestLab> {
        let alone = TestLab::alone();
        for program in ["ip", "ping"] {
            if Command::new(program).arg("-V").output().is_err() {
                skip(format!("{program} is not installed"));
                return None;
            }
        }
        let prefix = plan.prefix.clone();
        match Lab::up(plan) {
            Ok(lab) => Some(TestLab { lab: Some(lab), prefix, alone: Some(alone) }),
            Err(error @ (LabError::NotRoot | LabError::NoSwitchProgram)) => {
                skip(error);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Creates a second lab with its own prefix.
    pub(crate) fn beside(&self) -> TestLab {
        let prefix: Prefix = format!("u{}", &self.prefix.as_str()[1..]).parse().unwrap();
        let lab = Lab::up(Plan { prefix: prefix.clone(), ..plan() }).unwrap();
        TestLab { lab: Some(lab), prefix, alone: None }
    }

    /// Waits until no other test has a lab.
    pub(crate) fn alone() -> MutexGuard<'static, ()> {
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a lab without removing the current one first, as after a killed process.
    pub(crate) fn replace(&mut self, plan: Plan) {
        drop(self.lab.take());
        self.lab = Some(Lab::up(plan).unwrap());
    }

    /// Removes the lab and keeps the lock.
    pub(crate) fn down(mut self) -> MutexGuard<'static, ()> {
        drop(self.lab.take());
        Lab::down(&self.prefix).unwrap();
        self.alone.take().expect("taken once")
    }

    /// Returns the switch's counters of a port.
    pub(crate) fn port(&self, router: u16, port: u16) -> SwitchCounters {
        let status = self.status().unwrap();
        status.switches[usize::from(router)].ports[usize::from(port)].switch
    }

    /// Returns the number of frames that a switch has forwarded.
    pub(crate) fn forwarded(&self, router: u16) -> u64 {
        let status = self.status().unwrap();
        status.switches[usize::from(router)].ports.iter().map(|port| port.switch.sent_packets).sum()
    }

    /// Returns the port to which a host is attached.
    pub(crate) fn port_of(&self, host: u16) -> (RouterId, PortIndex) {
        let topology = self.topology();
        (topology.router_of(EndpointId(host)), topology.port_of(EndpointId(host)))
    }

    /// Sends `count` pings one after the other and returns the number of replies.
    pub(crate) fn ping(&self, from: u16, to: u16, count: u32) -> u32 {
        self.ping_address(from, &self.topology().endpoints()[usize::from(to)].ip.to_string(), count)
    }

    /// Like [`ping`](Self::ping), to any address.
    pub(crate) fn ping_address(&self, from: u16, address: &str, count: u32) -> u32 {
        // One at a time: with several, ping(8) waits for the last reply at most twice the round trip of the others.
        (0..count).map(|_| u32::from(self.is_answered(from, address))).sum()
    }

    fn is_answered(&self, from: u16, address: &str) -> bool {
        let mut ping = Command::new("ping");
        ping.args(["-q", "-n", "-W", "1", "-c", "1", address]).stdout(Stdio::piped());
        let output = self.host(EndpointId(from)).spawn(&mut ping).unwrap().wait_with_output().unwrap();
        match output.status.code() {
            Some(0) => true,
            Some(1) => false,
            _ => panic!("{output:?}"),
        }
    }

    /// Opens a UDP socket on a host.
    pub(crate) fn socket(&self, host: u16, port: u16) -> UdpSocket {
        let address = self.topology().endpoints()[usize::from(host)].ip;
        self.host(EndpointId(host)).within(|| UdpSocket::bind((address, port))).unwrap().unwrap()
    }

    /// Sends a frame on an interface of the fabric.
    pub(crate) fn send_frame(&self, interface: &str, frame: &[u8]) {
        let name = CString::new(interface).unwrap();
        let send = || {
            // SAFETY: takes a C string.
            let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
            // SAFETY: takes numbers only.
            let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
            assert!(index > 0 && socket >= 0, "{interface}: {}", std::io::Error::last_os_error());
            // SAFETY: opened above and owned by nothing else.
            let socket = unsafe { OwnedFd::from_raw_fd(socket) };
            // SAFETY: all-zero bytes are a valid address.
            let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            (address.sll_family, address.sll_ifindex) = (libc::AF_PACKET as u16, index as i32);
            let length = size_of::<libc::sockaddr_ll>() as u32;
            // SAFETY: the frame and the address have the given lengths.
            let sent = unsafe {
                let to = (&raw const address).cast();
                libc::sendto(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0, to, length)
            };
            assert_eq!(sent, frame.len() as isize, "{}", std::io::Error::last_os_error());
        };
        self.fabric().within(send).unwrap();
    }

    /// Returns the queueing disciplines of the fabric, as `tc` prints them.
    pub(crate) fn queues(&self) -> String {
        let mut command = Command::new("tc");
        command.args(["qdisc", "show"]).stdout(Stdio::piped());
        let output = self.fabric().spawn(&mut command).unwrap().wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `ip` on a host.
    pub(crate) fn ip(&self, host: u16, arguments: &[&str]) {
        let mut command = Command::new("ip");
        command.args(arguments);
        assert!(self.host(EndpointId(host)).spawn(&mut command).unwrap().wait().unwrap().success());
    }
}

impl Deref for TestLab {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        self.lab.as_ref().expect("replaced or dropped right after it is taken")
    }
}

impl Drop for TestLab {
    fn drop(&mut self) {
        let removed = Lab::down(&self.prefix);
        if !std::thread::panicking() {
            removed.unwrap();
        }
    }
}

/// Returns the output of a command; empty if it cannot be run.
pub(crate) fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map(|output| String::from_utf8(output.stdout).unwrap()).unwrap_or_default()
}
