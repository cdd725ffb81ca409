//! Captures the packets of a DPDK port (Data Plane Development Kit, doc.dpdk.org): a network card that a DPDK driver owns, or a
//! virtual device. Needs the feature `dpdk` of this crate, which links Debian's libdpdk; without it [`DpdkSource::open_group`]
//! returns [`DpdkError::NotBuilt`].
//!
//! A port is named by DPDK's device arguments: `net_af_packet0,iface=eth0`, `net_pcap0,rx_pcap=FILE`, `net_memif0,...`, or
//! the PCI address of a card. Each call takes up to [`MAX_BATCH`] packets from the driver's receive queues, copies the first
//! [`snap_length`](DpdkOptions::snap_length) bytes of each, and returns the packet buffers to the driver. The copy makes headers
//! contiguous that are spread over several segments, and lets no buffer of DPDK leave the C code.
//!
//! **Polling.** DPDK has no notification that packets have arrived, so a source polls. After a millisecond without packets it
//! sleeps 50 us between polls, during which the descriptors of a queue collect packets ([`DpdkOptions::descriptors`]).
//!
//! **Frames** are those that the driver delivers, with their VLAN tag: a tag that the driver removed is restored. Frames longer
//! than the port's MTU are dropped by the card.
//!
//! **Time** is that of the wall clock when the packets are taken from the driver, once for up to 256 packets. Drivers disagree
//! about the unit of their own timestamps.
//!
//! **Drops are counted** where the driver counts them: [`SourceCounters::kernel_drops`](thalweg_wire::SourceCounters) is the sum
//! of `imissed` (no descriptor was free) and `rx_nombuf` (no packet buffer was free) of `rte_eth_stats`, and of the drops that the
//! kernel counts at the packet sockets of the driver `net_af_packet`, which DPDK 22.11 does not report.
//!
//! **Several workers** share the receive queues of a port, which the card fills by a hash (RSS). A virtual device has as many
//! queues as its arguments say. A worker polls its queues in turn, so any number of workers reads all.
//!
//! **If the interface behind a port goes down**, the source waits and resumes when it comes up again. If it is deleted, or the
//! card is removed, the source ends with [`DpdkError::Removed`].
//!
//! **The EAL** (DPDK's Environment Abstraction Layer) starts with the first port of the process, and only once. Its default options
//! use huge pages if enough are free, and otherwise run without; see [`DpdkOptions::eal`]. A thread of its own closes the ports, with the
//! capabilities that the process had when the EAL started.

#[cfg(feature = "dpdk")]
mod eal;
mod error;
#[cfg(feature = "dpdk")]
mod ffi;
#[cfg(feature = "dpdk")]
mod keeper;
mod options;
#[cfg_attr(not(feature = "dpdk"), path = "absent.rs")]
mod source;

pub use error::DpdkError;
pub use options::{DpdkOptions, device_of};
pub use source::DpdkSource;

/// The maximum number of packets in a batch.
pub const MAX_BATCH: usize = 256;
