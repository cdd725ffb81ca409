//! Hosts in network namespaces, at one bridge in another one.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use thalweg_linux::Namespace;
use thalweg_realtime::endpoint::HostTable;

/// Deleted when dropped.
pub(crate) struct Hosts {
    prefix: String,
    count: u16,
}

impl Hosts {
    /// Creates hosts; `None` if the user may not.
    pub(crate) fn new(count: u16) -> Option<Hosts> {
        let hosts = Hosts { prefix: format!("lsl{}-", std::process::id()), count };
        let bridge = hosts.name("bridge");
        if !ip(&["netns", "add", &bridge]) {
            return None;
        }
        let within = |namespace: &str, arguments: &[&str]| {
            assert!(ip(&[&["-n", namespace], arguments].concat()), "ip -n {namespace} {arguments:?}");
        };
        within(&bridge, &["link", "add", "bridge", "type", "bridge"]);
        within(&bridge, &["link", "set", "bridge", "up"]);
        for number in 0..count {
            let (host, port) = (hosts.name(&format!("h{number}")), format!("p{number}"));
            assert!(ip(&["netns", "add", &host]));
            within(&bridge, &["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &host]);
            within(&bridge, &["link", "set", &port, "master", "bridge", "up"]);
            within(&host, &["link", "set", "lo", "up"]);
            within(&host, &["address", "add", &format!("{}/24", hosts.address(number)), "dev", "eth0"]);
            within(&host, &["link", "set", "eth0", "up"]);
        }
        Some(hosts)
    }

    pub(crate) fn namespace(&self, number: u16) -> Namespace {
        Namespace::named(self.name(&format!("h{number}")))
    }

    pub(crate) fn address(&self, number: u16) -> Ipv4Addr {
        Ipv4Addr::new(10, 97, 0, number as u8 + 1)
    }

    /// Says which endpoint has which address.
    pub(crate) fn table(&self) -> HostTable {
        let lines = (0..self.count).map(|number| format!("{number} {}\n", self.address(number)));
        HostTable::parse(&lines.collect::<String>(), Path::new("hosts")).unwrap()
    }

    fn name(&self, of: &str) -> String {
        format!("{}{of}", self.prefix)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let hosts = (0..self.count).map(|number| format!("h{number}"));
        for name in hosts.chain(["bridge".to_owned()]) {
            ip(&["netns", "delete", &self.name(&name)]);
        }
    }
}

fn ip(arguments: &[&str]) -> bool {
    Command::new("ip").args(arguments).output().is_ok_and(|output| output.status.success())
}
