//! Equal-cost multipath with a known hash.
//!
//! The hash depends only on the flow and on the router's salt. All packets of a flow follow one path, and the seed
//! determines it. The choice is the hash-threshold of RFC 2992: the range of the hash is divided into one equal region
//! per port. The complete definition, for other implementations:
//!
//! ```text
//! mix(z)         z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;  z = (z ^ z >> 27) * 0x94D049BB133111EB;  z ^ z >> 31
//! salt           mix(seed + (router + 1) * 0x9E3779B97F4A7C15)
//! word           source | destination << 16 | flow << 32
//! hash           the upper 32 bits of mix(word ^ salt)
//! choice of n    floor(hash * n / 2^32)
//! ```
//!
//! Arithmetic is modulo 2^64. `mix` is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast Splittable
//! Pseudorandom Number Generators", OOPSLA 2014; the constants are Stafford's Mix13), and the salts are the outputs of
//! that generator. So routers choose independently. With equal salts a router would receive only flows that its
//! neighbour had already selected by the same hash, and would use only some of its ports (hash polarisation).
//!
//! Each of `n` ports gets a share of the flows within `n / 2^32` of `1 / n`: the multiplication instead of a division
//! has no measurable bias.

use crate::identity::{EndpointId, PortIndex, RouterId};

/// Returns the salt of a router; `seed` is the same for the whole network.
#[inline]
pub const fn salt(seed: u64, router: RouterId) -> u64 {
    mix(seed.wrapping_add((router.0 as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// Packs source, destination and flow into the word to hash.
#[inline]
pub const fn word(source: EndpointId, destination: EndpointId, flow: u32) -> u64 {
    source.0 as u64 | (destination.0 as u64) << 16 | (flow as u64) << 32
}

/// Hashes the [`word`] of a flow at the router with this [`salt`].
#[inline]
pub const fn hash(salt: u64, word: u64) -> u32 {
    (mix(word ^ salt) >> 32) as u32
}

/// Returns the port of `ports` for this hash; `None` if `ports` is empty.
#[inline]
pub fn choose(ports: &[PortIndex], hash: u32) -> Option<PortIndex> {
    ports.get(((u64::from(hash) * ports.len() as u64) >> 32) as usize).copied()
}

/// The finaliser of SplitMix64, a bijection: each bit of the result depends on all bits of `z`.
#[inline]
pub const fn mix(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the value that chi-square with `freedom` degrees exceeds with probability 1e-6 (Wilson and Hilferty
    /// 1931).
    fn critical(freedom: usize) -> f64 {
        let (freedom, z) = (freedom as f64, 4.753_424);
        let spread = 2.0 / (9.0 * freedom);
        freedom * (1.0 - spread + z * spread.sqrt()).powi(3)
    }

    fn chi_square(counts: &[u32]) -> f64 {
        let expected = counts.iter().sum::<u32>() as f64 / counts.len() as f64;
        counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum()
    }

    fn ports(n: u16) -> Vec<PortIndex> {
        (0..n).map(PortIndex).collect()
    }

    /// Flow numbers as in experiments: few bits differ, and regularly.
    fn regular_words() -> Vec<(&'static str, Vec<u64>)> {
        let word = |source, destination, flow| word(EndpointId(source), EndpointId(destination), flow);
        vec![
            ("one pair, many flows", (0..20_000).map(|flow| word(0, 1, flow)).collect()),
            ("every 1024th flow", (0..20_000).map(|flow| word(3, 7, flow << 10)).collect()),
            ("many sources", (0..20_000).map(|source| word(source, 1, 0)).collect()),
            ("many destinations", (0..20_000).map(|destination| word(1, destination, 0)).collect()),
            ("stride 8", (0..20_000).map(|source| word(source, source + 8, u32::from(source))).collect()),
        ]
    }

    #[test]
    fn hashes_match_known_values() {
        // The first outputs of SplitMix64 from seed 0, from its authors' program.
        assert_eq!(salt(0, RouterId(0)), 0xE220_A839_7B1D_CDAF);
        assert_eq!(salt(0, RouterId(1)), 0x6E78_9E6A_A1B9_65F4);
        let word = word(EndpointId(0x1234), EndpointId(0x5678), 0x9ABC_DEF0);
        assert_eq!(word, 0x9ABC_DEF0_5678_1234);
        assert_eq!(hash(0, 0), 0);
        assert_eq!(hash(0, 0x9E37_79B9_7F4A_7C15), 0xE220_A839, "mixes as the salts do");
    }

    /// False alarm: 1e-6 for each of 5 kinds of flows, 6 numbers of ports and 4 routers, 1.2e-4 in total, for a random
    /// function. The flows are fixed, so the test is deterministic.
    #[test]
    fn flows_spread_evenly_over_ports() {
        for (kind, words) in regular_words() {
            for n in [2, 3, 4, 7, 32, 257] {
                for router in [0, 1, 2, 999] {
                    let (salt, ports) = (salt(1, RouterId(router)), ports(n));
                    let mut counts = vec![0; usize::from(n)];
                    for &word in &words {
                        counts[choose(&ports, hash(salt, word)).unwrap().index()] += 1;
                    }
                    let (found, limit) = (chi_square(&counts), critical(usize::from(n) - 1));
                    assert!(found < limit, "{kind}, {n} ports, r{router}: {found:.1} > {limit:.1}");
                }
            }
        }
    }

    /// False alarm: 1e-6 for each of 5 kinds of flows and 3 pairs of routers, as above.
    #[test]
    fn routers_choose_independently() {
        for (kind, words) in regular_words() {
            for (a, b) in [(0, 1), (4, 8), (10, 1000)] {
                let (salt_a, salt_b, ports) = (salt(1, RouterId(a)), salt(1, RouterId(b)), ports(8));
                let mut counts = [0; 64];
                for &word in &words {
                    let choice = |salt| choose(&ports, hash(salt, word)).unwrap().index();
                    counts[choice(salt_a) * 8 + choice(salt_b)] += 1;
                }
                let (found, limit) = (chi_square(&counts), critical(63));
                assert!(found < limit, "{kind}, r{a} and r{b}: {found:.1} > {limit:.1}");
            }
        }
    }

    #[test]
    fn the_hash_range_covers_exactly_all_ports() {
        let three = ports(3);
        assert_eq!(choose(&three, 0), Some(PortIndex(0)));
        assert_eq!(choose(&three, u32::MAX), Some(PortIndex(2)));
        assert_eq!(choose(&three, u32::MAX / 3), Some(PortIndex(0)));
        assert_eq!(choose(&three, u32::MAX / 3 + 1), Some(PortIndex(1)));
        assert_eq!(choose(&three[..1], 12345), Some(PortIndex(0)));
        assert_eq!(choose(&[], 12345), None);
    }
}
