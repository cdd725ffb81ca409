//! Flows that are never redirected: by prefix or port.

use thalweg_wire::{FlowKey, IpPrefix};

/// Prefixes and ports whose flows are never redirected. A flow is excluded if either end matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusions {
    /// Prefixes of addresses.
    pub prefixes: Vec<IpPrefix>,
    /// Ports.
    pub ports: Vec<u16>,
}

impl Exclusions {
    /// Whether a flow is excluded.
    pub fn contain(&self, key: &FlowKey) -> bool {
        let ends = [(key.src(), key.src_port), (key.dst(), key.dst_port)];
        let has_ports = key.protocol.has_ports();
        ends.iter().any(|(address, port)| {
            (has_ports && self.ports.contains(port))
                || self.prefixes.iter().any(|prefix| prefix.contains(*address))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excluded(prefixes: &[&str], ports: &[u16], key: &str) -> bool {
        let prefixes = prefixes.iter().map(|text| text.parse().unwrap()).collect();
        Exclusions { prefixes, ports: ports.to_vec() }.contain(&key.parse().unwrap())
    }

    #[test]
    fn either_end_excludes_a_flow() {
        let key = "tcp 10.0.0.1:40000 > 192.0.2.7:22";
        assert!(excluded(&["192.0.2.0/24"], &[], key) && excluded(&["10.0.0.1"], &[], key));
        assert!(excluded(&["0.0.0.0/0"], &[], key) && excluded(&[], &[22], key));
        assert!(!excluded(&["192.0.3.0/24", "::/0"], &[23], key));
        let key = "udp [2001:db8::1]:53 > [2001:db9::1]:9";
        assert!(
            excluded(&["2001:db8::/32"], &[], key) && !excluded(&["2001:dba::/32", "0.0.0.0/0"], &[], key)
        );
        assert!(!excluded(&[], &[0], "esp 10.0.0.1 > 10.0.0.2"), "a protocol without ports");
    }
}
