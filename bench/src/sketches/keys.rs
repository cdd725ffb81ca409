//! Streams of flow keys to feed to sketches: which flow each packet is of, and nothing else of the packet.
//!
//! A stream is a sequence of 13-byte 5-tuples in memory, so that a measurement reads keys and pays for nothing
//! else. Flows are drawn by Zipf's law of any exponent (zero is uniform); a share of the packets may be a
//! *random flood*, where every packet is the first and only one of its flow. The same options give the same
//! stream on every machine.
//!
//! Programs in other processes and languages read the same stream from a [`KeyFile`].

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::truth::Truth;
use super::zipf::Zipf;

/// Bytes of a key.
pub const KEY_BYTES: usize = 13;

/// A 5-tuple as a sketch sees it: source and destination address (IPv4), their ports, the protocol.
pub type Key = [u8; KEY_BYTES];

/// What a stream is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamOptions {
    /// Keys of the stream.
    pub packets: usize,
    /// Flows that packets outside of the flood are drawn from; not all need be drawn.
    pub flows: u64,
    /// Exponent of Zipf's law, zero or more.
    pub exponent: f64,
    /// Share of the packets that are each the only one of their flow, 0 to 1.
    pub flood: f64,
    /// Decides which flow comes when.
    pub seed: u64,
    /// Decides the keys of flows: streams of one population have the same flows, the heavy ones too.
    pub population: u64,
}

impl StreamOptions {
    /// Zipf's law, no flood, seeds of one.
    pub fn zipf(packets: usize, flows: u64, exponent: f64) -> StreamOptions {
        StreamOptions { packets, flows, exponent, flood: 0.0, seed: 1, population: 1 }
    }

    /// A name that says it all, for files.
    pub fn name(&self) -> String {
        let StreamOptions { packets, flows, exponent, flood, seed, population } = self;
        format!("zipf{exponent}-flows{flows}-packets{packets}-flood{flood}-seed{seed}-population{population}")
    }

    fn validate(&self) -> anyhow::Result<()> {
        ensure!(self.flows > 0, "a stream needs at least one flow");
        ensure!(
            self.exponent >= 0.0 && self.exponent.is_finite(),
            "exponent {} is not zero or more",
            self.exponent
        );
        ensure!((0.0..=1.0).contains(&self.flood), "flood {} is no share of 0 to 1", self.flood);
        Ok(())
    }
}

/// A stream in memory.
#[derive(Clone, Debug)]
pub struct KeyStream {
    /// What it was made of.
    pub options: StreamOptions,
    /// One for each packet.
    pub keys: Vec<Key>,
}

impl KeyStream {
    /// Draws a stream; about 60 ns a key.
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

    /// Exact counts.
    pub fn truth(&self) -> Truth {
        Truth::of(&self.keys)
    }

    /// Writes the stream into `folder`, with its `top` largest flows.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, folder: &Path, truth: &Truth, top: usize) -> anyhow::Result<KeyFile> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
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

/// A stream on disk, for programs that are not this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// The keys end to end, [`KEY_BYTES`] each, without a header.
    pub keys: PathBuf,
    /// The largest flows, largest first, one a line: the key in hexadecimal, a space, its packets.
    pub top: PathBuf,
}

/// The key of flow `number` (heaviest first) of a population: random bytes, three of four flows TCP, the others
/// UDP. No two flows of a population share a key, since the addresses alone are a permutation of the number.
pub fn key_of(population: u64, number: u64) -> Key {
    let addresses = mix(number ^ mix(population));
    let ports = mix(!addresses);
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&addresses.to_be_bytes());
    key[8..12].copy_from_slice(&ports.to_be_bytes()[..4]);
    key[12] = if ports % 4 < 3 { 6 } else { 17 };
    key
}

/// A permutation of 64 bits without a visible pattern: a step of SplitMix64 (Steele, Lea and Flood 2014).
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
    fn the_same_options_give_the_same_stream() {
        let options = StreamOptions::zipf(1_000, 100, 1.0);
        let keys = |options| KeyStream::generate(options).unwrap().keys;
        assert_eq!(keys(options), keys(options));
        assert_ne!(keys(options), keys(StreamOptions { seed: 2, ..options }));
        let other = KeyStream::generate(StreamOptions { seed: 2, ..options }).unwrap().truth();
        let heaviest = key_of(1, 0);
        assert_eq!(other.top(1)[0].0, heaviest, "another seed, the same population");
    }

    #[test]
    fn every_packet_of_a_flood_is_a_flow_of_its_own() {
        let options = StreamOptions { flood: 1.0, ..StreamOptions::zipf(5_000, 10, 1.0) };
        assert_eq!(KeyStream::generate(options).unwrap().truth().distinct(), 5_000);
        let half = StreamOptions { flood: 0.5, ..options };
        let truth = KeyStream::generate(half).unwrap().truth();
        // 2,500 new flows but for a standard deviation of 35; six of them by chance with probability 2e-9.
        assert!(truth.distinct().abs_diff(2_510) < 6 * 35, "{}", truth.distinct());
    }

    #[test]
    fn a_file_has_the_keys_end_to_end_and_the_largest_flows() {
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
    fn options_out_of_range_are_refused() {
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
