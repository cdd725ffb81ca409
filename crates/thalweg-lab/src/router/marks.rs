//! When the first packet of each marked flow reaches the queue of the link.
//!
//! `marked.bpf.c` runs at the egress hook of the router's interface to the receiver, directly before HTB classifies. A
//! capture at the interface sees packets after the queue, so it would add the time in the queue.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;

use thalweg_linux::bpf::object::Loaded;
use thalweg_linux::bpf::{Map, Object, Program, ProgramKind};
use thalweg_linux::clock::{monotonic, realtime};
use thalweg_linux::netlink::Netlink;
use thalweg_linux::tc::egress::FilterPlace;
use thalweg_wire::{FlowKey, Timestamp};

use super::{LINK_INTERFACE, RouterLab};
use crate::error::LabError;

/// The object that `scripts/bpf.sh` compiled from `marked.bpf.c`; empty if this byte order is not supported.
#[cfg(target_endian = "little")]
static OBJECT: &[u8] = include_bytes!("marked.bpf.o");
#[cfg(not(target_endian = "little"))]
static OBJECT: &[u8] = &[];

/// The program and the map in the object file.
const PROGRAM: &str = "note_marked";
const MAP: &str = "first_packets";

/// Where the program is attached: before programs of others.
const PLACE: FilterPlace = FilterPlace { priority: 1, handle: 1 };

/// Lengths of `struct flow` and of a time.
const FLOW: usize = 16;
const TIME: usize = 8;

/// Readings of both clocks, of which the closest pair is taken: the thread may be stopped in between.
const CLOCK_ATTEMPTS: u32 = 3;

/// The first packets with DSCP 1 at the interface of a router that leads to the receiver, of at most 1,024 flows over IPv4.
#[derive(Debug)]
pub struct MarkedPackets {
    first: Map<FLOW, TIME>,
    _program: Program,
}

impl MarkedPackets {
    /// Starts to note them. Replaces an earlier record at the same router.
    ///
    /// # Errors
    /// If the lab does not exist, or the kernel rejects the program.
    pub fn record(lab: &RouterLab) -> Result<MarkedPackets, LabError> {
        if OBJECT.is_empty() {
            return Err(LabError::NoSwitchProgram);
        }
        let object = Object::read(OBJECT).map_err(|error| LabError::ebpf("read the program", error))?;
        let Loaded { program, mut maps } = object
            .load(PROGRAM, ProgramKind::Classifier)
            .map_err(|error| LabError::ebpf("load the program", error))?;
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no map {MAP}"));
        let first = maps.remove(MAP).ok_or_else(missing).and_then(Map::try_from);
        let first = first.map_err(|error| LabError::ebpf("open its map", error))?;
        let netlink = Netlink::open_within(&lab.router())?;
        let interface = netlink.interface(LINK_INTERFACE)?;
        netlink.set_egress_program(interface, PLACE, program.as_fd(), "thalweg-lab-marks")?;
        Ok(MarkedPackets { first, _program: program })
    }

    /// Returns when the first marked packet of a flow reached the queue, by the wall clock; `None` if none did.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn first(&self, key: &FlowKey) -> Result<Option<Timestamp>, LabError> {
        let Some(flow) = bytes_of(key) else { return Ok(None) };
        let time = self.first.get(&flow).map_err(|error| LabError::ebpf("read the map", error))?;
        Ok(time.map(|bytes| to_wall_clock(Timestamp(u64::from_ne_bytes(bytes)))))
    }
}

/// Converts a time of the monotonic clock.
fn to_wall_clock(time: Timestamp) -> Timestamp {
    let read = |_| {
        let (before, wall, after) = (monotonic(), realtime(), monotonic());
        (after.0 - before.0, wall.0, before.0.midpoint(after.0))
    };
    let (_, wall, own) = (0..CLOCK_ATTEMPTS).map(read).min().unwrap_or_default();
    Timestamp(wall.saturating_sub(own.saturating_sub(time.0)))
}

/// Returns `struct flow`; `None` for IPv6.
fn bytes_of(key: &FlowKey) -> Option<[u8; FLOW]> {
    let ends = [(key.src(), key.src_port), (key.dst(), key.dst_port)].map(SocketAddr::from);
    let [SocketAddr::V4(source), SocketAddr::V4(destination)] = ends else { return None };
    let mut bytes = [0; FLOW];
    bytes[..4].copy_from_slice(&source.ip().octets());
    bytes[4..8].copy_from_slice(&destination.ip().octets());
    bytes[8..10].copy_from_slice(&source.port().to_be_bytes());
    bytes[10..12].copy_from_slice(&destination.port().to_be_bytes());
    bytes[12..].copy_from_slice(&u32::from(key.protocol.0).to_ne_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_layout_of_the_program() {
        let key = "tcp 10.77.0.3:40000 > 10.77.0.4:5201".parse().unwrap();
        let expected = [10, 77, 0, 3, 10, 77, 0, 4, 0x9c, 0x40, 0x14, 0x51];
        let bytes = bytes_of(&key).unwrap();
        assert_eq!((&bytes[..12], &bytes[12..]), (&expected[..], &6_u32.to_ne_bytes()[..]));
        assert_eq!(bytes_of(&"tcp [fd77::1]:1 > [fd77::2]:2".parse().unwrap()), None);
    }
}
