//! Addresses and ports, shortened to a number of columns.

use std::net::IpAddr;

use thalweg_wire::FlowKey;

use crate::names::{HostNames, Services};

/// Width of the longest IPv4 endpoint: `255.255.255.255:65535`.
pub(crate) const IPV4_WIDTH: u16 = 21;
/// Width of the longest IPv6 endpoint: 39 columns of address, brackets, colon, port.
pub(crate) const IPV6_WIDTH: u16 = 47;

/// Names of hosts and of ports, as far as they are shown. The default shows numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Labels<'a> {
    pub(crate) hosts: Option<&'a HostNames>,
    pub(crate) services: Option<&'a Services>,
}

impl Labels<'_> {
    /// Formats an address in at most `width` columns.
    pub(crate) fn host(&self, address: IpAddr, width: u16) -> String {
        match self.hosts.and_then(|hosts| hosts.get(&address)) {
            Some(name) => elided(name, usize::from(width)),
            None => shortened(&address.to_string(), "", usize::from(width)),
        }
    }

    /// Formats the source of a key in at most `width` columns. Omits the port of protocols without ports.
    pub(crate) fn source(&self, key: &FlowKey, width: u16) -> String {
        let name = self.hosts.and_then(|hosts| hosts.get(&key.src()));
        let has_port = key.protocol.has_ports() || key.src_port != 0 || key.dst_port != 0;
        let is_bracketed = name.is_none() && key.src().is_ipv6() && has_port;
        let address = match name {
            Some(name) => name.to_string(),
            None if is_bracketed => format!("[{}", key.src()),
            None => key.src().to_string(),
        };
        let service = self.services.and_then(|services| services.name(key.protocol, key.src_port));
        let port = match (has_port, service) {
            (false, _) => String::new(),
            (true, Some(service)) => format!(":{service}"),
            (true, None) => format!(":{}", key.src_port),
        };
        let bracket = if is_bracketed { "]" } else { "" };
        shortened(&address, &format!("{bracket}{port}"), usize::from(width))
    }

    /// Formats the destination of a key in at most `width` columns.
    pub(crate) fn destination(&self, key: &FlowKey, width: u16) -> String {
        self.source(&key.reversed(), width)
    }

    /// Formats both ends like a flow key without the protocol.
    pub(crate) fn both(&self, key: &FlowKey, width: u16) -> String {
        let each = width.saturating_sub(3) / 2;
        format!("{} > {}", self.source(key, each), self.destination(key, each))
    }
}

/// Formats the source of a key in numbers, in at most `width` columns.
pub(crate) fn source(key: &FlowKey, width: u16) -> String {
    Labels::default().source(key, width)
}

/// Formats the destination of a key in numbers.
pub(crate) fn destination(key: &FlowKey, width: u16) -> String {
    Labels::default().destination(key, width)
}

/// Formats both ends in numbers.
pub(crate) fn both(key: &FlowKey, width: u16) -> String {
    Labels::default().both(key, width)
}

/// Removes what does not fit from the middle of the address: networks differ at its start, hosts at its end. Keeps the port,
/// unless it takes more than half of the width.
fn shortened(address: &str, port: &str, width: usize) -> String {
    if address.chars().count() + port.chars().count() <= width {
        return format!("{address}{port}");
    }
    let port = elided(port, (width / 2).max(7));
    elided(address, width.saturating_sub(port.chars().count())) + &port
}

/// Replaces the middle of text that is longer than `width` by `…`.
pub(crate) fn elided(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let tail = kept / 2;
    let head: String = text.chars().take(kept - tail).collect();
    let tail: String = text.chars().skip(count - tail).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use thalweg_wire::Protocol;

    use super::*;

    #[test]
    fn an_address_loses_its_middle_but_not_its_port() {
        let key: FlowKey = "tcp [2001:db8:85a3:1:2:8a2e:370:7334]:443 > [2001:db8::1]:51000".parse().unwrap();
        assert_eq!(source(&key, 47), "[2001:db8:85a3:1:2:8a2e:370:7334]:443");
        assert_eq!(source(&key, 21), "[2001:db8…70:7334]:443".replacen("8…", "…", 1));
        assert_eq!(destination(&key, 21), "[2001:db8::1]:51000");
        let key = FlowKey::v4(0xC0A8_64C8, 0x0A00_0001, 51000, 443, Protocol::TCP);
        assert_eq!(source(&key, 21), "192.168.100.200:51000");
        assert_eq!(source(&key, 16), "192.1….200:51000");
    }

    #[test]
    fn names_replace_addresses_and_ports() {
        let key: FlowKey =
            "tcp [2001:db8::1]:51000 > 192.0.2.1:443".replace("192.0.2.1", "[2001:db8::2]").parse().unwrap();
        let hosts = HostNames::from([(key.dst(), "a-long-name.of-a-host.example".into())]);
        let services = Services::parse(b"https 443/tcp\na-service-with-a-long-name 51000/tcp");
        let labels = Labels { hosts: Some(&hosts), services: Some(&services) };
        assert_eq!(labels.destination(&key, 47), "a-long-name.of-a-host.example:https");
        assert_eq!(labels.destination(&key, 21), "a-long-…example:https");
        assert_eq!(labels.source(&key, 47), "[2001:db8::1]:a-service-with-a-long-name");
        assert_eq!(labels.source(&key, 21).chars().count(), 21);
        assert_eq!(labels.host(key.dst(), 10), "a-lon…mple");
        assert_eq!(labels.host(key.src(), 39), "2001:db8::1");
        let numbers = Labels { services: None, ..labels };
        assert_eq!(numbers.destination(&key, 47), "a-long-name.of-a-host.example:443");
    }

    #[test]
    fn protocols_without_ports_show_none() {
        let key: FlowKey = "esp 10.0.0.1 > 10.0.0.2".parse().unwrap();
        assert_eq!(both(&key, 60), "10.0.0.1 > 10.0.0.2");
        let key: FlowKey = "icmp 10.0.0.1:17 > 10.0.0.2:17".parse().unwrap();
        assert_eq!(source(&key, 21), "10.0.0.1:17");
    }
}
