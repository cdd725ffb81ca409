//! A record as the analysis holds it, and the order in which keys are worked on.
//!
//! Rows are plain bytes, so that they can be spilled as they are. IPv4 has a kind of its own of one cache line, since
//! nearly all records are of it; a record with any other address takes 88 bytes. The kinds never share a key.
//!
//! Keys are ordered by a hash of (source, destination), then by ports and protocol. A hash, so that the first bits of
//! the order cut any data into parts of like size; of both addresses, so that a parallel flowset lies within one part.
//! For IPv4 the hash is a bijection of the 64 bits of the pair: two pairs never share one. For IPv6 they might, and
//! then the addresses themselves decide.

use bytemuck::{Pod, Zeroable};
use thalweg_wire::flow_export::Address;

/// Bits of [`Row::key`]: 64 of the hash, two ports, the protocol.
pub(super) const KEY_BITS: u32 = 64 + 40;

/// A record of either kind.
pub(super) trait Row: Copy + Pod + Send + Sync {
    /// The record's addresses.
    fn addresses(&self) -> (Address, Address);

    /// All but the addresses.
    fn told(&self) -> &Told;

    /// The hash of the two addresses.
    fn pair_hash(&self) -> u64;

    /// Where the record's key comes in the order of all keys, in the lower [`KEY_BITS`].
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.pair_hash()) << 40 | u128::from(self.told().ports_and_protocol())
    }
}

/// What a record tells besides its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable, Pod)]
#[repr(C)]
pub(super) struct Told {
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) tcp_flags: u16,
    pub(super) protocol: u8,
    pub(super) unused: u8,
    /// Number of the observation point.
    pub(super) point: u32,
    /// At least 1.
    pub(super) sampling_interval: u32,
    pub(super) flow_start_us: i64,
    /// Not before `flow_start_us`.
    pub(super) flow_end_us: i64,
    /// Scaled by sampling.
    pub(super) octets: i64,
    /// Scaled by sampling.
    pub(super) packets: i64,
    pub(super) source_as: u32,
    pub(super) destination_as: u32,
}

impl Told {
    /// Ports and protocol as one number that orders as they do.
    #[inline]
    pub(super) fn ports_and_protocol(&self) -> u64 {
        u64::from(self.source_port) << 24 | u64::from(self.destination_port) << 8 | u64::from(self.protocol)
    }
}

/// A record between two IPv4 addresses.
#[derive(Clone, Copy, Debug, Zeroable, Pod)]
#[repr(C)]
pub(super) struct Narrow {
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) told: Told,
}

const _: () = assert!(size_of::<Narrow>() == 64, "a cache line");

impl Row for Narrow {
    #[inline]
    fn addresses(&self) -> (Address, Address) {
        (Address::v4(self.source), Address::v4(self.destination))
    }

    #[inline]
    fn told(&self) -> &Told {
        &self.told
    }

    #[inline]
    fn pair_hash(&self) -> u64 {
        mix(u64::from(self.source) << 32 | u64::from(self.destination))
    }
}

/// A record of which an address is not IPv4.
#[derive(Clone, Copy, Debug, Zeroable, Pod)]
#[repr(C)]
pub(super) struct Wide {
    /// Upper and lower half.
    pub(super) source: [u64; 2],
    /// Upper and lower half.
    pub(super) destination: [u64; 2],
    pub(super) told: Told,
}

/// An address in two halves.
pub(super) fn halves(address: Address) -> [u64; 2] {
    [(address.0 >> 64) as u64, address.0 as u64]
}

impl Row for Wide {
    fn addresses(&self) -> (Address, Address) {
        let whole = |[upper, lower]: [u64; 2]| Address(u128::from(upper) << 64 | u128::from(lower));
        (whole(self.source), whole(self.destination))
    }

    fn told(&self) -> &Told {
        &self.told
    }

    fn pair_hash(&self) -> u64 {
        let words = [self.source, self.destination];
        words.as_flattened().iter().fold(0x9E37_79B9_7F4A_7C15, |hash, word| mix(hash ^ word))
    }
}

/// A bijection of 64 bits after which each bit depends on all (the finaliser of MurmurHash3, Appleby 2011).
#[inline]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    bits = (bits ^ bits >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    bits ^ bits >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_by_hash_then_ports_then_protocol() {
        let told = Told { source_port: 1, destination_port: 0xFFFF, protocol: 255, ..Told::zeroed() };
        let row = Narrow { source: 1, destination: 2, told };
        let next = Narrow { told: Told { source_port: 2, destination_port: 0, protocol: 0, ..told }, ..row };
        assert!(row.key() < next.key());
        assert_eq!(row.key() >> 40, next.key() >> 40);
        assert!(row.key() >> KEY_BITS == 0);
    }

    #[test]
    fn pairs_of_neighbouring_addresses_spread_over_all_parts() {
        let mut parts = [0; 64];
        for (source, destination) in (0..64).flat_map(|s| (0..64).map(move |d| (s, d))) {
            let row = Narrow {
                source: 0x0A00_0000 + source,
                destination: 0x0A00_0100 + destination,
                told: Told::zeroed(),
            };
            parts[(row.pair_hash() >> 58) as usize] += 1;
        }
        // 4096 pairs in 64 parts: 64 each with a standard deviation of 8; six of them are passed once in 10^7 runs.
        assert!(parts.iter().all(|&pairs| (16..112).contains(&pairs)), "{parts:?}");
    }
}
