//! Traffic control (tc(8)): queueing disciplines and filter programs of interfaces, by [`Netlink`].
//!
//! | module | contents |
//! |---|---|
//! | [`queue`] | queues and classes of one interface |
//! | [`htb`] | hierarchical token buckets |
//! | [`egress`] | programs at the egress |

pub mod egress;
pub mod htb;
pub mod queue;

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use thalweg_wire::{BitRate, Bytes};

use crate::netlink::message::{Request, find, u32_at, u64_at};
use crate::netlink::{Netlink, NetlinkError};

/// The length of `struct tcmsg` in bytes: family, interface, handle, parent, info.
const HEADER_LENGTH: usize = 20;

/// Handles (linux/pkt_sched.h): the root, the parent and handle of `clsact`, and its ingress hook.
const ROOT: u32 = 0xffff_ffff;
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
const INGRESS: u32 = 0xffff_fff2;

/// The handle of a token bucket: 1:0.
const BUCKET_HANDLE: u32 = 1 << 16;

/// `tcm_info`: ETH_P_ALL in network byte order, and priority 1 in the upper 16 bits.
const FIRST_OF_ALL_PROTOCOLS: u32 = 1 << 16 | (libc::ETH_P_ALL as u16).to_be() as u32;

/// Attributes of TCA_OPTIONS of tbf (linux/pkt_sched.h).
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_BURST: u16 = 6;

/// TC_LINKLAYER_ETHERNET (linux/pkt_sched.h): the kernel computes transmission times without a rate table.
const LINK_LAYER_ETHERNET: u8 = 1;

/// Attributes of TCA_OPTIONS of a BPF filter (linux/pkt_cls.h), and its flag for direct action: the program returns the
/// action.
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_ID: u16 = 11;
const DIRECT_ACTION: u32 = 1;

/// Attributes of TCA_STATS2 (linux/gen_stats.h).
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;

/// A token bucket filter, which limits the rate of an interface (tc-tbf(8)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// The rate including headers, below 2^32 bytes per second.
    pub rate: BitRate,
    /// Bytes that each frame takes beyond its own, such as preamble, frame check sequence and gap.
    pub framing: u16,
    /// The bucket size: data that may pass at once after a pause.
    pub burst: Bytes,
    /// The queue limit; packets beyond are dropped.
    pub limit: Bytes,
}

/// Counters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Sent frames. Wraps at 2^32, as in the kernel.
    pub sent_packets: u64,
    /// Sent bytes, without preamble and frame check sequence.
    pub sent_bytes: u64,
    /// Frames dropped because the queue was full. Wraps at 2^32.
    pub dropped_packets: u64,
    /// The current backlog.
    pub backlog: Bytes,
}

impl Netlink {
    /// Replaces the root queue of an interface by a token bucket.
    ///
    /// # Errors
    /// If the interface does not exist, or this process lacks the privilege.
    pub fn set_token_bucket(&self, interface: u32, bucket: &TokenBucket) -> Result<(), NetlinkError> {
        let mut request = queue_request(libc::RTM_NEWQDISC, interface, BUCKET_HANDLE, ROOT, 0);
        request.text(libc::TCA_KIND, "tbf");
        request.nested(libc::TCA_OPTIONS, |request| {
            request.attribute(TCA_TBF_PARMS, &bucket.parameters());
            request.number(TCA_TBF_BURST, u32::try_from(bucket.burst.0).unwrap_or(u32::MAX));
        });
        self.set_queue(request, interface)
    }

    /// Adds the hook for ingress programs to an interface.
    ///
    /// # Errors
    /// If the interface does not exist, or this process lacks the privilege.
    pub fn add_ingress_hook(&self, interface: u32) -> Result<(), NetlinkError> {
        let mut request = queue_request(libc::RTM_NEWQDISC, interface, CLSACT_HANDLE, CLSACT, 0);
        request.text(libc::TCA_KIND, "clsact");
        self.set_queue(request, interface)
    }

    /// Attaches a program of kind [`Classifier`](crate::bpf::ProgramKind::Classifier) to the ingress of an interface,
    /// which must have the [hook](Self::add_ingress_hook). The kernel keeps the program with the interface.
    ///
    /// # Errors
    /// If the interface has another program, or this process lacks the privilege.
    pub fn add_ingress_program(
        &self,
        interface: u32,
        program: BorrowedFd<'_>,
        name: &str,
    ) -> Result<(), NetlinkError> {
        let mut request = queue_request(libc::RTM_NEWTFILTER, interface, 0, INGRESS, FIRST_OF_ALL_PROTOCOLS);
        request.text(libc::TCA_KIND, "bpf");
        request.nested(libc::TCA_OPTIONS, |request| {
            request.number(TCA_BPF_FD, program.as_raw_fd() as u32);
            request.text(TCA_BPF_NAME, name);
            request.number(TCA_BPF_FLAGS, DIRECT_ACTION);
        });
        self.create(request, || format!("attach a program to interface {interface}"))
    }

    /// Returns the id of the ingress program of an interface, if it has one.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn ingress_program(&self, interface: u32) -> Result<Option<u32>, NetlinkError> {
        let request = queue_request(libc::RTM_GETTFILTER, interface, 0, INGRESS, 0);
        let responses = self.list(request, || format!("list the programs of interface {interface}"))?;
        let program = |payload: &[u8]| {
            let options = find(payload.get(HEADER_LENGTH..)?, libc::TCA_OPTIONS)?;
            u32_at(find(options, TCA_BPF_ID)?, 0)
        };
        Ok(responses.iter().find_map(|response| program(&response.payload)))
    }

    /// Returns the counters of the root queues of all interfaces, by interface index.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn queue_counters(&self) -> Result<BTreeMap<u32, QueueCounters>, NetlinkError> {
        let request = queue_request(libc::RTM_GETQDISC, 0, 0, 0, 0);
        let responses = self.list(request, || "list queues".to_owned())?;
        let is_queue = |kind: u16| kind == libc::RTM_NEWQDISC;
        let queues = responses.iter().filter(|response| is_queue(response.kind));
        Ok(queues.filter_map(|response| QueueCounters::read(&response.payload)).collect())
    }

    fn set_queue(&self, request: Request, interface: u32) -> Result<(), NetlinkError> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        self.request(request, flags, || format!("set the queue of interface {interface}")).map(drop)
    }
}

fn queue_request(kind: u16, interface: u32, handle: u32, parent: u32, info: u32) -> Request {
    let mut header = [0; HEADER_LENGTH];
    for (place, word) in header[4..].chunks_exact_mut(4).zip([interface, handle, parent, info]) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    Request::new(kind, &header)
}

impl TokenBucket {
    /// Encodes `struct tc_tbf_qopt` (linux/pkt_sched.h): two rates, then limit, buffer and MTU. No peak rate is set,
    /// and the bucket size has its own attribute in bytes.
    fn parameters(&self) -> [u8; 36] {
        let mut bytes = [0; 36];
        bytes[1] = LINK_LAYER_ETHERNET;
        bytes[2..4].copy_from_slice(&self.framing.to_ne_bytes());
        let bytes_per_second = u32::try_from(self.rate.0 / 8).unwrap_or(u32::MAX);
        bytes[8..12].copy_from_slice(&bytes_per_second.to_ne_bytes());
        bytes[24..28].copy_from_slice(&u32::try_from(self.limit.0).unwrap_or(u32::MAX).to_ne_bytes());
        bytes
    }
}

impl QueueCounters {
    /// Parses the interface index and the counters of a queue; `None` if it is not a root queue.
    fn read(message: &[u8]) -> Option<(u32, QueueCounters)> {
        if u32_at(message, 12)? != ROOT {
            return None;
        }
        let mut counters = QueueCounters::default();
        if let Some(statistics) = find(message.get(HEADER_LENGTH..)?, libc::TCA_STATS2) {
            counters.read_statistics(statistics)?;
        }
        Some((u32_at(message, 4)?, counters))
    }

    /// Reads the attributes of TCA_STATS2.
    fn read_statistics(&mut self, statistics: &[u8]) -> Option<()> {
        // `struct gnet_stats_basic`: bytes, packets.
        if let Some(basic) = find(statistics, TCA_STATS_BASIC) {
            self.sent_bytes = u64_at(basic, 0)?;
            self.sent_packets = u64::from(u32_at(basic, 8)?);
        }
        // `struct gnet_stats_queue`: queued packets, queued bytes, drops.
        if let Some(queue) = find(statistics, TCA_STATS_QUEUE) {
            self.backlog = Bytes(u64::from(u32_at(queue, 4)?));
            self.dropped_packets = u64::from(u32_at(queue, 8)?);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_parameters_have_the_layout_of_the_kernel() {
        let parameters = |rate, limit| {
            TokenBucket { rate: BitRate(rate), framing: 24, burst: Bytes(0), limit: Bytes(limit) }
                .parameters()
        };
        let bytes = parameters(100_000_000, 62_500);
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((bytes[1], word(8), word(24)), (1, 12_500_000, 62_500));
        assert_eq!(u16::from_ne_bytes([bytes[2], bytes[3]]), 24);
        assert!(bytes[12..24].iter().all(|&byte| byte == 0), "no peak rate");
        let fast = parameters(100_000_000_000, 1 << 40);
        assert_eq!((&fast[8..12], &fast[24..28]), ([255; 4].as_slice(), [255; 4].as_slice()));
    }

    proptest! {
        #[test]
        fn any_bytes_parse_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            QueueCounters::read(&bytes);
        }
    }
}
