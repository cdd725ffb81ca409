//! A record as the analysis holds it, and the order in which keys are worked on.
//!
//! IPv4 has a kind of its own of one cache line, since nearly all records are of it; a record with any other address
//! takes 88 bytes. The kinds never share a key. While rows wait they are packed (see `packed`).
//!
//! Keys are ordered by a hash of (source, destination), then by ports and protocol. A hash, so that the first bits of
//! the order cut any data into parts of like size; of both addresses, so that a parallel flowset lies within one part.
//! Its first [`SOURCE_BITS`] are the source's alone: a part, and a row group of the results, then has few sources, which
//! makes the results smaller and quicker to write. For IPv4 the hash is a bijection of the 64 bits of the pair: two
//! pairs never share one, and the addresses need not be kept beside it. For IPv6 they might, and then the addresses
//! themselves decide.

use bytemuck::Pod;
use thalweg_wire::flow_export::Address;

/// Bits of [`Row::key`]: 64 of the hash, two ports, the protocol.
pub(super) const KEY_BITS: u32 = 64 + 40;
/// Bits of the hash that are those of the source.
pub(super) const SOURCE_BITS: u32 = 11;

/// A record of either kind.
pub(super) trait Row: Copy + Send + Sync + 'static {
    /// The record's addresses, as they are kept.
    type Pair: Pod;

    /// A record of its parts.
    fn of(pair: Self::Pair, told: Told) -> Self;

    /// The record's addresses, as they are kept.
    fn pair(&self) -> &Self::Pair;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
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
    /// Of the packets that were sampled.
    pub(super) octets: i64,
    /// Those that were sampled.
    pub(super) packets: i64,
    pub(super) source_as: u32,
    pub(super) destination_as: u32,
}

impl Told {
    /// Scaled by sampling.
    #[inline]
    pub(super) fn scaled_octets(&self) -> i64 {
        self.octets.saturating_mul(self.sampling_interval.into())
    }

    /// Scaled by sampling.
    #[inline]
    pub(super) fn scaled_packets(&self) -> i64 {
        self.packets.saturating_mul(self.sampling_interval.into())
    }

    /// Ports and protocol as one number that orders as they do.
    #[inline]
    pub(super) fn ports_and_protocol(&self) -> u64 {
        u64::from(self.source_port) << 24 | u64::from(self.destination_port) << 8 | u64::from(self.protocol)
    }
}

/// A record between two IPv4 addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Narrow {
    /// The addresses, as their hash.
    pair_hash: u64,
    told: Told,
}

const _: () = assert!(size_of::<Narrow>() == 64, "a cache line");

impl Narrow {
    #[inline]
    pub(super) fn new(source: u32, destination: u32, told: Told) -> Narrow {
        let source = SOURCE.mix(source.into());
        Narrow { pair_hash: join(source, PAIR.mix(source << 32 & PAIR.mask | u64::from(destination))), told }
    }
}

impl Row for Narrow {
    type Pair = u64;

    #[inline]
    fn of(pair_hash: u64, told: Told) -> Narrow {
        Narrow { pair_hash, told }
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
    fn told(&self) -> &Told {
        &self.told
    }

    #[inline]
    fn pair_hash(&self) -> u64 {
        self.pair_hash
    }
}

/// A record of which an address is not IPv4.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wide {
    /// The source's upper and lower half, and the destination's.
    pair: [[u64; 2]; 2],
    told: Told,
}

impl Wide {
    pub(super) fn new(source: Address, destination: Address, told: Told) -> Wide {
        let halves = |address: Address| [(address.0 >> 64) as u64, address.0 as u64];
        Wide { pair: [halves(source), halves(destination)], told }
    }
}

impl Row for Wide {
    type Pair = [[u64; 2]; 2];

    #[inline]
    fn of(pair: [[u64; 2]; 2], told: Told) -> Wide {
        Wide { pair, told }
    }

    #[inline]
    fn pair(&self) -> &[[u64; 2]; 2] {
        &self.pair
    }

    fn addresses(&self) -> (Address, Address) {
        let whole = |[upper, lower]: [u64; 2]| Address(u128::from(upper) << 64 | u128::from(lower));
        (whole(self.pair[0]), whole(self.pair[1]))
    }

    fn told(&self) -> &Told {
        &self.told
    }

    fn pair_hash(&self) -> u64 {
        let more = |hash: u64, words: [u64; 2]| words.iter().fold(hash, |hash, word| WORD.mix(hash ^ word));
        let [source, destination] = self.pair;
        let source = more(0x9E37_79B9_7F4A_7C15, source);
        join(source >> 32, more(source, destination) & PAIR.mask)
    }
}

/// The hash of a pair, of 32 bits of its source's and [`PAIR`]'s of both.
#[inline]
fn join(source: u64, pair: u64) -> u64 {
    source >> (32 - SOURCE_BITS) << PAIR.bits | pair
}

/// A bijection of some bits after which each bit depends on all, in the way of MurmurHash3's finaliser (Appleby 2011).
struct Mixer {
    bits: u32,
    mask: u64,
    factors: [u64; 2],
    /// What takes the factors back.
    inverses: [u64; 2],
}

/// A word of IPv6 addresses.
const WORD: Mixer = Mixer::new(64);
/// A source.
const SOURCE: Mixer = Mixer::new(32);
/// What is left of the source, and the destination.
const PAIR: Mixer = Mixer::new(64 - SOURCE_BITS);

impl Mixer {
    const fn new(bits: u32) -> Mixer {
        let factors = [0xFF51_AFD7_ED55_8CCD, 0xC4CE_B9FE_1A85_EC53];
        let inverses = [inverse(factors[0]), inverse(factors[1])];
        Mixer { bits, mask: u64::MAX >> (64 - bits), factors, inverses }
    }

    /// Of a number that has no more than these bits.
    #[inline]
    fn mix(&self, mut number: u64) -> u64 {
        for factor in self.factors {
            number = self.fold(number).wrapping_mul(factor) & self.mask;
        }
        self.fold(number)
    }

    /// What [`mix`](Mixer::mix) made the number of.
    #[inline]
    fn unmix(&self, mut number: u64) -> u64 {
        for inverse in [self.inverses[1], self.inverses[0]] {
            number = self.fold(number).wrapping_mul(inverse) & self.mask;
        }
        self.fold(number)
    }

    /// Its own inverse, as it moves by half of the bits at least.
    #[inline]
    fn fold(&self, number: u64) -> u64 {
        number ^ number >> self.bits.div_ceil(2)
    }
}

/// The number whose product with an odd one is 1, modulo 2^64, by Newton's method: each step doubles the bits that are
/// right, of which the number itself has three.
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
    fn keys_order_by_hash_then_ports_then_protocol() {
        let told = Told { source_port: 1, destination_port: 0xFFFF, protocol: 255, ..Told::default() };
        let row = Narrow::new(1, 2, told);
        let next = Narrow { told: Told { source_port: 2, destination_port: 0, protocol: 0, ..told }, ..row };
        assert!(row.key() < next.key());
        assert_eq!(row.key() >> 40, next.key() >> 40);
        assert!(row.key() >> KEY_BITS == 0);
    }

    proptest! {
        #[test]
        fn addresses_come_back_from_their_hash(source: u32, destination: u32) {
            let row = Narrow::new(source, destination, Told::default());
            prop_assert_eq!(row.addresses(), (Address::v4(source), Address::v4(destination)));
            let (source, destination) = (Address(u128::from(source) << 64), Address(destination.into()));
            prop_assert_eq!(Wide::new(source, destination, Told::default()).addresses(), (source, destination));
        }

        #[test]
        fn the_first_bits_are_the_sources_alone(source: u32, one: u32, other: u32) {
            let hash = |destination| Narrow::new(source, destination, Told::default()).pair_hash();
            prop_assert_eq!(hash(one) >> (64 - SOURCE_BITS), hash(other) >> (64 - SOURCE_BITS));
            let hash = |destination| {
                let (source, destination) = (Address(source.into()), Address(u128::from(destination) << 90));
                Wide::new(source, destination, Told::default()).pair_hash()
            };
            prop_assert_eq!(hash(one) >> (64 - SOURCE_BITS), hash(other) >> (64 - SOURCE_BITS));
        }
    }

    /// 4096 over 64: 64 each with a standard deviation of 8; six of them are passed once in 10^7 runs.
    fn assert_even(places: impl Iterator<Item = u64>) {
        let mut counts = [0; 64];
        places.for_each(|place| counts[place as usize] += 1);
        assert!(counts.iter().all(|&count| (16..112).contains(&count)), "{counts:?}");
    }

    #[test]
    fn neighbouring_sources_spread_over_all_parts_and_their_pairs_within() {
        let narrow = |source: u32, destination: u32| {
            Narrow::new(0x0A00_0000 + source, 0x0A00_0100 + destination, Told::default()).pair_hash()
        };
        let wide = |source: u32, destination: u32| {
            let address = |host: u32| Address(0x2001_0DB8 << 96 | u128::from(host));
            Wide::new(address(source), address(destination), Told::default()).pair_hash()
        };
        assert_even((0..4096).map(|source| narrow(source, 0) >> 58));
        assert_even((0..4096).map(|source| wide(source, 0) >> 58));
        let within = 58 - SOURCE_BITS;
        assert_even((0..4096).map(|pair| narrow(pair / 64, pair % 64) >> within & 63));
        assert_even((0..4096).map(|pair| wide(pair / 64, pair % 64) >> within & 63));
    }
}
