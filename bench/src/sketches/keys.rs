//! Streams of flow keys for sketches.
//!
//! A stream is a sequence of 13-byte 5-tuples in memory, so that reading keys is its only cost. Flows are drawn by
//! Zipf's law with any exponent (zero is uniform); a share of the packets may be a *random flood*, in which every
//! packet is the only one of its flow. The same options give the same stream on every machine.
//!
//! Other processes read the same stream from a [`KeyFile`].

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::truth::Truth;
use super::zipf::Zipf;

/// Bytes per key.
pub const KEY_BYTES: usize = 13;

/// A 5-tuple: source and destination IPv4 address, ports, protocol.
pub type Key = [u8; KEY_BYTES];

/// Options of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamOptions {
    /// Number of keys.
    pub packets: usize,
    /// Number of flows from which packets outside the flood are drawn; some may not occur.
    pub flows: u64,
    /// Exponent of Zipf's law, zero or more.
    pub exponent: f64,
    /// Share of flood packets, 0 to 1.
    pub flood: f64,
    /// Seed of the order of flows.
    pub seed: u64,
    /// Seed of the flows' keys: streams of one population have the same flows, with the same ranks.
    pub population: u64,
}

impl StreamOptions {
    /// Returns options with Zipf's law, no flood, and seeds of 1.
    pub fn zipf(packets: usize, flows: u64, exponent: f64) -> StreamOptions {
        StreamOptions { packets, flows, exponent, flood: 0.0, seed: 1, population: 1 }
    }

    /// Returns a file name that contains all options.
    pub fn name(&self) -> String {
        let StreamOptions { packets, flows, exponent, flood, seed, population } = self;
        format!("zipf{exponent}-flows{flows}-packets{packets}-flood{flood}-seed{seed}-population{population}")
    }

    fn validate(&self) -> anyhow::Result<()> {
        ensure!(self.flows > 0, "a stream needs at least one flow");
        ensure!(
            self.exponent >= 0.0 && self.exponent.is_finite(),
            "invalid exponent {}: expected 0 or more",
            self.exponent
        );
        ensure!((0.0..=1.0).contains(&self.flood), "invalid flood share {}: expected 0 to 1", self.flood);
        Ok(())
    }
}

/// A stream in memory.
#[derive(Clone, Debug)]
pub struct KeyStream {
    /// Its options.
    pub options: StreamOptions,
    /// One key per packet.
    pub keys: Vec<Key>,
}

impl KeyStream {
    /// Generates a stream; about 60 ns per key.
    ///
    /// # Errors
    /// If an option is out of range.
    pub fn generate(options: StreamOptions) -> anyhow::Result<KeyStream> {
        options.validate()?;
        let zipf = Zipf::new(options.flows, options.exponent);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(options.seed);
        let mut uniform = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut next_new = options.flows;
        let flow = |_| {
            if options.flood > 0.0 && uniform() < options.flood {
                next_new += 1;
                next_new - 1
            } else {
                zipf.draw(&mut uniform) - 1
            }
        };
        let keys = (0..options.packets).map(flow).map(|flow| key_of(options.population, flow)).collect();
        Ok(KeyStream { options, keys })
    }

    /// Returns the exact counts.
    pub fn truth(&self) -> Truth {
        Truth::of(&self.keys)
    }

    /// Writes the stream into `folder`, with its `top` largest flows.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, folder: &Path, truth: &Truth, top: usize) -> anyhow::Result<KeyFile> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let path = folder.join(self.options.name());
        let file = KeyFile { keys: path.with_added_extension("keys"), top: path.with_added_extension("top") };
        let mut lines = String::new();
        for (key, count) in truth.top(top) {
            key.iter().for_each(|byte| write!(lines, "{byte:02x}").expect("a string takes everything"));
            writeln!(lines, " {count}").expect("a string takes everything");
        }
        for (path, bytes) in [(&file.keys, self.keys.as_flattened()), (&file.top, lines.as_bytes())] {
            fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(file)
    }
}

/// A stream on disk, for other programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// The concatenated keys of [`KEY_BYTES`] each, without a header.
    pub keys: PathBuf,
    /// The largest flows, largest first, one per line: the key in hexadecimal, a space, its packets.
    pub top: PathBuf,
}

/// Returns the key of flow `number` (heaviest first) of a population: random bytes, three of four flows TCP, the others
/// UDP. Keys of a population are unique, because the addresses are a permutation of the number.
pub fn key_of(population: u64, number: u64) -> Key {
    let addresses = mix(number ^ mix(population));
    let ports = mix(!addresses);
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&addresses.to_be_bytes());
    key[8..12].copy_from_slice(&ports.to_be_bytes()[..4]);
    key[12] = if ports % 4 < 3 { 6 } else { 17 };
    key
}

/// Permutes 64 bits: a step of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_options_give_the_same_stream() {
        let options = StreamOptions::zipf(1_000, 100, 1.0);
        let keys = |options| KeyStream::generate(options).unwrap().keys;
        assert_eq!(keys(options), keys(options));
        assert_ne!(keys(options), keys(StreamOptions { seed: 2, ..options }));
        let other = KeyStream::generate(StreamOptions { seed: 2, ..options }).unwrap().truth();
        let heaviest = key_of(1, 0);
        assert_eq!(other.top(1)[0].0, heaviest, "another seed, the same population");
    }

    #[test]
    fn every_flood_packet_is_a_new_flow() {
        let options = StreamOptions { flood: 1.0, ..StreamOptions::zipf(5_000, 10, 1.0) };
        assert_eq!(KeyStream::generate(options).unwrap().truth().distinct(), 5_000);
        let half = StreamOptions { flood: 0.5, ..options };
        let truth = KeyStream::generate(half).unwrap().truth();
        // 2,500 new flows with a standard deviation of 35; six standard deviations have probability 2e-9.
        assert!(truth.distinct().abs_diff(2_510) < 6 * 35, "{}", truth.distinct());
    }

    #[test]
    fn key_file_has_all_keys_and_the_largest_flows() {
        let stream = KeyStream::generate(StreamOptions::zipf(300, 20, 1.2)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = stream.save(folder.path(), &stream.truth(), 3).unwrap();
        let bytes = fs::read(&file.keys).unwrap();
        assert_eq!(bytes.as_chunks::<KEY_BYTES>(), (&stream.keys[..], &[][..]));
        let top = fs::read_to_string(&file.top).unwrap();
        let (key, count) = stream.truth().top(1)[0];
        let hexadecimal: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(top.lines().count(), 3);
        assert_eq!(top.lines().next(), Some(&*format!("{hexadecimal} {count}")));
    }

    #[test]
    fn options_out_of_range_are_rejected() {
        let good = StreamOptions::zipf(10, 10, 1.0);
        for bad in [
            StreamOptions { flows: 0, ..good },
            StreamOptions { exponent: -0.5, ..good },
            StreamOptions { exponent: f64::NAN, ..good },
            StreamOptions { flood: 1.5, ..good },
        ] {
            assert!(KeyStream::generate(bad).is_err(), "{bad:?}");
        }
    }
}
