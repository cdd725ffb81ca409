//! What the switch program counts, port by port.

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

/// Numbers in it.
const COUNTERS: usize = size_of::<Counters>() / size_of::<u64>();

/// By the number of the port's interface.
type CounterMap = PerCpuMap<{ size_of::<u32>() }, { size_of::<Counters>() }>;

/// What a switch has done with the frames of one of its ports. Bytes are those of whole frames, without preamble and
/// check sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounters {
    /// Frames received by the port.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames handed to the port's queue, which counts what it drops.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Of the frames received, those copied to the monitor port's queue, which counts what it drops.
    pub mirrored_packets: u64,
    /// Their bytes.
    pub mirrored_bytes: u64,
    /// Of the frames mirrored, those whose copies the monitor port refused, being down.
    pub mirror_failed: u64,
    /// ARP requests to all that the switch has answered.
    pub arp_answered: u64,
    /// Of the frames received, those dropped by the switch.
    pub drops: Drops,
}

/// Frames that a switch has dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// The table has no entry for the destination address.
    pub no_entry: u64,
    /// They would have to leave by the port by which they came.
    pub hairpin: u64,
    /// They had been through 32 switches: a loop.
    pub looped: u64,
    /// They were for all hosts or some, and no ARP request that the switch could answer.
    pub group: u64,
    /// They were shorter than an Ethernet header.
    pub malformed: u64,
}

impl Drops {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Drops { no_entry, hairpin, looped, group, malformed } = self;
        no_entry + hairpin + looped + group + malformed
    }
}

/// The counters of all ports, in the order of the layout.
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

/// Has the ports of a switch count from zero again.
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
