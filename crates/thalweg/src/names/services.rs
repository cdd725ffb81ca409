//! Names of ports from `/etc/services` (services(5)), as `tcpdump`, `ss` and `iftop` use it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use thalweg_wire::Protocol;

/// Where the names are.
const FILE: &str = "/etc/services";

/// Names of services by protocol and port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Services(HashMap<(Protocol, u16), Arc<str>>);

impl Services {
    /// Reads `/etc/services`. Without the file, no port has a name.
    pub(crate) fn of_system() -> Services {
        std::fs::read(Path::new(FILE)).map_or_else(|_| Services::default(), |text| Services::parse(&text))
    }

    /// Parses lines such as `https 443/tcp alias # comment`. Skips others. The first name of a port counts, as in
    /// getservbyport(3).
    pub(crate) fn parse(text: &[u8]) -> Services {
        let mut services = HashMap::new();
        for line in String::from_utf8_lossy(text).lines() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_ascii_whitespace();
            let (Some(name), Some(service)) = (words.next(), words.next()) else { continue };
            let Some((port, protocol)) = service.split_once('/') else { continue };
            if let (Ok(port), Ok(protocol), true) =
                (port.parse(), protocol.parse(), name.bytes().all(|byte| byte.is_ascii_graphic()))
            {
                services.entry((protocol, port)).or_insert_with(|| name.into());
            }
        }
        Services(services)
    }

    /// Returns the name of a port.
    pub(crate) fn name(&self, protocol: Protocol, port: u16) -> Option<&str> {
        self.0.get(&(protocol, port)).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_of_a_port_counts() {
        let text = b"# Network services\nhttps\t443/tcp  # TLS\nhttps 443/udp\nnewname 443/tcp\nbroken\nx 99999/tcp\ny 1/nothing\ndomain 53/udp\n\xff 54/udp";
        let services = Services::parse(text);
        assert_eq!(services.name(Protocol::TCP, 443), Some("https"));
        assert_eq!(services.name(Protocol::UDP, 443), Some("https"));
        assert_eq!(services.name(Protocol::UDP, 53), Some("domain"));
        assert_eq!(services.name(Protocol::TCP, 53), None);
        assert_eq!(services.0.len(), 3);
    }
}
