//! Figure 3.3: the number of flow entries per hash bucket.

use std::collections::HashSet;
use std::path::Path;

use thalweg_plot::axis::Scale;
use thalweg_plot::bars::Columns;
use thalweg_plot::figure::{self, ALONE, Legend};
use thalweg_plot::page::Heading;
use thalweg_wire::{Direction, FlowKey, HashSeed, IpVersion};

use super::Outcome;
use crate::results::{Page, Table, grouped, percent, save};
use crate::row;
use crate::traces::{normal, stream};

/// Flows per bucket. The text does not state the number of buckets, so the load is fitted to its first share: with an
/// ideal hash `exp(-load)` of the flows are alone in their bucket, and the text has 43.2 %.
const LOAD: f64 = 0.839;

/// The multiplier of Bernstein's hash.
const MULTIPLIER: u64 = 33;

/// Runs the experiment.
pub(super) fn run(packets: u64, command: &str, plot: &Path) -> anyhow::Result<Outcome> {
    let mut keys = HashSet::new();
    stream(&normal(packets), |packets| keys.extend(packets.iter().map(|packet| packet.key)))?;
    let flows = keys.len() as u64;
    let buckets = bucket_count(flows);
    let seed = HashSeed::new(1);
    let bernstein = histogram(&keys, buckets, |key| bernstein(key) % buckets);
    let ours =
        histogram(&keys, buckets, |key| ((u128::from(hash(key, &seed)) * u128::from(buckets)) >> 64) as u64);
    let longest = bernstein.len().max(ours.len()).max(8);
    let poisson: Vec<f64> = (0..longest).map(|entries| expected(entries, flows, buckets)).collect();
    let mut table = Table::new(["entries", "bernstein_buckets", "our_buckets", "poisson_buckets"]);
    let mut shown = Table::new([
        "entries per bucket",
        "buckets, Bernstein",
        "buckets, ours",
        "buckets, Poisson",
        "flows, Bernstein",
        "flows, ours",
    ]);
    let at = |histogram: &[u64], entries: usize| histogram.get(entries).copied().unwrap_or(0);
    for (entries, poisson) in poisson.iter().enumerate() {
        let (one, other) = (at(&bernstein, entries), at(&ours, entries));
        row!(table, entries, one, other, format!("{poisson:.1}"));
        let share = |buckets: u64| percent(buckets * entries as u64, flows);
        row!(
            shown,
            entries,
            grouped(one),
            grouped(other),
            grouped(poisson.round() as u64),
            share(one),
            share(other)
        );
    }
    // Counts below one get no bar.
    let at_least_one = |count: f64| if count < 1.0 { f64::NAN } else { count };
    let float =
        |histogram: &[u64]| histogram.iter().map(|count| at_least_one(*count as f64)).collect::<Vec<_>>();
    let series = vec![float(&bernstein), float(&ours), poisson.into_iter().map(at_least_one).collect()];
    let places = series.iter().map(Vec::len).max().unwrap_or(0);
    let columns = Columns {
        title: "buckets".to_owned(),
        x_title: "flow entries per bucket".to_owned(),
        names: (0..places).map(|entries| entries.to_string()).collect(),
        // The axis starts below one, so that a count of one has a bar.
        y: Scale::LOGARITHMIC.axis(series.iter().flatten().copied().chain([0.7])),
        series,
    };
    let title = format!("{} one-way flows in {} buckets", grouped(flows), grouped(buckets));
    let legend = Legend::of(&["Bernstein", "ours", "Poisson"]);
    save(plot, &figure::draw(&Heading::new(title, ""), &legend, ALONE, &[columns])?)?;
    let mut page = Page::new("Flow entries per hash bucket", command);
    page.paragraph(format_args!(
        "{} packets, {} one-way flows, {} buckets ({LOAD} flows per bucket, fitted to the paper's first share).",
        grouped(packets),
        grouped(flows),
        grouped(buckets)
    ));
    page.table(&shown);
    Ok(Outcome { page, table })
}

/// Returns the number of buckets for `flows`, with no factor in common with Bernstein's multiplier: modulo a shared
/// factor the hash depends on the last byte alone, which is the protocol, and whole classes of buckets stay nearly empty.
fn bucket_count(flows: u64) -> u64 {
    let least = (flows as f64 / LOAD).ceil() as u64;
    (least..).find(|buckets| buckets % 3 != 0 && buckets % 11 != 0).expect("a few numbers further one fits")
}

/// Returns how many buckets hold 0, 1, 2, ... flows.
fn histogram(keys: &HashSet<FlowKey>, buckets: u64, bucket_of: impl Fn(&FlowKey) -> u64) -> Vec<u64> {
    let mut entries = vec![0u32; buckets as usize];
    keys.iter().for_each(|key| entries[bucket_of(key) as usize] += 1);
    let longest = entries.iter().copied().max().unwrap_or(0);
    let mut histogram = vec![0; longest as usize + 1];
    entries.iter().for_each(|count| histogram[*count as usize] += 1);
    histogram
}

/// Returns the expected number of buckets with this many entries, if every flow chooses its bucket at random.
fn expected(entries: usize, flows: u64, buckets: u64) -> f64 {
    let load = flows as f64 / buckets as f64;
    (1..=entries).fold(buckets as f64 * (-load).exp(), |expected, k| expected * load / k as f64)
}

/// Returns Bernstein's hash, starting from 5381: 33 times the hash so far plus the next byte, over source and destination
/// address, source and destination port, and protocol, in header order.
fn bernstein(key: &FlowKey) -> u64 {
    let address = |words: [u64; 2]| {
        let number = u128::from(words[0]) << 64 | u128::from(words[1]);
        let length = if key.version() == IpVersion::V4 { 4 } else { 16 };
        number.to_be_bytes().into_iter().skip(16 - length)
    };
    let (src, dst) = key.address_words();
    let ports = [key.src_port, key.dst_port].map(u16::to_be_bytes).into_iter().flatten();
    let bytes = address(src).chain(address(dst)).chain(ports).chain([key.protocol.0]);
    bytes.fold(5381, |hash: u64, byte| hash.wrapping_mul(MULTIPLIER).wrapping_add(byte.into()))
}

/// Returns the flow table's hash. It is the same for both directions, which are two flows here, as in the published
/// detector: one of them takes the complement.
fn hash(key: &FlowKey, seed: &HashSeed) -> u64 {
    let symmetric = key.symmetric_hash(seed);
    if key.direction() == Direction::Forward { symmetric } else { !symmetric }
}

#[cfg(test)]
mod tests {
    use thalweg_wire::Protocol;

    use super::*;

    #[test]
    fn every_flow_is_in_one_bucket() {
        let keys: HashSet<_> = (0..1000).map(|n| FlowKey::v4(n, 2, 3, 4, Protocol::TCP)).collect();
        let histogram = histogram(&keys, 500, |key| bernstein(key) % 500);
        assert_eq!(histogram.iter().sum::<u64>(), 500);
        assert_eq!(histogram.iter().zip(0u64..).map(|(buckets, n)| buckets * n).sum::<u64>(), 1000);
    }

    #[test]
    fn bucket_count_shares_no_factor_with_the_multiplier() {
        assert_eq!(bucket_count(2_299_762), 2_741_077);
        for flows in 1..2_000 {
            let buckets = bucket_count(flows);
            let has_common_factor =
                (2..=MULTIPLIER).any(|n| MULTIPLIER.is_multiple_of(n) && buckets.is_multiple_of(n));
            assert!(!has_common_factor && buckets as f64 >= flows as f64 / LOAD, "{flows}");
        }
    }

    #[test]
    fn load_reproduces_the_first_share_of_the_paper() {
        let (flows, buckets) = (1_788_675, (1_788_675.0 / LOAD) as u64);
        let alone = expected(1, flows, buckets) / flows as f64;
        assert!((alone - 0.432).abs() < 0.001, "{alone}");
        assert!(expected(0, flows, buckets) > 900e3 && expected(1, flows, buckets) > 700e3);
    }
}
