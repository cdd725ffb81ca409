//! Reads the sketches of ebpf-sketches: its hash, and its estimates.

use anyhow::Context as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use thalweg_linux::bpf::{Maps, PerCpuMap};

use crate::sketches::keys::Key;

/// Of `nitrosketch.h`.
const ROWS: usize = 4;
const COLUMNS: usize = 1024;
const DRAWS: usize = 4096;
const SEED: u64 = 77;

/// The bytes of its sketch, and of its metadata: two numbers of 32 bits, one of 64, and the draws.
const SKETCH_BYTES: usize = ROWS * COLUMNS * 4;
const METADATA_BYTES: usize = 16 + DRAWS * 4;

/// fasthash64 (Zilong Tan 2012).
fn fasthash64(key: &[u8], seed: u64) -> u64 {
    const M: u64 = 0x8803_55F2_1E6D_1965;
    let mix = |h: u64| {
        let h = (h ^ (h >> 23)).wrapping_mul(0x2127_599B_F432_5C37);
        h ^ (h >> 47)
    };
    let (words, rest) = key.as_chunks::<8>();
    let mut hash = seed ^ (key.len() as u64).wrapping_mul(M);
    for word in words {
        hash = (hash ^ mix(u64::from_le_bytes(*word))).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ mix(u64::from_le_bytes(last))).wrapping_mul(M);
    }
    mix(hash)
}

/// Returns its draws for a probability.
fn draws(probability: f64, seed: u64) -> Vec<u32> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let draw = |_| {
        let uniform = ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let gap =
            if probability < 1.0 { (uniform.ln() / (1.0 - probability).ln()).ceil().max(1.0) } else { 1.0 };
        gap as u32
    };
    (0..DRAWS).map(draw).collect()
}

/// Returns the rate at which its loop updates rows with these draws, by simulation of `packets` packets.
pub(super) fn update_rate(probability: f64, seed: u64, packets: u64) -> f64 {
    let draws = draws(probability, seed);
    let (mut position, mut skip, mut updates) = (0, 0u32, 0u64);
    for _ in 0..packets {
        if skip >= ROWS as u32 {
            skip -= ROWS as u32;
            continue;
        }
        let mut row = skip;
        for _ in 0..ROWS {
            updates += 1;
            position = (position + 1) % DRAWS;
            row += draws[position];
            if row >= ROWS as u32 {
                break;
            }
        }
        skip = draws[position] - 1;
    }
    updates as f64 / (packets * ROWS as u64) as f64
}

/// Clears the sketch, and sets the draws for a probability.
pub(super) fn prepare(maps: &Maps, probability: f64, seed: u64) -> anyhow::Result<()> {
    let mut value = [0; METADATA_BYTES];
    for (bytes, draw) in value[16..].chunks_exact_mut(4).zip(draws(probability, seed)) {
        bytes.copy_from_slice(&draw.to_ne_bytes());
    }
    let open = |name: &str| {
        maps.get(name).with_context(|| format!("no map {name}"))?.try_clone().map_err(Into::into)
    };
    let metadata: anyhow::Result<_> = open("peer_metadata");
    PerCpuMap::<4, METADATA_BYTES>::try_from(metadata?)?.set_all(&[0; 4], &value)?;
    let sketch: anyhow::Result<_> = open("peer_sketch");
    PerCpuMap::<4, SKETCH_BYTES>::try_from(sketch?)?.set_all(&[0; 4], &[0; SKETCH_BYTES])?;
    Ok(())
}

/// The counters of all CPUs.
#[derive(Debug)]
pub(super) struct PeerSketch(Vec<i64>);

impl PeerSketch {
    pub(super) fn read(maps: &Maps) -> anyhow::Result<PeerSketch> {
        let map = maps.get("peer_sketch").context("no map peer_sketch")?.try_clone()?;
        let values = PerCpuMap::<4, SKETCH_BYTES>::try_from(map)?.get(&[0; 4])?.unwrap_or_default();
        let mut sums = vec![0i64; ROWS * COLUMNS];
        for value in &values {
            let (cells, _) = value.as_chunks::<4>();
            sums.iter_mut().zip(cells).for_each(|(sum, cell)| *sum += i64::from(i32::from_ne_bytes(*cell)));
        }
        Ok(PeerSketch(sums))
    }

    /// Estimates a key: the median of its rows, over p.
    pub(super) fn estimate(&self, key: &Key, probability: f64) -> f64 {
        let hash = fasthash64(key, SEED);
        let mut rows: Vec<i64> = (0..ROWS)
            .map(|row| {
                let hash = (hash >> (16 * row)) as u16;
                let cell = self.0[row * COLUMNS + usize::from(hash) % COLUMNS];
                if hash >> 15 == 1 { cell } else { -cell }
            })
            .collect();
        rows.sort_unstable();
        (rows[1] + rows[2]) as f64 / 2.0 / probability
    }
}
