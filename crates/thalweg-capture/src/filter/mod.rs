//! Capture filters in tcpdump's language (pcap-filter(7)): `tcp port 443 and net 10.0.0.0/8`.
//!
//! An expression becomes a program of the classic Berkeley packet filter (McCanne and Jacobson, USENIX 1993), which
//! runs in the kernel on live interfaces and in this process on files. libpcap compiles it and, in this process, runs
//! it. It is loaded when first needed, so Thalweg builds and runs without it as long as no filter is used.
//!
//! A program is compiled for one link type. It reads a frame as it was on the wire, 802.1Q tags included: on Ethernet
//! `tcp` is TCP in untagged frames, `vlan and tcp` is TCP behind a tag, and both are `tcp or (vlan and tcp)`. This is
//! the same for files and for live interfaces, where the kernel removes the tag of a frame before it runs a filter:
//! tagged frames therefore pass the kernel and are filtered in this process once their tag is restored (see
//! [`crate::live`]).
//!
//! Cost: tens of microseconds to compile, a few nanoseconds per frame to run.

mod error;
mod filtered;
mod instruction;
mod libpcap;

pub use error::FilterError;
pub use filtered::{Filtered, FilteredError};
pub use instruction::Instruction;

use thalweg_wire::LinkType;

use libpcap::Libpcap;

/// The maximum bytes of a frame that a program for files may accept; libpcap's own limit.
pub const UNLIMITED_SNAP_LENGTH: u32 = 262_144;

/// A compiled capture filter.
#[derive(Clone, Debug)]
pub struct Filter {
    program: Vec<Instruction>,
    libpcap: &'static Libpcap,
}

impl Filter {
    /// Compiles `expression` for frames of `link_type`; an empty expression accepts every frame. The program returns
    /// `snap_length` for an accepted frame (0 stands for [`UNLIMITED_SNAP_LENGTH`]), the number of bytes of it that
    /// the kernel then keeps.
    ///
    /// Host and service names are looked up, which may take as long as the resolver takes.
    ///
    /// # Errors
    /// If libpcap is missing or rejects the expression.
    pub fn compile(expression: &str, link_type: LinkType, snap_length: u32) -> Result<Filter, FilterError> {
        let libpcap = Libpcap::get()?;
        let snap_length = if snap_length == 0 { UNLIMITED_SNAP_LENGTH } else { snap_length };
        match libpcap.compile(expression, dlt(link_type), snap_length) {
            Ok(program) => Ok(Filter { program, libpcap }),
            Err(reason) => {
                Err(FilterError::Expression { expression: expression.to_owned(), link_type, reason })
            }
        }
    }

    /// Whether the filter accepts a frame of which `bytes` were captured, `original_length` bytes long on the wire. A
    /// test beyond the captured bytes rejects the frame, as in tcpdump.
    #[inline]
    pub fn matches(&self, bytes: &[u8], original_length: u32) -> bool {
        self.libpcap.run(&self.program, bytes, original_length) != 0
    }

    /// Returns the program. At least one instruction; every path ends in a return.
    pub fn program(&self) -> &[Instruction] {
        &self.program
    }
}

/// Returns libpcap's number for a link type in this process, which differs from the one in files only for raw IP.
fn dlt(link_type: LinkType) -> i32 {
    const DLT_RAW: i32 = 12;
    match link_type {
        LinkType::RawIp => DLT_RAW,
        other => i32::from(other.number()),
    }
}

#[cfg(test)]
mod tests;
