//! The counters of the switch program, by port.

use std::io;

use bytemuck::{Pod, Zeroable, must_cast};
use thalweg_linux::bpf::{AnyMap, PerCpuMap};
use thalweg_network::RouterId;

use crate::layout::Layout;

/// `struct counters` of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Counters {
    received_packets: u64,
    received_bytes: u64,
    sent_packets: u64,
    sent_bytes: u64,
    mirrored_packets: u64,
    mirrored_bytes: u64,
    mirror_failed: u64,
    arp_answered: u64,
    no_entry: u64,
    hairpin: u64,
    looped: u64,
    group: u64,
    malformed: u64,
}

/// Number of counters.
const COUNTERS: usize = size_of::<Counters>() / size_of::<u64>();

/// By the number of the port's interface.
type CounterMap = PerCpuMap<{ size_of::<u32>() }, { size_of::<Counters>() }>;

/// A switch's counters of one port. Bytes count whole frames without preamble and check sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounters {
    /// Frames received by the port.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames handed to the port's queue, which counts its own drops.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Received frames copied to the monitor port's queue, which counts its own drops.
    pub mirrored_packets: u64,
    /// Their bytes.
    pub mirrored_bytes: u64,
    /// Mirrored frames that the monitor port refused because it was down.
    pub mirror_failed: u64,
    /// Broadcast ARP requests that the switch answered.
    pub arp_answered: u64,
    /// Received frames that the switch dropped.
    pub drops: Drops,
}

/// Frames that a switch dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// The table has no entry for the destination address.
    pub no_entry: u64,
    /// The output port is the input port.
    pub hairpin: u64,
    /// The frame has passed 32 switches: a loop.
    pub looped: u64,
    /// A group address, and not an ARP request that the switch can answer.
    pub group: u64,
    /// Shorter than an Ethernet header.
    pub malformed: u64,
}

impl Drops {
    /// Returns the sum over all reasons.
    pub fn total(&self) -> u64 {
        let Drops { no_entry, hairpin, looped, group, malformed } = self;
        no_entry + hairpin + looped + group + malformed
    }
}

/// Reads the counters of all ports, in the order of the layout.
pub(super) fn read(map: AnyMap, layout: &Layout) -> io::Result<Vec<SwitchCounters>> {
    let counters = CounterMap::try_from(map)?;
    let of_port = |port: &crate::layout::Port| {
        let mut sum = [0; COUNTERS];
        for of_processor in counters.get(&port.interface.to_ne_bytes())?.unwrap_or_default() {
            let (values, _) = of_processor.as_chunks();
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += u64::from_ne_bytes(*value));
        }
        Ok(must_cast::<_, Counters>(sum).into())
    };
    layout.ports.iter().map(of_port).collect()
}

/// Resets the counters of a switch's ports.
pub(super) fn reset(map: AnyMap, layout: &Layout, router: RouterId) -> io::Result<()> {
    let mut counters = CounterMap::try_from(map)?;
    let zeros = [0; size_of::<Counters>()];
    layout
        .ports_of(router)
        .iter()
        .try_for_each(|port| counters.set_all(&port.interface.to_ne_bytes(), &zeros))
}

impl From<Counters> for SwitchCounters {
    fn from(counters: Counters) -> SwitchCounters {
        SwitchCounters {
            received_packets: counters.received_packets,
            received_bytes: counters.received_bytes,
            sent_packets: counters.sent_packets,
            sent_bytes: counters.sent_bytes,
            mirrored_packets: counters.mirrored_packets,
            mirrored_bytes: counters.mirrored_bytes,
            mirror_failed: counters.mirror_failed,
            arp_answered: counters.arp_answered,
            drops: Drops {
                no_entry: counters.no_entry,
                hairpin: counters.hairpin,
                looped: counters.looped,
                group: counters.group,
                malformed: counters.malformed,
            },
        }
    }
}
