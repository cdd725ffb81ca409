//! Assigns ports to later fragments.
//!
//! Only the first fragment of an IP datagram has ports. The ports are remembered for a while, and later fragments get
//! them and count for the flow of the first. Otherwise they count for the flow of their addresses and protocol with
//! ports zero, as they do when they overtake the first. So every fragment is counted once.
//!
//! A fixed number of datagrams is remembered, one per slot; a newer datagram with the same slot replaces it.

use thalweg_wire::{Fragment, HashSeed, IpVersion, Nanos, Packet};

/// The number of datagrams remembered: more than a link has in flight, in 400 kB.
const SLOTS: usize = 8192;

/// How long ports are remembered. An identification can be reused after the maximum lifetime of a datagram; 30 s is
/// how long Linux waits for fragments (`net.ipv4.ipfrag_time`).
const LIFETIME: Nanos = Nanos::from_secs(30);

/// The ports of recently fragmented datagrams.
#[derive(Debug)]
pub struct Fragments {
    datagrams: Vec<Option<Datagram>>,
    seed: HashSeed,
}

#[derive(Clone, Copy, Debug)]
struct Datagram {
    first: Packet,
    identification: u32,
}

impl Fragments {
    /// Creates an empty memory.
    pub fn new(seed: HashSeed) -> Self {
        Fragments { datagrams: vec![None; SLOTS], seed }
    }

    /// Remembers a first fragment's ports and assigns them to later ones. Returns whether `packet` is a later
    /// fragment without known ports.
    #[inline]
    pub fn resolve(&mut self, packet: &mut Packet) -> bool {
        match packet.fragment {
            Fragment::Whole => false,
            Fragment::First { identification } => {
                let slot = self.slot(packet, identification);
                self.datagrams[slot] = Some(Datagram { first: *packet, identification });
                false
            }
            Fragment::Later { identification } => {
                let slot = self.slot(packet, identification);
                match self.datagrams[slot].filter(|datagram| datagram.has(packet, identification)) {
                    Some(Datagram { first, .. }) => {
                        packet.key = first.key;
                        false
                    }
                    None => true,
                }
            }
        }
    }

    /// Hashes addresses, protocol and identification; not ports, which later fragments lack.
    fn slot(&self, packet: &Packet, identification: u32) -> usize {
        let (src, dst) = packet.key.address_words();
        let protocol = u64::from(packet.key.protocol.0);
        let addresses = match packet.key.version() {
            IpVersion::V4 => src[1] << 32 | dst[1],
            IpVersion::V6 => {
                self.seed.hash_words(src[0] ^ dst[0].rotate_left(17), src[1] ^ dst[1].rotate_left(31))
            }
        };
        self.seed.hash_words(addresses, u64::from(identification) | protocol << 32) as usize % SLOTS
    }
}

impl Datagram {
    fn has(&self, packet: &Packet, identification: u32) -> bool {
        let apart = (packet.time - self.first.time).0.max((self.first.time - packet.time).0);
        self.identification == identification
            && self.first.key.with_ports(0, 0) == packet.key.with_ports(0, 0)
            && Nanos(apart) <= LIFETIME
    }
}

#[cfg(test)]
mod tests {
    use thalweg_wire::{FlowKey, PacketNotes, Protocol, TcpFlags, Timestamp};

    use super::*;

    fn packet(ports: (u16, u16), fragment: Fragment) -> Packet {
        Packet {
            time: Timestamp::new(100, 0),
            key: FlowKey::v4(0x0A00_0001, 0x0A00_0002, ports.0, ports.1, Protocol::UDP),
            ip_length: 1500,
            payload_length: 1480,
            identification: 0,
            tcp_sequence: 0,
            ethernet: Default::default(),
            tcp_flags: TcpFlags::default(),
            fragment,
            notes: PacketNotes::default(),
        }
    }

    #[test]
    fn later_fragments_get_the_ports_of_their_datagram() {
        let mut fragments = Fragments::new(HashSeed::new(1));
        let mut first = packet((7, 8), Fragment::First { identification: 3 });
        let mut later = packet((0, 0), Fragment::Later { identification: 3 });
        let mut other = packet((0, 0), Fragment::Later { identification: 4 });
        assert!(fragments.resolve(&mut later), "overtakes the first");
        assert!(!fragments.resolve(&mut first));
        assert!(!fragments.resolve(&mut later));
        assert_eq!(later.key, first.key);
        assert!(fragments.resolve(&mut other));
        assert_eq!((other.key.src_port, other.key.dst_port), (0, 0));
    }

    #[test]
    fn remembered_ports_expire_after_their_lifetime() {
        let mut fragments = Fragments::new(HashSeed::new(1));
        let mut first = packet((7, 8), Fragment::First { identification: 3 });
        fragments.resolve(&mut first);
        let mut later = packet((0, 0), Fragment::Later { identification: 3 });
        later.time = first.time + LIFETIME + Nanos(1);
        assert!(fragments.resolve(&mut later));
    }
}
