//! Waits until links carry frames.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use thalweg_linux::netlink::Netlink;

use crate::error::LabError;

/// Number and length of the waits: 5 s in total.
const WAITS: (u32, Duration) = (2_500, Duration::from_millis(2));

/// Waits until these interfaces of a namespace carry frames; until then they drop.
pub(crate) fn wait_for_links(
    interfaces: impl Iterator<Item = u32>,
    netlink: &Netlink,
) -> Result<(), LabError> {
    let mut waiting: BTreeSet<u32> = interfaces.collect();
    let (waits, pause) = WAITS;
    for _ in 0..waits {
        for interface in netlink.interfaces()?.iter().filter(|interface| interface.is_operational) {
            waiting.remove(&interface.index);
        }
        if waiting.is_empty() {
            return Ok(());
        }
        thread::sleep(pause);
    }
    Err(LabError::LinksDown { count: waiting.len() })
}
