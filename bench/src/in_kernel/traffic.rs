//! The traffic of the benchmark: 5-tuples in a map, which the programs write into the frame one after another.

use anyhow::Context as _;
use thalweg_linux::bpf::{MappedRegion, Maps};

use crate::sketches::keys::{Key, KeyStream, StreamOptions};
use crate::sketches::truth::Truth;

/// The number of 5-tuples; a power of two. They are repeated.
const TUPLES: usize = 1 << 20;

/// The largest flows, whose error is measured.
const TOP: usize = 100;

/// 5-tuples with their counts.
#[derive(Debug)]
pub(super) struct Traffic {
    pub(super) keys: Vec<Key>,
    pub(super) top: Vec<(Key, u64)>,
}

impl Traffic {
    pub(super) fn generate(packets: u64, flows: u64, exponent: f64) -> anyhow::Result<Traffic> {
        let tuples = (packets as usize).next_power_of_two().min(TUPLES);
        let stream = KeyStream::generate(StreamOptions::zipf(tuples, flows, exponent))?;
        let top = Truth::of(&stream.keys).top(TOP);
        Ok(Traffic { keys: stream.keys, top })
    }

    /// Fills the maps of a loaded object file.
    pub(super) fn fill(&self, maps: &Maps) -> anyhow::Result<()> {
        let region = |name: &str| -> anyhow::Result<MappedRegion> {
            let map = maps.get(name).with_context(|| format!("no map {name}"))?;
            Ok(MappedRegion::try_from(map.try_clone()?)?)
        };
        let bytes: Vec<u8> = self.keys.iter().flat_map(|key| [&key[..], &[0; 3]].concat()).collect();
        region("traffic")?.write(0, &bytes);
        let cursor = [0, self.keys.len() as u64 - 1, 0];
        let cursor: Vec<u8> = cursor.iter().flat_map(|word| word.to_ne_bytes()).collect();
        region("cursors")?.write(0, &cursor);
        Ok(())
    }

    /// Returns the mean relative error over the largest flows, and the mean signed one, of estimates after `rounds` passes.
    pub(super) fn errors(&self, rounds: u64, estimate: impl Fn(&Key) -> f64) -> (f64, f64) {
        let relative: Vec<f64> = self
            .top
            .iter()
            .map(|(key, count)| {
                let truth = (count * rounds) as f64;
                (estimate(key) - truth) / truth
            })
            .collect();
        let count = relative.len().max(1) as f64;
        (relative.iter().map(|error| error.abs()).sum::<f64>() / count, relative.iter().sum::<f64>() / count)
    }
}

/// Returns a frame of 64 bytes: Ethernet, IPv4, and the first bytes of a transport header.
pub(super) fn frame() -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 50, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.resize(64, 0);
    frame
}
