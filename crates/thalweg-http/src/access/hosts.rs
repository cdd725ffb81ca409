//! Allowed host names of requests.
//!
//! A web page can point its own name to 127.0.0.1, and let the visitor's browser send requests there (DNS rebinding). The browser
//! treats the response as that of the page. Such a request has the page's name as host. So on the loopback interface, which needs no
//! credentials, requests with foreign host names are refused.
//!
//! A page may also send a request without reading the response. Browsers then send the page's origin in `Origin`.

use std::net::IpAddr;

use super::options::AccessOptions;

/// The allowed host names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// Additional names; `None` if any name is allowed.
    named: Option<Vec<String>>,
}

impl Hosts {
    /// Returns the allowed names for `options`.
    pub fn new(options: &AccessOptions) -> Hosts {
        Hosts { named: options.is_loopback().then(|| options.hosts.clone()) }
    }

    /// Allows any name.
    pub fn any() -> Hosts {
        Hosts { named: None }
    }

    /// Whether a host is allowed: a name or an address, with or without a port (RFC 9110, section 7.2).
    pub fn allow(&self, host: &str) -> bool {
        let Some(named) = &self.named else { return true };
        let name = without_port(host);
        let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
        name.eq_ignore_ascii_case("localhost")
            || name.trim_matches(['[', ']']).parse().is_ok_and(is_loopback)
            || named.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Whether `origin`, a header of the browser, is that of the host in the request.
pub(crate) fn is_same_origin(origin: &str, host: &str) -> bool {
    origin.split_once("://").is_some_and(|(_, from)| from.eq_ignore_ascii_case(host))
}

/// Removes the port: `tor0:80` to `tor0`, `[::1]:80` to `[::1]`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) && !name.ends_with(':') => {
            name
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(listen: &str) -> Hosts {
        let listen = listen.parse().unwrap();
        Hosts::new(&AccessOptions { listen, hosts: vec!["proxy.example".into()], ..AccessOptions::default() })
    }

    #[test]
    fn foreign_names_are_refused_on_the_loopback_interface() {
        let hosts = on("127.0.0.1:80");
        for own in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1",
            "127.0.0.1:9477",
            "[::1]:80",
            "[::1]",
            "proxy.example:1",
        ] {
            assert!(hosts.allow(own), "{own}");
        }
        for foreign in
            ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1", "", ":80"]
        {
            assert!(!hosts.allow(foreign), "{foreign}");
        }
    }

    #[test]
    fn any_name_is_allowed_on_other_interfaces() {
        assert!(on("192.0.2.1:80").allow("collector.example"));
    }

    #[test]
    fn the_same_origin_has_the_same_host_and_port() {
        assert!(is_same_origin("http://127.0.0.1:9477", "127.0.0.1:9477"));
        assert!(!is_same_origin("http://evil.example", "127.0.0.1:9477"));
        assert!(!is_same_origin("null", "127.0.0.1:9477"));
    }
}
