//! Addresses and ports, shortened to a number of columns.

use std::net::{IpAddr, SocketAddr};

use thalweg_wire::FlowKey;

/// Width of the longest IPv4 endpoint: `255.255.255.255:65535`.
pub(crate) const IPV4_WIDTH: u16 = 21;
/// Width of the longest IPv6 endpoint: 39 columns of address, brackets, colon, port.
pub(crate) const IPV6_WIDTH: u16 = 47;

/// Formats the source of a key in at most `width` columns. Omits the port of protocols without ports.
pub(crate) fn source(key: &FlowKey, width: u16) -> String {
    let has_port = key.protocol.has_ports() || key.src_port != 0 || key.dst_port != 0;
    shortened(key.src(), has_port.then_some(key.src_port), usize::from(width))
}

/// Formats the destination of a key in at most `width` columns.
pub(crate) fn destination(key: &FlowKey, width: u16) -> String {
    source(&key.reversed(), width)
}

/// Formats both ends like a flow key without the protocol.
pub(crate) fn both(key: &FlowKey, width: u16) -> String {
    let each = width.saturating_sub(3) / 2;
    format!("{} > {}", source(key, each), destination(key, each))
}

/// Removes what does not fit from the middle of the address: networks differ at its start, hosts at its end. Always keeps
/// the port.
fn shortened(address: IpAddr, port: Option<u16>, width: usize) -> String {
    let text = port.map_or_else(|| address.to_string(), |port| SocketAddr::new(address, port).to_string());
    if text.len() <= width {
        return text;
    }
    let port_at = match port {
        Some(_) if address.is_ipv6() => text.rfind(']'),
        Some(_) => text.rfind(':'),
        None => None,
    };
    let (address, port) = text.split_at(port_at.unwrap_or(text.len()));
    elided(address, width.saturating_sub(port.len())) + port
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
    fn protocols_without_ports_show_none() {
        let key: FlowKey = "esp 10.0.0.1 > 10.0.0.2".parse().unwrap();
        assert_eq!(both(&key, 60), "10.0.0.1 > 10.0.0.2");
        let key: FlowKey = "icmp 10.0.0.1:17 > 10.0.0.2:17".parse().unwrap();
        assert_eq!(source(&key, 21), "10.0.0.1:17");
    }
}
