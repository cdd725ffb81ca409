//! The row type of records, and the order of keys.
//!
//! Nearly all records are IPv4; these have a row type of one cache line. Records with any other address take 88 bytes.
//! The two types never share a key. In memory, rows are packed (see `packed`).
//!
//! Keys are ordered by a hash of (source, destination), then by ports and protocol. A prefix of the hash divides any data
//! into partitions of similar size; it covers both addresses, so that a parallel flowset lies within one partition. The first
//! [`SOURCE_BITS`] depend on the source only. A partition, and a row group of the results, thus has few sources, which makes
//! the results smaller and faster to write. For IPv4 the hash is a bijection of the 64 bits of the pair, so pairs never
//! collide, and addresses need not be stored. For IPv6 collisions are possible, and the addresses are compared.

use bytemuck::Pod;
use thalweg_wire::flow_export::Address;

/// Bits of [`Row::key`]: 64 of the hash, two ports, the protocol.
pub(super) const KEY_BITS: u32 = 64 + 40;
/// Bits of the hash that depend on the source only.
pub(super) const SOURCE_BITS: u32 = 11;

/// A record of either type.
pub(super) trait Row: Copy + Send + Sync + 'static {
    /// The stored form of the addresses.
    type Pair: Pod;

    /// Creates a row.
    fn of(pair: Self::Pair, fields: Fields) -> Self;

    /// Returns the stored form of the addresses.
    fn pair(&self) -> &Self::Pair;

    /// Returns the addresses.
    fn addresses(&self) -> (Address, Address);

    /// Returns all other fields.
    fn fields(&self) -> &Fields;

    /// Returns the hash of the two addresses.
    fn pair_hash(&self) -> u64;

    /// Returns the key, in the lower [`KEY_BITS`]. Rows are processed in key order.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.pair_hash()) << 40 | u128::from(self.fields().ports_and_protocol())
    }
}

/// The fields of a record other than the addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) tcp_flags: u16,
    pub(super) protocol: u8,
    /// Number of the observation point.
    pub(super) point: u32,
    /// At least 1.
    pub(super) sampling_interval: u32,
    pub(super) flow_start_us: i64,
    /// Not before `flow_start_us`.
    pub(super) flow_end_us: i64,
    /// As counted, not scaled.
    pub(super) octets: i64,
    /// As counted, not scaled.
    pub(super) packets: i64,
    pub(super) source_as: u32,
    pub(super) destination_as: u32,
}

impl Fields {
    /// Returns the octets, scaled by the sampling interval.
    #[inline]
    pub(super) fn scaled_octets(&self) -> i64 {
        self.octets.saturating_mul(self.sampling_interval.into())
    }

    /// Returns the packets, scaled by the sampling interval.
    #[inline]
    pub(super) fn scaled_packets(&self) -> i64 {
        self.packets.saturating_mul(self.sampling_interval.into())
    }

    /// Returns ports and protocol as one number in the same order.
    #[inline]
    pub(super) fn ports_and_protocol(&self) -> u64 {
        u64::from(self.source_port) << 24 | u64::from(self.destination_port) << 8 | u64::from(self.protocol)
    }
}

/// A record with two IPv4 addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Narrow {
    /// Hash of the addresses, from which they can be recovered.
    pair_hash: u64,
    fields: Fields,
}

const _: () = assert!(size_of::<Narrow>() == 64, "a cache line");

impl Narrow {
    #[inline]
    pub(super) fn new(source: u32, destination: u32, fields: Fields) -> Narrow {
        let source = SOURCE.mix(source.into());
        Narrow {
            pair_hash: join(source, PAIR.mix(source << 32 & PAIR.mask | u64::from(destination))),
            fields,
        }
    }
}

impl Row for Narrow {
    type Pair = u64;

    #[inline]
    fn of(pair_hash: u64, fields: Fields) -> Narrow {
        Narrow { pair_hash, fields }
    }

    #[inline]
    fn pair(&self) -> &u64 {
        &self.pair_hash
    }

    #[inline]
    fn addresses(&self) -> (Address, Address) {
        let rest = PAIR.unmix(self.pair_hash & PAIR.mask);
        let source = self.pair_hash >> PAIR.bits << (PAIR.bits - 32) | rest >> 32;
        (Address::v4(SOURCE.unmix(source) as u32), Address::v4(rest as u32))
    }

    #[inline]
    fn fields(&self) -> &Fields {
        &self.fields
    }

    #[inline]
    fn pair_hash(&self) -> u64 {
        self.pair_hash
    }
}

/// A record with at least one other address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wide {
    /// Upper and lower half of the source, and of the destination.
    pair: [[u64; 2]; 2],
    fields: Fields,
}

impl Wide {
    pub(super) fn new(source: Address, destination: Address, fields: Fields) -> Wide {
        let halves = |address: Address| [(address.0 >> 64) as u64, address.0 as u64];
        Wide { pair: [halves(source), halves(destination)], fields }
    }
}

impl Row for Wide {
    type Pair = [[u64; 2]; 2];

    #[inline]
    fn of(pair: [[u64; 2]; 2], fields: Fields) -> Wide {
        Wide { pair, fields }
    }

    #[inline]
    fn pair(&self) -> &[[u64; 2]; 2] {
        &self.pair
    }

    fn addresses(&self) -> (Address, Address) {
        let whole = |[upper, lower]: [u64; 2]| Address(u128::from(upper) << 64 | u128::from(lower));
        (whole(self.pair[0]), whole(self.pair[1]))
    }

    fn fields(&self) -> &Fields {
        &self.fields
    }

    fn pair_hash(&self) -> u64 {
        let more = |hash: u64, words: [u64; 2]| words.iter().fold(hash, |hash, word| WORD.mix(hash ^ word));
        let [source, destination] = self.pair;
        let source = more(0x9E37_79B9_7F4A_7C15, source);
        join(source >> 32, more(source, destination) & PAIR.mask)
    }
}

/// Combines 32 bits of the source's hash with [`PAIR`]'s hash of both addresses.
#[inline]
fn join(source: u64, pair: u64) -> u64 {
    source >> (32 - SOURCE_BITS) << PAIR.bits | pair
}

/// A bijection in which each output bit depends on all input bits, as the finaliser of MurmurHash3 (Appleby 2011).
struct Mixer {
    bits: u32,
    mask: u64,
    factors: [u64; 2],
    /// Inverses of the factors.
    inverses: [u64; 2],
}

/// For words of IPv6 addresses.
const WORD: Mixer = Mixer::new(64);
/// For sources.
const SOURCE: Mixer = Mixer::new(32);
/// For the rest of the source, and the destination.
const PAIR: Mixer = Mixer::new(64 - SOURCE_BITS);

impl Mixer {
    const fn new(bits: u32) -> Mixer {
        let factors = [0xFF51_AFD7_ED55_8CCD, 0xC4CE_B9FE_1A85_EC53];
        let inverses = [inverse(factors[0]), inverse(factors[1])];
        Mixer { bits, mask: u64::MAX >> (64 - bits), factors, inverses }
    }

    /// Mixes a number of at most `bits` bits.
    #[inline]
    fn mix(&self, mut number: u64) -> u64 {
        for factor in self.factors {
            number = self.fold(number).wrapping_mul(factor) & self.mask;
        }
        self.fold(number)
    }

    /// Reverses [`mix`](Mixer::mix).
    #[inline]
    fn unmix(&self, mut number: u64) -> u64 {
        for inverse in [self.inverses[1], self.inverses[0]] {
            number = self.fold(number).wrapping_mul(inverse) & self.mask;
        }
        self.fold(number)
    }

    /// Is its own inverse, because it shifts by at least half of the bits.
    #[inline]
    fn fold(&self, number: u64) -> u64 {
        number ^ number >> self.bits.div_ceil(2)
    }
}

/// Returns the inverse of an odd number modulo 2^64, by Newton's method. Each step doubles the number of correct bits,
/// which starts at three.
const fn inverse(odd: u64) -> u64 {
    let (mut inverse, mut step) = (odd, 0);
    while step < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_order_by_hash_ports_and_protocol() {
        let fields = Fields { source_port: 1, destination_port: 0xFFFF, protocol: 255, ..Fields::default() };
        let row = Narrow::new(1, 2, fields);
        let next =
            Narrow { fields: Fields { source_port: 2, destination_port: 0, protocol: 0, ..fields }, ..row };
        assert!(row.key() < next.key());
        assert_eq!(row.key() >> 40, next.key() >> 40);
        assert!(row.key() >> KEY_BITS == 0);
    }

    proptest! {
        #[test]
        fn addresses_are_recovered_from_the_mixed_key(source: u32, destination: u32) {
            let row = Narrow::new(source, destination, Fields::default());
            prop_assert_eq!(row.addresses(), (Address::v4(source), Address::v4(destination)));
            let (source, destination) = (Address(u128::from(source) << 64), Address(destination.into()));
            prop_assert_eq!(Wide::new(source, destination, Fields::default()).addresses(), (source, destination));
        }

        #[test]
        fn the_first_bits_depend_on_the_source_only(source: u32, one: u32, other: u32) {
            let hash = |destination| Narrow::new(source, destination, Fields::default()).pair_hash();
            prop_assert_eq!(hash(one) >> (64 - SOURCE_BITS), hash(other) >> (64 - SOURCE_BITS));
            let hash = |destination| {
                let (source, destination) = (Address(source.into()), Address(u128::from(destination) << 90));
                Wide::new(source, destination, Fields::default()).pair_hash()
            };
            prop_assert_eq!(hash(one) >> (64 - SOURCE_BITS), hash(other) >> (64 - SOURCE_BITS));
        }
    }

    /// 4096 over 64: 64 each with standard deviation 8; a deviation of six occurs once in 10^7 runs.
    fn assert_even(places: impl Iterator<Item = u64>) {
        let mut counts = [0; 64];
        places.for_each(|index| counts[index as usize] += 1);
        assert!(counts.iter().all(|&count| (16..112).contains(&count)), "{counts:?}");
    }

    #[test]
    fn neighbouring_addresses_spread_evenly() {
        let narrow = |source: u32, destination: u32| {
            Narrow::new(0x0A00_0000 + source, 0x0A00_0100 + destination, Fields::default()).pair_hash()
        };
        let wide = |source: u32, destination: u32| {
            let address = |host: u32| Address(0x2001_0DB8 << 96 | u128::from(host));
            Wide::new(address(source), address(destination), Fields::default()).pair_hash()
        };
        assert_even((0..4096).map(|source| narrow(source, 0) >> 58));
        assert_even((0..4096).map(|source| wide(source, 0) >> 58));
        let within = 58 - SOURCE_BITS;
        assert_even((0..4096).map(|pair| narrow(pair / 64, pair % 64) >> within & 63));
        assert_even((0..4096).map(|pair| wide(pair / 64, pair % 64) >> within & 63));
    }
}
