//! The carrier of local interfaces, as a signal that a link has failed.
//!
//! For a switch whose ports are interfaces of this machine, or a port whose other end is one. A link is down while one of
//! its interfaces has no carrier, is down or does not exist.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use thalweg_capture::Namespace;
use thalweg_control::control_loop::{Input, LinkSource};
use thalweg_linux::Netlink;
use thalweg_network::{LinkId, Topology};

/// Interval at which the interfaces are read.
const INTERVAL: Duration = Duration::from_millis(50);

/// The monitored interfaces.
#[derive(Debug)]
pub(super) struct Carriers {
    netlink: Netlink,
    /// A port, as the user writes it, and its interface.
    interfaces: Vec<(String, String)>,
    /// Links that are down.
    down: BTreeSet<LinkId>,
    due: Option<Instant>,
}

impl Carriers {
    /// Opens a socket for a network namespace; `None` is that of the daemon.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or there is no socket.
    pub(super) fn open(
        interfaces: Vec<(String, String)>,
        namespace: Option<&Namespace>,
    ) -> io::Result<Carriers> {
        let netlink = match namespace {
            None => Netlink::open()?,
            Some(namespace) => Netlink::open_within(namespace).map_err(io::Error::other)?,
        };
        Ok(Carriers { netlink, interfaces, down: BTreeSet::new(), due: None })
    }

    /// Reads the interfaces, if due. Returns the links that have changed. Ports that the topology no longer has are
    /// ignored.
    ///
    /// # Errors
    /// If the interfaces cannot be read; they are read again later.
    pub(super) fn poll(&mut self, topology: &Topology, now: Instant) -> Result<Vec<Input>, String> {
        if self.due.is_some_and(|due| now < due) {
            return Ok(Vec::new());
        }
        self.due = Some(now + INTERVAL);
        let listed = self.netlink.interfaces().map_err(|error| format!("no carrier is known: {error}"))?;
        let is_up = |name: &str| listed.iter().any(|listed| listed.name == name && listed.is_operational);
        let down: BTreeSet<LinkId> = self
            .interfaces
            .iter()
            .filter(|(_, interface)| !is_up(interface))
            .filter_map(|(port, _)| topology.find_link_at(port).ok())
            .collect();
        let before = std::mem::replace(&mut self.down, down);
        let changed = |link: LinkId, is_up| Input::LinkReported { link, source: LinkSource::Carrier, is_up };
        let failed = self.down.difference(&before).map(|&link| changed(link, false));
        let repaired = before.difference(&self.down).map(|&link| changed(link, true));
        Ok(failed.chain(repaired).collect())
    }
}
