//! Which of the kernel's two ways to packets an interface is captured in, and one source for both.
//!
//! [AF_PACKET](crate::live) taps an interface and leaves it as it is. [AF_XDP](crate::xdp) is faster, and takes what
//! comes in away from the host. So AF_XDP is chosen for a port that nobody else can want anything from, and only if
//! everything it needs is there; for all others it has to be asked for.

mod link;
mod source;

use std::fmt;
use std::str::FromStr;

use caps::{CapSet, Capability};
use thalweg_wire::Bytes;
use thiserror::Error;

pub use source::AnySource;

use crate::live::socket::PacketSocket;
use crate::xdp::{XdpOptions, XdpSocket};
use link::Link;

/// A way to the packets of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// A tap: the host's network stack goes on as before.
    AfPacket,
    /// Past the network stack, which no longer gets what comes in.
    AfXdp,
}

/// How an interface is captured, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// How.
    pub backend: Backend,
    /// Why, as one plain sentence for the log, without a full stop.
    pub reason: String,
}

/// Chooses how to capture from `interface`, with the defaults of [`XdpOptions`]: as `wanted`, or if nothing is wanted,
/// through AF_XDP if all of this holds, and else through AF_PACKET:
///
/// - nothing of this host lives on the interface: it has no address but an IPv6 address of its own making, is no port
///   of a bridge, bond or switch, and no interface of this network namespace is built on it;
/// - it is of Ethernet, and no other XDP program is attached;
/// - the kernel knows AF_XDP, and the process has CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF (or CAP_SYS_ADMIN), and may lock
///   as much memory as the frames of all receive queues need.
///
/// When AF_XDP is wanted on an interface that something lives on, the reason warns of that.
pub fn choose(interface: &str, wanted: Option<Backend>) -> Choice {
    choose_with(&XdpOptions::new(interface), wanted)
}

/// As [`choose`], for capturing with these options.
pub(crate) fn choose_with(options: &XdpOptions, wanted: Option<Backend>) -> Choice {
    let name = &options.interface;
    match wanted {
        Some(Backend::AfPacket) => {
            Choice { backend: Backend::AfPacket, reason: "AF_PACKET, as asked for".to_owned() }
        }
        Some(Backend::AfXdp) => {
            let dweller = link::look_up(name).ok().flatten().and_then(|link| dweller(&link));
            let warning = dweller.map_or_else(String::new, |dweller| {
                format!("; `{name}` {dweller}, and what comes in no longer reaches it")
            });
            Choice { backend: Backend::AfXdp, reason: format!("AF_XDP, as asked for{warning}") }
        }
        None => match hindrance(options) {
            Some(hindrance) => {
                Choice { backend: Backend::AfPacket, reason: format!("AF_PACKET, since {hindrance}") }
            }
            None => Choice {
                backend: Backend::AfXdp,
                reason: format!("AF_XDP, since nothing of this host lives on `{name}`"),
            },
        },
    }
}

/// The first thing that speaks against AF_XDP, to be read after "since".
fn hindrance(options: &XdpOptions) -> Option<String> {
    let name = &options.interface;
    let link = match link::look_up(name) {
        Ok(Some(link)) => link,
        Ok(None) => return Some(format!("there is no interface `{name}` to look at")),
        Err(error) => return Some(format!("the interfaces cannot be listed ({error})")),
    };
    if let Some(dweller) = dweller(&link) {
        return Some(format!("`{name}` {dweller}, and AF_XDP would take its packets away"));
    }
    if !link.is_ethernet {
        return Some(format!("`{name}` is not of Ethernet"));
    }
    if link.has_xdp {
        return Some(format!("another XDP program is attached to `{name}`"));
    }
    missing_permission().or_else(|| missing_memory(options))
}

/// What of this host lives on an interface, to be read after its name.
fn dweller(link: &Link) -> Option<String> {
    if link.has_address {
        Some("has an IP address".to_owned())
    } else if let Some(master) = &link.master {
        Some(format!("is a port of `{master}`"))
    } else {
        link.upper.as_ref().map(|upper| format!("carries `{upper}`"))
    }
}

fn missing_permission() -> Option<String> {
    let has = |capability| caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false);
    let needed = [
        ("CAP_NET_RAW", has(Capability::CAP_NET_RAW)),
        ("CAP_NET_ADMIN", has(Capability::CAP_NET_ADMIN)),
        ("CAP_BPF", has(Capability::CAP_BPF) || has(Capability::CAP_SYS_ADMIN)),
    ];
    if let Some((capability, _)) = needed.into_iter().find(|(_, has)| !has) {
        return Some(format!("AF_XDP needs the capability {capability}"));
    }
    let error = XdpSocket::open().err()?;
    Some(format!("the kernel gives no XDP socket ({error})"))
}

/// Locked memory is counted against a limit unless the process may lock what it likes.
fn missing_memory(options: &XdpOptions) -> Option<String> {
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_IPC_LOCK).unwrap_or(false) {
        return None;
    }
    let queue_count = PacketSocket::open().and_then(|s| s.receive_queue_count(&options.interface)).ok()?;
    let needed = Bytes(options.memory_of_a_queue().0 * u64::from(queue_count));
    let limit = crate::xdp::locked_memory_limit();
    (needed > limit).then(|| {
        format!("its frames need {needed} of locked memory, and the limit is {limit} without CAP_IPC_LOCK")
    })
}

/// `AF_PACKET` or `AF_XDP`, as in the kernel's documentation.
impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Backend::AfPacket => "AF_PACKET",
            Backend::AfXdp => "AF_XDP",
        })
    }
}

/// Why the name of a backend could not be read.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected `af_packet` or `af_xdp`")]
pub struct ParseBackendError;

impl FromStr for Backend {
    type Err = ParseBackendError;

    /// Reads `af_packet` and `af_xdp`, as configurations write them.
    fn from_str(text: &str) -> Result<Backend, ParseBackendError> {
        match text {
            "af_packet" => Ok(Backend::AfPacket),
            "af_xdp" => Ok(Backend::AfXdp),
            _ => Err(ParseBackendError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lives_on_an_interface_is_told() {
        let port = Link { is_ethernet: true, ..Link::default() };
        assert_eq!(dweller(&port), None);
        assert_eq!(dweller(&Link { has_address: true, ..port.clone() }).unwrap(), "has an IP address");
        assert_eq!(
            dweller(&Link { master: Some("br0".into()), ..port.clone() }).unwrap(),
            "is a port of `br0`"
        );
        assert_eq!(dweller(&Link { upper: Some("eth0.5".into()), ..port }).unwrap(), "carries `eth0.5`");
    }

    #[test]
    fn an_interface_that_is_not_there_is_left_to_af_packet_to_complain_of() {
        let choice = choose("no-such-one", None);
        assert_eq!(choice.backend, Backend::AfPacket);
        assert_eq!(choice.reason, "AF_PACKET, since there is no interface `no-such-one` to look at");
    }

    #[test]
    fn what_is_asked_for_is_chosen() {
        for backend in [Backend::AfPacket, Backend::AfXdp] {
            let choice = choose("lo", Some(backend));
            assert_eq!(choice.backend, backend);
            assert!(choice.reason.starts_with(&format!("{backend}, as asked for")), "{}", choice.reason);
        }
    }

    #[test]
    fn names_in_configurations_are_read() {
        assert_eq!("af_packet".parse(), Ok(Backend::AfPacket));
        assert_eq!("af_xdp".parse(), Ok(Backend::AfXdp));
        assert_eq!("AF-XDP".parse::<Backend>(), Err(ParseBackendError));
    }
}
