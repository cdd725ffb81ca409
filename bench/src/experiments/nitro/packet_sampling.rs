//! Comparison with packet sampling: the same number of packets, in an exact table instead of a sketch.

use std::path::Path;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;
use thalweg_sketch::{CountSketch, Hasher, Key as _, Probability, RowSketch, Shape, TopK, WithTopK};

use super::samples::{Case, Samples};
use super::{CANDIDATES, Feed, Found, HEAVY, ROWS, Sampling, TOP, WIDTH, keys_of, percent, zipf};
use crate::experiments::Outcome;
use crate::results::{Page, Table, grouped, save};
use crate::row;
use crate::sketches::keys::{Key, KeyStream, StreamOptions};
use crate::sketches::truth::{KeyMap, Truth, mean_relative_error};

/// Values of k for p = 2^-k.
const LOG2_ONE_IN: [u8; 6] = [0, 2, 4, 6, 8, 10];
/// Bytes per flow of a hash map: a 13-byte key and an 8-byte count in 24 bytes, and one control byte, at a load of at
/// most 7/8.
const ENTRY_BYTES: u64 = 29;
const STEADY: &str = "steady";
const METHODS: [&str; 3] =
    ["Nitro Count Sketch", "sampled packets, any memory", "sampled packets, equal memory"];

/// Runs the experiment.
pub(in crate::experiments) fn run(
    packets: u64,
    seeds: u64,
    command: &str,
    plot: &Path,
) -> anyhow::Result<Outcome> {
    let mut samples = Samples::over("p");
    let streams = [
        (STEADY, zipf(packets, 1.0, 0.0)?.keys),
        ("turning", turning(packets)?),
        ("flooded", flooded(packets)?),
    ];
    let mut heavy_flows = Vec::new();
    for (stream, keys) in &streams {
        let queries = Queries::about(keys);
        heavy_flows.push(queries.heavy.len());
        for probability in LOG2_ONE_IN.into_iter().filter_map(Probability::new) {
            let place = probability.to_string();
            for seed in 1..=seeds {
                let scores = [
                    nitro(&queries, probability, seed)?,
                    sampled(&queries, probability, usize::MAX, seed),
                    sampled(&queries, probability, entries_in_equal_memory()?, seed),
                ];
                for (method, score) in METHODS.into_iter().zip(&scores) {
                    samples.add(Case { stream, place: &place, method, seed }, score);
                }
            }
        }
    }
    let mut page = Page::new("Sketches against packet sampling", command);
    explain(&mut page, packets, seeds, &heavy_flows)?;
    page.section("Work").table(&work());
    let places: Vec<String> =
        LOG2_ONE_IN.into_iter().filter_map(Probability::new).map(|p| p.to_string()).collect();
    for (measure, heading) in MEASURES {
        for (stream, _) in &streams {
            let show = |value: f64| match measure {
                "KiB" => format!("{value:.0}"),
                _ => percent(value),
            };
            let table = samples.pivot(stream, measure, &places, &METHODS, show);
            page.section(&format!("{heading}, {stream}")).table(&table);
        }
    }
    draw(plot, &samples, &places)?;
    Ok(Outcome { page, table: samples.table() })
}

const MEASURES: [(&str, &str); 5] = [
    ("error of the top 100", "Error of the 100 largest flows"),
    ("recall", "Recall of flows above 0.05 %"),
    ("precision", "Precision of flows above 0.05 %"),
    ("processed", "Packets processed"),
    ("KiB", "Memory, KiB"),
];

/// Generates a stream in which new flows replace all flows halfway: they start when tables are full.
fn turning(packets: u64) -> anyhow::Result<Vec<Key>> {
    let half = |population| {
        let flows = (packets / 10).max(1_000);
        let options = StreamOptions::zipf(packets as usize / 2, flows, 1.0);
        KeyStream::generate(StreamOptions { population, seed: population, ..options })
    };
    Ok([half(1)?.keys, half(2)?.keys].concat())
}

/// Generates a stream that starts with a flood of random flows, a quarter of all packets.
fn flooded(packets: u64) -> anyhow::Result<Vec<Key>> {
    let flood = zipf(packets / 4, 1.0, 1.0)?.keys;
    Ok([flood, zipf(packets - packets / 4, 1.0, 0.0)?.keys].concat())
}

/// A stream and its exact answers.
struct Queries<'a> {
    keys: &'a [Key],
    top: Vec<(Key, u64)>,
    heavy: Vec<Key>,
}

impl Queries<'_> {
    fn about(keys: &[Key]) -> Queries<'_> {
        let truth = Truth::of(keys);
        Queries { keys, top: truth.top(TOP), heavy: keys_of(&truth.above(HEAVY)) }
    }

    fn score(
        &self,
        estimate: impl Fn(&Key) -> f64,
        named: impl Iterator<Item = (Key, f64)>,
        processed: f64,
        bytes: u64,
    ) -> Score {
        let threshold = HEAVY * self.keys.len() as f64;
        let reported: Vec<Key> = named.filter(|(_, value)| *value > threshold).map(|(key, _)| key).collect();
        let Found { recall, precision } = Found::of(&reported, &self.heavy);
        [
            ("error of the top 100", mean_relative_error(&self.top, estimate)),
            ("recall", recall),
            ("precision", precision),
            ("processed", processed),
            ("KiB", bytes as f64 / 1024.0),
        ]
    }
}

type Score = [(&'static str, f64); 5];

fn shape() -> anyhow::Result<Shape> {
    Ok(Shape::new(ROWS, WIDTH)?)
}

/// Returns the memory of the sketch with its candidates.
fn sketch_bytes() -> anyhow::Result<u64> {
    Ok(shape()?.bytes(size_of::<i32>()) + TopK::<Key>::bytes_for(CANDIDATES))
}

fn entries_in_equal_memory() -> anyhow::Result<usize> {
    Ok((sketch_bytes()? / ENTRY_BYTES) as usize)
}

/// Returns the share of packets that Nitro processes: those with a sampled row.
fn processed_share(probability: Probability) -> f64 {
    1.0 - (1.0 - probability.get()).powi(ROWS as i32)
}

fn nitro(queries: &Queries<'_>, probability: Probability, seed: u64) -> anyhow::Result<Score> {
    let sketch = WithTopK::new(CountSketch::<i32>::new(shape()?, Hasher::new(seed)), CANDIDATES);
    let mut feed = Feed::new(sketch, Sampling::Fixed(probability), WIDTH, seed);
    feed.take(queries.keys);
    let with_top = feed.sketch();
    let noise = with_top.sketch.noise();
    let hasher = RowSketch::hasher(&with_top.sketch);
    let estimate = |key: &Key| with_top.sketch.estimate(hasher.digest(key.as_bytes()), &noise).value;
    let largest = with_top.largest().into_iter().map(|(key, estimate)| (key, estimate.value));
    Ok(queries.score(estimate, largest, processed_share(probability), sketch_bytes()?))
}

/// Each packet is counted with the probability that Nitro looks at it, in a table of up to `capacity` flows that
/// takes no new one when it is full.
fn sampled(queries: &Queries<'_>, probability: Probability, capacity: usize, seed: u64) -> Score {
    let share = processed_share(probability);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut table: KeyMap<u64> = KeyMap::default();
    let mut processed = 0u64;
    for key in queries.keys {
        let uniform = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        if uniform >= share {
            continue;
        }
        processed += 1;
        if table.len() < capacity {
            *table.entry(*key).or_default() += 1;
        } else if let Some(count) = table.get_mut(key) {
            *count += 1;
        }
    }
    let scaled = |count: u64| count as f64 / share;
    let estimate = |key: &Key| scaled(table.get(key).copied().unwrap_or(0));
    let named = table.iter().map(|(key, count)| (*key, scaled(*count)));
    let processed = processed as f64 / queries.keys.len() as f64;
    queries.score(estimate, named, processed, table.len() as u64 * ENTRY_BYTES)
}

fn explain(page: &mut Page, packets: u64, seeds: u64, heavy: &[usize]) -> anyhow::Result<()> {
    page.paragraph(format_args!(
                "{} packets by Zipf's law with exponent 1 over up to {} flows, in three variants: *steady*; *turning*, where all \
                 flows are replaced halfway; *flooded*, where the first quarter is random flows of one packet each. {}, {} \
                 and {} flows are above 0.05 %. Nitro processes a packet if a row is sampled, 1 - (1-p)^{ROWS} of all; packet \
                 sampling stores as many random packets in an exact table, and scales up. The sketch has {} counters and \
                 {CANDIDATES} candidates, {} KiB; a table of equal memory holds {} flows and rejects further ones. Medians over \
                 {seeds} seeds.",
        grouped(packets),
        grouped((packets / 10).max(1_000)),
        heavy[0],
        heavy[1],
        heavy[2],
        shape()?,
        sketch_bytes()? / 1024,
        grouped(entries_in_equal_memory()? as u64),
    ));
    Ok(())
}

/// Returns the number of packets and updates for each row probability.
fn work() -> Table {
    let mut table = Table::new(["p", "packets processed", "one in", "counters updated per packet"]);
    for probability in LOG2_ONE_IN.into_iter().filter_map(Probability::new) {
        let share = processed_share(probability);
        row!(
            table,
            probability,
            percent(share),
            format!("{:.1}", 1.0 / share),
            format!("{:.4}", ROWS as f64 * probability.get())
        );
    }
    table
}

fn draw(path: &Path, samples: &Samples, places: &[String]) -> anyhow::Result<()> {
    let lines = |stream: &str, measure: &str| samples.lines(stream, measure, places, &METHODS);
    let panel = |title: String, scale: Scale, lines: Vec<Vec<f64>>| {
        Panel::over_names(title, "probability that a row is counted", places, scale, &lines)
    };
    let error = |stream: &str| {
        let title = format!("Error of the 100 largest flows, {stream} (mean relative error)");
        panel(title, Scale::LOGARITHMIC.in_percent(), lines(stream, MEASURES[0].0))
    };
    let memory = panel("Memory, steady (KiB)".to_owned(), Scale::LOGARITHMIC, lines(STEADY, "KiB"));
    let panels = [error(STEADY), error("turning"), error("flooded"), memory];
    save(
        path,
        &figure::draw(&Heading::new("Against packet sampling", ""), &Legend::of(&METHODS), SEVERAL, &panels)?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_all_packets_is_exact_until_it_is_full() {
        let keys = flooded(40_000).unwrap();
        let queries = Queries::about(&keys);
        let exact = sampled(&queries, Probability::ONE, usize::MAX, 1);
        assert_eq!(exact.map(|(_, value)| value)[..4], [0.0, 1.0, 1.0, 1.0]);
        // 10,000 flows of the flood come first.
        let full = sampled(&queries, Probability::ONE, 5_000, 1);
        assert_eq!(full.map(|(_, value)| value)[..2], [1.0, 0.0]);
    }
}
