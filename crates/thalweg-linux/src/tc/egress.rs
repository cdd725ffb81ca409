//! Filter programs at the egress of an interface.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use super::queue::filter_info;
use super::{
    CLSACT, CLSACT_HANDLE, DIRECT_ACTION, HEADER_LENGTH, INGRESS, TCA_BPF_FD, TCA_BPF_FLAGS, TCA_BPF_ID,
    TCA_BPF_NAME, queue_request,
};
use crate::netlink::message::{find, text, u32_at};
use crate::netlink::{Netlink, NetlinkError};

/// The egress hook of `clsact` (TC_H_MIN_EGRESS of linux/pkt_sched.h).
const EGRESS: u32 = 0xffff_fff3;

/// The place of a filter: its priority and handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterPlace {
    /// Filters with a lower number run first.
    pub priority: u16,
    /// The handle, unique within the priority.
    pub handle: u32,
}

/// A filter program at an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterProgram {
    /// Its place.
    pub place: FilterPlace,
    /// The name that its owner gave it.
    pub name: String,
    /// The kernel's id of the program.
    pub program: u32,
}

impl Netlink {
    /// Attaches a program to the egress of an interface, or replaces the one at this place in one step. Adds the hook if
    /// there is none. The kernel keeps the program with the interface.
    ///
    /// # Errors
    /// If another kind of filter has this place, or this process lacks the privilege.
    pub fn set_egress_program(
        &self,
        interface: u32,
        place: FilterPlace,
        program: BorrowedFd<'_>,
        name: &str,
    ) -> Result<(), NetlinkError> {
        self.ensure_hook(interface)?;
        let FilterPlace { priority, handle } = place;
        let info = filter_info(priority);
        let mut request = queue_request(libc::RTM_NEWTFILTER, interface, handle, EGRESS, info);
        request.text(libc::TCA_KIND, "bpf");
        request.nested(libc::TCA_OPTIONS, |request| {
            request.number(TCA_BPF_FD, program.as_raw_fd() as u32);
            request.text(TCA_BPF_NAME, name);
            request.number(TCA_BPF_FLAGS, DIRECT_ACTION);
        });
        // Without NLM_F_EXCL, the kernel changes a filter that exists.
        let operation = || format!("attach a program to the egress of interface {interface}");
        self.request(request, libc::NLM_F_CREATE, operation).map(drop)
    }

    /// Returns the programs at the egress of an interface.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn egress_programs(&self, interface: u32) -> Result<Vec<FilterProgram>, NetlinkError> {
        Ok(self.filters(interface, EGRESS)?.iter().filter_map(|payload| program(payload)).collect())
    }

    /// Deletes the egress filter at this place, and the hook if no filter is left.
    ///
    /// # Errors
    /// If the filter does not exist, or this process lacks the privilege.
    pub fn delete_egress_program(&self, interface: u32, place: FilterPlace) -> Result<(), NetlinkError> {
        let FilterPlace { priority, handle } = place;
        let info = filter_info(priority);
        let mut request = queue_request(libc::RTM_DELTFILTER, interface, handle, EGRESS, info);
        request.text(libc::TCA_KIND, "bpf");
        let operation = || format!("delete the egress program of interface {interface}");
        self.request(request, 0, operation)?;
        let is_used = |hook| self.filters(interface, hook).map_or(true, |filters| !filters.is_empty());
        if is_used(EGRESS) || is_used(INGRESS) {
            return Ok(());
        }
        let request = queue_request(libc::RTM_DELQDISC, interface, CLSACT_HANDLE, CLSACT, 0);
        self.request(request, 0, || format!("delete the hook of interface {interface}")).map(drop)
    }

    /// Adds the hook, unless there is one: replacing it would remove the filters of others.
    fn ensure_hook(&self, interface: u32) -> Result<(), NetlinkError> {
        let mut request = queue_request(libc::RTM_NEWQDISC, interface, CLSACT_HANDLE, CLSACT, 0);
        request.text(libc::TCA_KIND, "clsact");
        match self.create(request, || format!("add the hook of interface {interface}")) {
            Err(error) if error.source.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            result => result,
        }
    }

    fn filters(&self, interface: u32, hook: u32) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let request = queue_request(libc::RTM_GETTFILTER, interface, 0, hook, 0);
        let responses = self.list(request, || format!("list the filters of interface {interface}"))?;
        let filters = responses.into_iter().filter(|response| response.kind == libc::RTM_NEWTFILTER);
        Ok(filters.map(|response| response.payload).collect())
    }
}

/// Parses a filter; `None` if it is not a program.
fn program(payload: &[u8]) -> Option<FilterProgram> {
    let (handle, info) = (u32_at(payload, 8)?, u32_at(payload, 16)?);
    let options = find(payload.get(HEADER_LENGTH..)?, libc::TCA_OPTIONS)?;
    let program = u32_at(find(options, TCA_BPF_ID)?, 0)?;
    let name = find(options, TCA_BPF_NAME).map(text).unwrap_or_default();
    Some(FilterProgram { place: FilterPlace { priority: (info >> 16) as u16, handle }, name, program })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_parse_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            program(&bytes);
        }
    }
}
