//! Chooses the capture backend of an interface if none is configured.
//!
//! [AF_PACKET](crate::live) taps an interface without side effects. [AF_XDP](crate::xdp) is faster, but hides
//! incoming packets from the host. So AF_XDP is chosen only for a port that the host does not use, and only if all
//! its requirements are met; for all others it must be requested.

mod link;

use caps::{CapSet, Capability};
use thalweg_linux::socket::Socket;
use thalweg_wire::Bytes;

use crate::backend::Backend;
use crate::error::CaptureError;
use crate::live::{LiveError, Way};
use crate::spec::{InterfaceSpec, Readers};
use crate::xdp::{XdpSocket, old_kernel};
use link::Link;

/// The chosen backend, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The backend.
    pub backend: Backend,
    /// The reason, as one sentence for the log, without a full stop.
    pub reason: String,
}

/// Chooses the backend for an interface: the requested one. Without a request, AF_XDP if all of this holds, and
/// otherwise AF_PACKET:
///
/// - this host does not use the interface: it has no address except its automatic IPv6 link-local address, is not a
///   port of a bridge, bond or switch, and no interface of this network namespace is built on it;
/// - it is an Ethernet interface, and no other XDP program is attached;
/// - the kernel is Linux 6.6 or newer, and supports AF_XDP, and the process has CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF (or CAP_SYS_ADMIN), and may
///   lock as much memory as the frames of all receive queues need;
/// - it has one receive queue, if one source is to read it.
///
/// If AF_XDP is requested for an interface that the host uses, the reason contains a warning.
///
/// # Errors
/// If AF_XDP is requested with one source on an interface with several receive queues, or the interface's namespace
/// cannot be entered.
pub fn choose(spec: &InterfaceSpec) -> Result<Choice, CaptureError> {
    Ok(spec.within(|| choose_here(spec))??)
}

/// Like [`choose`], in the calling thread's network namespace.
pub(crate) fn choose_here(spec: &InterfaceSpec) -> Result<Choice, LiveError> {
    let name = spec.name();
    let choice = |backend, reason| Ok(Choice { backend, reason });
    match spec.backend {
        Some(Backend::AfXdp) => {
            if let Some(queue_count) = too_many_queues(spec) {
                return Err(LiveError::SeveralQueues { interface: name.to_owned(), queue_count });
            }
            let host_use = link::look_up(name).ok().flatten().and_then(|link| host_use(&link));
            let warning = host_use.map_or_else(String::new, |host_use| {
                format!("; `{name}` {host_use}, and incoming packets no longer reach it")
            });
            choice(Backend::AfXdp, format!("AF_XDP, as requested{warning}"))
        }
        Some(tap) => choice(tap, format!("{tap}, as requested")),
        None => match obstacle(spec) {
            Some(obstacle) => choice(Backend::AfPacket, format!("AF_PACKET, since {obstacle}")),
            None => choice(Backend::AfXdp, format!("AF_XDP, since this host does not use `{name}`")),
        },
    }
}

/// Returns the first obstacle to AF_XDP, worded to follow "since".
fn obstacle(spec: &InterfaceSpec) -> Option<String> {
    let name = spec.name();
    if spec.options.way == Way::Out {
        return Some("AF_XDP captures no frames that this host sends".to_owned());
    }
    let link = match link::look_up(name) {
        Ok(Some(link)) => link,
        Ok(None) => return Some(format!("interface `{name}` does not exist")),
        Err(error) => return Some(format!("the interfaces cannot be listed ({error})")),
    };
    if let Some(host_use) = host_use(&link) {
        return Some(format!("`{name}` {host_use}, and AF_XDP would hide its packets from the host"));
    }
    if !link.is_ethernet {
        return Some(format!("`{name}` is not an Ethernet interface"));
    }
    if link.has_xdp {
        return Some(format!("another XDP program is attached to `{name}`"));
    }
    if let Some(version) = old_kernel() {
        return Some(format!("this is Linux {version}, and AF_XDP needs 6.6 or newer"));
    }
    missing_permission().or_else(|| missing_memory(spec)).or_else(|| {
        let queue_count = too_many_queues(spec)?;
        Some(format!("`{name}` has {queue_count} receive queues, and AF_XDP would need one socket each"))
    })
}

/// Returns how this host uses an interface, worded to follow its name.
fn host_use(link: &Link) -> Option<String> {
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
    Some(format!("an XDP socket cannot be opened ({error})"))
}

/// Locked memory is limited unless the process has CAP_IPC_LOCK.
fn missing_memory(spec: &InterfaceSpec) -> Option<String> {
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_IPC_LOCK).unwrap_or(false) {
        return None;
    }
    let options = spec.xdp_options();
    // Invalid options are reported when the interface is opened.
    options.validate().ok()?;
    let needed = Bytes(options.queue_memory().0 * u64::from(queue_count(spec)?));
    let limit = crate::xdp::locked_memory_limit();
    (needed > limit).then(|| {
        format!("its frames need {needed} of locked memory, and the limit is {limit} without CAP_IPC_LOCK")
    })
}

/// Returns the number of receive queues if one source would have to read more than one.
fn too_many_queues(spec: &InterfaceSpec) -> Option<u32> {
    queue_count(spec).filter(|&count| spec.readers == Readers::One && count > 1)
}

/// Returns `None` if the interface does not exist.
fn queue_count(spec: &InterfaceSpec) -> Option<u32> {
    Socket::for_ioctls().and_then(|socket| socket.receive_queue_count(spec.name())).ok()
}

#[cfg(test)]
mod tests {
    use thalweg_linux::Namespace;

    use super::*;
    use crate::live::LiveOptions;

    #[test]
    fn uses_of_an_interface_are_detected() {
        let port = Link { is_ethernet: true, ..Link::default() };
        assert_eq!(host_use(&port), None);
        assert_eq!(host_use(&Link { has_address: true, ..port.clone() }).unwrap(), "has an IP address");
        assert_eq!(
            host_use(&Link { master: Some("br0".into()), ..port.clone() }).unwrap(),
            "is a port of `br0`"
        );
        assert_eq!(host_use(&Link { upper: Some("eth0.5".into()), ..port }).unwrap(), "carries `eth0.5`");
    }

    fn choose(interface: &str, backend: Option<Backend>) -> Choice {
        let options = LiveOptions::new(interface);
        super::choose(&InterfaceSpec { backend, ..InterfaceSpec::new(options) }).unwrap()
    }

    #[test]
    fn a_missing_interface_selects_af_packet() {
        let choice = choose("no-such-one", None);
        assert_eq!(choice.backend, Backend::AfPacket);
        assert_eq!(choice.reason, "AF_PACKET, since interface `no-such-one` does not exist");
    }

    #[test]
    fn a_requested_backend_is_used() {
        for backend in [Backend::AfPacket, Backend::AfXdp, Backend::Prompt] {
            let choice = choose("lo", Some(backend));
            assert_eq!(choice.backend, backend);
            assert!(choice.reason.starts_with(&format!("{backend}, as requested")), "{}", choice.reason);
        }
    }

    #[test]
    fn a_missing_namespace_is_an_error() {
        let options = LiveOptions::new("lo");
        let namespace = Some(Namespace::named("no-such-namespace"));
        let error = super::choose(&InterfaceSpec { namespace, ..InterfaceSpec::new(options) }).unwrap_err();
        assert!(
            error.to_string().contains("\"no-such-namespace\" does not exist: `ip netns list`"),
            "{error}"
        );
    }
}
