//! Error by memory: heavy hitters, change, distinct flows and entropy.

use std::collections::BTreeSet;
use std::path::Path;

use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;
use thalweg_sketch::{
    Change, CountSketch, Hasher, HyperLogLog, KAry, Key as _, RowSketch, Shape, TopK, UnivMon, UnivMonShape,
    WithTopK,
};

use super::samples::{Case, Samples};
use super::{CANDIDATES, Feed, Found, HEAVY, ROWS, Sampling, TOP, describe, keys_of, percent, zipf};
use crate::experiments::Outcome;
use crate::results::{Page, Table, save};
use crate::sketches::contender::{LEVELS, Summary};
use crate::sketches::keys::{Key, key_of};
use crate::sketches::textbook::{self, Sketch as _};
use crate::sketches::truth::{KeyMap, Truth, mean_relative_error};

const MODES: [Sampling; 3] = [Sampling::VANILLA, Sampling::LineRate(40), Sampling::Correct];
/// Memory in KiB.
const MEMORY_KIB: [u64; 7] = [64, 128, 256, 512, 1_024, 2_048, 4_096];
/// Ranks of the flows that end between the two windows, each replaced by a new one.
const PLANTED: std::ops::Range<u64> = 20..120;
/// Bytes per flow of the textbook's heap: an entry of the heap (24 bytes) and one of a hash map (25 bytes at a load of
/// at most 7/8).
const TEXTBOOK_TOP_BYTES: u64 = 53;
const TEXTBOOK: &str = "textbook";
const DISTINCT: &str = "HyperLogLog";
const STREAM: &str = "Zipf 1.0";

/// Measures in the order of the page, with their titles.
const MEASURES: [(&str, &str); 9] = [
    ("heavy, top 100", "Error of the 100 largest flows"),
    ("heavy, above", "Error of flows above 0.05 %"),
    ("heavy, recall", "Recall of flows above 0.05 %"),
    ("heavy, precision", "Precision of flows above 0.05 %"),
    ("change, error", "Error of changes above 0.05 % of a window"),
    ("change, recall", "Recall of changes above 0.05 % of a window"),
    ("change, precision", "Precision of changes above 0.05 % of a window"),
    ("distinct", "Error of the number of flows"),
    ("entropy", "Error of the entropy of flows"),
];

/// The stream and its exact answers.
struct Queries<'a> {
    keys: &'a [Key],
    /// The same with planted changes in its second half.
    changing: Vec<Key>,
    truth: Truth,
    top: Vec<(Key, u64)>,
    heavy: Vec<(Key, u64)>,
    changes: KeyMap<f64>,
}

/// Runs the experiment with `seeds` seeds of hash and draws; the textbook has no seed and runs once.
pub(in crate::experiments) fn run(
    packets: u64,
    seeds: u64,
    command: &str,
    plot: &Path,
) -> anyhow::Result<Outcome> {
    let stream = zipf(packets, 1.0, 0.0)?;
    let queries = Queries::about(&stream.keys);
    let mut samples = Samples::over("KiB");
    for kib in MEMORY_KIB {
        let (memory, place) = (kib * 1024, kib.to_string());
        eprintln!("{kib} KiB");
        let mut add = |method: &str, seed, measured: &[(&'static str, f64)]| {
            samples.add(Case { stream: STREAM, place: &place, method, seed }, measured);
        };
        add(TEXTBOOK, 1, &textbook_heavy(memory, &queries));
        add(TEXTBOOK, 1, &textbook_univmon(memory, &queries));
        for seed in 1..=seeds {
            for sampling in MODES {
                let method = sampling.name();
                add(&method, seed, &heavy(memory, sampling, seed, &queries)?);
                add(&method, seed, &change(memory, sampling, seed, &queries)?);
                add(&method, seed, &univmon(memory, sampling, seed, &queries)?);
            }
            add(DISTINCT, seed, &[("distinct", distinct(memory, seed, &queries)?)]);
        }
    }
    let mut page = Page::new("Error against memory", command);
    page.paragraph(format_args!(
        "{}: {} of them above 0.05 % of the packets. For changes, half of the {} flows of ranks {} to {} end at half \
         of the stream, and a new one of the same size begins for each: {} changes above 0.05 % of a window. \
         Medians over {seeds} seeds of hash and draws. Memory is that of counters and candidates together; rows of \
         ours have the greatest power of two of counters that fits, those of the textbook fill it. Recall and \
         precision are of the flows whose estimate is above the threshold.",
        describe(&stream, &queries.truth),
        queries.heavy.len(),
        PLANTED.end - PLANTED.start,
        PLANTED.start,
        PLANTED.end - 1,
        queries.changes.len(),
    ));
    let places = MEMORY_KIB.map(|kib| kib.to_string());
    let methods = methods();
    for (measure, heading) in MEASURES {
        page.section(heading).table(&samples.pivot(STREAM, measure, &places, &methods, percent));
    }
    page.section("Shapes").table(&shapes()?);
    draw(plot, &samples, &places, &methods)?;
    Ok(Outcome { page, table: samples.table() })
}

fn methods() -> Vec<String> {
    [TEXTBOOK.to_owned()].into_iter().chain(MODES.map(Sampling::name)).chain([DISTINCT.to_owned()]).collect()
}

impl Queries<'_> {
    fn about(keys: &[Key]) -> Queries<'_> {
        let truth = Truth::of(keys);
        let (top, heavy) = (truth.top(TOP), truth.above(HEAVY));
        let changing = with_changes(keys);
        let (before, now) = changing.split_at(changing.len() / 2);
        let changes = changes(before, now);
        Queries { keys, changing, truth, top, heavy, changes }
    }

    fn half(&self) -> usize {
        self.changing.len() / 2
    }

    /// Returns the threshold of a heavy change.
    fn change_threshold(&self) -> f64 {
        HEAVY * self.half() as f64
    }
}

/// Returns the stream with every other flow of [`PLANTED`] replaced by a new one in its second half.
fn with_changes(keys: &[Key]) -> Vec<Key> {
    let begins_anew = |rank: u64| (key_of(1, rank), key_of(2, rank));
    let replaced: KeyMap<Key> = PLANTED.step_by(2).map(begins_anew).collect();
    let half = keys.len() / 2;
    let second = keys[half..].iter().map(|key| *replaced.get(key).unwrap_or(key));
    keys[..half].iter().copied().chain(second).collect()
}

/// Returns all changes.
fn changes(before: &[Key], now: &[Key]) -> KeyMap<f64> {
    let mut changes: KeyMap<f64> = KeyMap::default();
    for (keys, sign) in [(before, -1.0), (now, 1.0)] {
        keys.iter().for_each(|key| *changes.entry(*key).or_default() += sign);
    }
    let threshold = HEAVY * before.len() as f64;
    changes.retain(|_, change| change.abs() > threshold);
    changes
}

type Measured<const N: usize> = [(&'static str, f64); N];

/// Measures a Count Sketch with candidates in this much memory.
fn heavy(memory: u64, sampling: Sampling, seed: u64, queries: &Queries<'_>) -> anyhow::Result<Measured<4>> {
    let shape = heavy_shape(memory)?;
    let sketch = WithTopK::new(CountSketch::<i32>::new(shape, Hasher::new(seed)), CANDIDATES);
    let mut feed = Feed::new(sketch, sampling, shape.width(), seed);
    feed.take(queries.keys);
    let WithTopK { sketch, .. } = feed.sketch();
    let noise = sketch.noise();
    let estimate = |key: &Key| sketch.estimate(sketch.hasher().digest(key.as_bytes()), &noise).value;
    let largest = feed.sketch().largest().into_iter().map(|(key, estimate)| (key, estimate.value));
    Ok(score_heavy(queries, estimate, largest))
}

fn heavy_shape(memory: u64) -> anyhow::Result<Shape> {
    let candidates = TopK::<Key>::bytes_for(CANDIDATES);
    Ok(Shape::for_memory(memory - candidates, ROWS, size_of::<i32>())?)
}

fn textbook_heavy(memory: u64, queries: &Queries<'_>) -> Measured<4> {
    let width = textbook_width(memory, CANDIDATES as u64);
    let mut sketch = textbook::WithTop::new(textbook::CountSketch::new(ROWS, width), CANDIDATES);
    sketch.update_all(queries.keys);
    let named = textbook::Sketch::top(&sketch).unwrap_or_default();
    score_heavy(queries, |key| textbook::Sketch::estimate(&sketch, key), named.into_iter())
}

/// Returns the counters per row if all memory except the heap is used for counters.
fn textbook_width(memory: u64, top: u64) -> usize {
    ((memory - top * TEXTBOOK_TOP_BYTES) / (ROWS * size_of::<i32>()) as u64) as usize
}

fn score_heavy(
    queries: &Queries<'_>,
    estimate: impl Fn(&Key) -> f64,
    named: impl Iterator<Item = (Key, f64)>,
) -> Measured<4> {
    let threshold = HEAVY * queries.truth.l1() as f64;
    let reported: Vec<Key> = named.filter(|(_, value)| *value > threshold).map(|(key, _)| key).collect();
    let Found { recall, precision } = Found::of(&reported, &keys_of(&queries.heavy));
    [
        ("heavy, top 100", mean_relative_error(&queries.top, &estimate)),
        ("heavy, above", mean_relative_error(&queries.heavy, &estimate)),
        ("heavy, recall", recall),
        ("heavy, precision", precision),
    ]
}

/// Measures K-ary sketches with candidates for two windows, each with half of the memory.
fn change(memory: u64, sampling: Sampling, seed: u64, queries: &Queries<'_>) -> anyhow::Result<Measured<3>> {
    let shape = change_shape(memory)?;
    let sketch = WithTopK::new(KAry::<i32>::new(shape, Hasher::new(seed)), CANDIDATES / 2);
    let mut feed = Feed::new(sketch, sampling, shape.width(), seed);
    let (first, second) = queries.changing.split_at(queries.half());
    feed.take(first);
    let before = feed.sketch().clone();
    feed.nitro.sketch_mut().clear();
    feed.nitro.begin_window();
    feed.take(second);
    let now = feed.sketch();
    let change = Change::between(&now.sketch, &before.sketch)?;
    let candidates = [&before, now].into_iter().flat_map(|window| window.top.candidates());
    let candidates: BTreeSet<Key> = candidates.map(|candidate| candidate.key).collect();
    let changed = |key: &Key| change.estimate_key(key).value.abs() > queries.change_threshold();
    let reported: Vec<Key> = candidates.into_iter().filter(changed).collect();
    let mut truth: Vec<(&Key, f64)> = queries.changes.iter().map(|(key, change)| (key, *change)).collect();
    truth.sort_unstable_by_key(|(key, _)| **key);
    let error = |(key, truth): &(&Key, f64)| (change.estimate_key(*key).value - truth).abs() / truth.abs();
    let mean = truth.iter().map(error).sum::<f64>() / truth.len().max(1) as f64;
    let truth: Vec<Key> = truth.into_iter().map(|(key, _)| *key).collect();
    let Found { recall, precision } = Found::of(&reported, &truth);
    Ok([("change, error", mean), ("change, recall", recall), ("change, precision", precision)])
}

fn change_shape(memory: u64) -> anyhow::Result<Shape> {
    let candidates = TopK::<Key>::bytes_for(CANDIDATES / 2);
    Ok(Shape::for_memory(memory / 2 - candidates, ROWS, size_of::<i32>())?)
}

fn univmon(memory: u64, sampling: Sampling, seed: u64, queries: &Queries<'_>) -> anyhow::Result<Measured<2>> {
    let shape = UnivMonShape::for_memory::<Key, i32>(memory, LEVELS, ROWS)?;
    let sketch = UnivMon::<Key>::new(shape, Hasher::new(seed));
    let mut feed = Feed::new(sketch, sampling, shape.shape().width(), seed);
    feed.take(queries.keys);
    let univmon = feed.sketch();
    Ok(score_sums(queries, univmon.distinct().value, univmon.entropy().value))
}

fn textbook_univmon(memory: u64, queries: &Queries<'_>) -> Measured<2> {
    let level = memory / LEVELS as u64;
    let top = (level / 4 / TEXTBOOK_TOP_BYTES).max(1);
    let mut univmon = textbook::UnivMon::new(LEVELS, ROWS, textbook_width(level, top), top as usize);
    queries.keys.iter().for_each(|key| {
        univmon.update(key);
    });
    let packets = queries.keys.len() as f64;
    let entropy = packets.log2() - univmon.sum_over_flows(|size| size * size.log2()) / packets;
    score_sums(queries, univmon.sum_over_flows(|_| 1.0), entropy.max(0.0))
}

fn score_sums(queries: &Queries<'_>, distinct: f64, entropy: f64) -> Measured<2> {
    let (flows, bits) = (queries.truth.distinct() as f64, queries.truth.entropy());
    [("distinct", (distinct / flows - 1.0).abs()), ("entropy", (entropy / bits - 1.0).abs())]
}

fn distinct(memory: u64, seed: u64, queries: &Queries<'_>) -> anyhow::Result<f64> {
    let mut counter = HyperLogLog::for_memory(memory, Hasher::new(seed))?;
    counter.update_all(queries.keys);
    Ok((counter.estimate().value / queries.truth.distinct() as f64 - 1.0).abs())
}

/// Returns the shapes that fit into each memory size.
fn shapes() -> anyhow::Result<Table> {
    let mut table = Table::new([
        "KiB",
        "Count Sketch",
        "textbook",
        "K-ary, each of two",
        "UnivMon, each level",
        "textbook, each level",
        "HyperLogLog",
    ]);
    for kib in MEMORY_KIB {
        let memory = kib * 1024;
        let univmon = UnivMonShape::for_memory::<Key, i32>(memory, LEVELS, ROWS)?;
        let level = memory / LEVELS as u64;
        let top = (level / 4 / TEXTBOOK_TOP_BYTES).max(1);
        let registers = HyperLogLog::for_memory(memory, Hasher::new(1))?.bytes();
        crate::row!(
            table,
            kib,
            heavy_shape(memory)?,
            format!("{ROWS} x {}", textbook_width(memory, CANDIDATES as u64)),
            change_shape(memory)?,
            format!("{}, {} flows", univmon.shape(), univmon.k()),
            format!("{ROWS} x {}, {top} flows", textbook_width(level, top)),
            format!("{registers} registers"),
        );
    }
    Ok(table)
}

fn draw(path: &Path, samples: &Samples, places: &[String], methods: &[String]) -> anyhow::Result<()> {
    let lines = |measure| samples.lines(STREAM, measure, places, methods);
    let error = "relative error";
    let panel = |title: &str, y: &str, scale: Scale, lines: Vec<Vec<f64>>| {
        let title = if y.is_empty() { title.to_owned() } else { format!("{title} ({y})") };
        let memory = MEMORY_KIB.map(|kib| (kib as f64, kib.to_string()));
        Panel::over_numbers(title, "memory (KiB)", &memory, scale, &lines)
    };
    let panels = [
        panel(MEASURES[0].1, error, Scale::LOGARITHMIC.in_percent(), lines("heavy, top 100")),
        panel(MEASURES[2].1, "", Scale::LINEAR.in_percent(), lines("heavy, recall")),
        panel("Error of changes", error, Scale::LOGARITHMIC.in_percent(), lines("change, error")),
        panel("Recall of changes", "", Scale::LINEAR.in_percent(), lines("change, recall")),
        panel(MEASURES[7].1, error, Scale::LOGARITHMIC.in_percent(), lines("distinct")),
        panel(MEASURES[8].1, error, Scale::LOGARITHMIC.in_percent(), lines("entropy")),
    ];
    save(
        path,
        &figure::draw(&Heading::new("Error against memory", ""), &Legend::of(methods), SEVERAL, &panels)?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_changes_are_the_heavy_changes() {
        let stream = zipf(2_000_000, 1.0, 0.0).unwrap();
        let queries = Queries::about(&stream.keys);
        let planted: BTreeSet<Key> =
            PLANTED.step_by(2).flat_map(|rank| [key_of(1, rank), key_of(2, rank)]).collect();
        assert!(queries.changes.len() > 60, "{}", queries.changes.len());
        let by_chance = queries.changes.keys().filter(|key| !planted.contains(*key)).count();
        // The largest flow, 68,000 in each window, changes by 370 of standard deviation; 500 is the threshold.
        assert!(by_chance <= 3, "{by_chance}");
    }

    #[test]
    fn every_sketch_fits_into_its_memory() {
        for memory in MEMORY_KIB.map(|kib| kib * 1024) {
            let heavy = heavy_shape(memory).unwrap().bytes(4) + TopK::<Key>::bytes_for(CANDIDATES);
            let change = change_shape(memory).unwrap().bytes(4) + TopK::<Key>::bytes_for(CANDIDATES / 2);
            assert!(heavy <= memory && 2 * change <= memory);
            assert!(heavy > memory / 2, "and does not waste more than half");
        }
    }
}
