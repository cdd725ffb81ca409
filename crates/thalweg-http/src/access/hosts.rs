//! Names that requests may be for.
//!
//! A web page can make its own name point to 127.0.0.1 and have the visitor's browser ask there (DNS rebinding); the
//! browser takes the answer for the page's own. What gives it away is the name in the request, which is the page's. So
//! on the loopback interface, where nothing else is demanded, a request is for this machine by one of its own names or it
//! is refused.
//!
//! A page may also send something without reading the answer. Browsers then say in `Origin` which page it was.

use std::net::IpAddr;

use super::options::AccessOptions;

/// Names that requests may be for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// Names beside those of the loopback interface; `None` if any name will do.
    named: Option<Vec<String>>,
}

impl Hosts {
    /// Those that go with the options.
    pub fn new(options: &AccessOptions) -> Hosts {
        Hosts { named: options.is_loopback().then(|| options.hosts.clone()) }
    }

    /// Any name will do.
    pub fn any() -> Hosts {
        Hosts { named: None }
    }

    /// Whether a request may be for this: a name or an address, with a port or without (RFC 9110, section 7.2).
    pub fn allow(&self, host: &str) -> bool {
        let Some(named) = &self.named else { return true };
        let name = without_port(host);
        let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
        name.eq_ignore_ascii_case("localhost")
            || name.trim_matches(['[', ']']).parse().is_ok_and(is_loopback)
            || named.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Whether a request that would change something comes from a page of this server itself, as `Origin` says.
pub(crate) fn is_own_page(origin: &str, host: &str) -> bool {
    origin.split_once("://").is_some_and(|(_, from)| from.eq_ignore_ascii_case(host))
}

/// `tor0:80` to `tor0`, `[::1]:80` to `[::1]`.
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
    fn on_the_loopback_interface_a_request_is_for_one_of_its_names_or_refused() {
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
    fn where_tokens_or_certificates_are_demanded_any_name_will_do() {
        assert!(on("192.0.2.1:80").allow("collector.example"));
    }

    #[test]
    fn a_page_is_our_own_if_it_came_from_the_same_host_and_port() {
        assert!(is_own_page("http://127.0.0.1:9477", "127.0.0.1:9477"));
        assert!(!is_own_page("http://evil.example", "127.0.0.1:9477"));
        assert!(!is_own_page("null", "127.0.0.1:9477"));
    }
}
