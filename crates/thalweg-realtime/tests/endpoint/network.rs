//! Two namespaces joined by a veth pair: `eth0` in each, with IPv4 and IPv6.

use std::net::UdpSocket;
use std::process::{Command, Output};

use thalweg_linux::Namespace;
use thalweg_realtime::endpoint::HostTable;

/// The addresses of the sender and the receiver.
pub(crate) const SENDER: [&str; 2] = ["10.98.0.1", "fd98::1"];
pub(crate) const RECEIVER: [&str; 2] = ["10.98.0.2", "fd98::2"];

/// Deleted when dropped.
pub(crate) struct Network {
    sender: String,
    receiver: String,
}

impl Network {
    /// Creates the namespaces, or prints why it cannot.
    pub(crate) fn new() -> Option<Network> {
        let name = |end| format!("twe-{}-{end}", std::process::id());
        let network = Network { sender: name("s"), receiver: name("r") };
        let created = Command::new("ip").args(["netns", "add", &network.sender]).output();
        if !created.is_ok_and(|output| output.status.success()) {
            crate::skip("needs root and ip(8) to make network namespaces");
            return None;
        }
        ip(&["netns", "add", &network.receiver]);
        network.connect();
        Some(network)
    }

    /// Creates the veth pair and its addresses.
    pub(crate) fn connect(&self) {
        let (sender, receiver) = (self.sender.as_str(), self.receiver.as_str());
        let pair = ["-n", sender, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0"];
        ip(&[pair.as_slice(), &["netns", receiver]].concat());
        for (namespace, [ipv4, ipv6]) in [(sender, SENDER), (receiver, RECEIVER)] {
            let ip = |arguments: &[&str]| ip(&[&["-n", namespace], arguments].concat());
            ip(&["link", "set", "lo", "up"]);
            ip(&["address", "add", &format!("{ipv4}/24"), "dev", "eth0"]);
            ip(&["address", "add", &format!("{ipv6}/64"), "dev", "eth0", "nodad"]);
            ip(&["link", "set", "eth0", "up"]);
        }
    }

    /// Deletes the veth pair.
    pub(crate) fn disconnect(&self) {
        ip(&["-n", &self.sender, "link", "delete", "eth0"]);
    }

    /// Deletes the TAP interface of an endpoint.
    pub(crate) fn delete_tap(&self) {
        ip(&["-n", &self.sender, "link", "delete", "thalweg0"]);
    }

    /// Sets the MTU of both ends.
    pub(crate) fn set_mtu(&self, mtu: u32) {
        for namespace in [&self.sender, &self.receiver] {
            ip(&["-n", namespace, "link", "set", "eth0", "mtu", &mtu.to_string()]);
        }
    }

    /// Sets the sender's end up or down.
    pub(crate) fn set_up(&self, is_up: bool) {
        ip(&["-n", &self.sender, "link", "set", "eth0", if is_up { "up" } else { "down" }]);
    }

    /// The namespace in which applications send.
    pub(crate) fn sender(&self) -> Namespace {
        Namespace::named(&self.sender)
    }

    /// The namespace in which applications receive.
    pub(crate) fn receiver(&self) -> Namespace {
        Namespace::named(&self.receiver)
    }

    /// Endpoint 1 sends, endpoint 2 receives.
    pub(crate) fn hosts(&self) -> HostTable {
        let text = format!("1 {}\n2 {}\n", SENDER.join(" "), RECEIVER.join(" "));
        HostTable::parse(&text, std::path::Path::new("hosts")).unwrap()
    }

    /// A socket of the sender that is connected to one of the receiver.
    pub(crate) fn sockets(&self) -> (UdpSocket, UdpSocket) {
        let bind = |namespace: Namespace, address| {
            namespace.within(move || UdpSocket::bind((address, 0)).unwrap()).unwrap()
        };
        let (sender, receiver) = (bind(self.sender(), SENDER[0]), bind(self.receiver(), RECEIVER[0]));
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        (sender, receiver)
    }

    /// The sender's interfaces and their addresses.
    pub(crate) fn interfaces(&self) -> String {
        String::from_utf8(ip(&["-n", &self.sender, "-br", "address"]).stdout).unwrap()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for namespace in [&self.sender, &self.receiver] {
            let _ = Command::new("ip").args(["netns", "delete", namespace]).output();
        }
    }
}

fn ip(arguments: &[&str]) -> Output {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}
