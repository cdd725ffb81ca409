//! Series for plots, from the tables of a run. Each table is read twice: for its times and its largest items, and for the series of
//! these.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use thalweg_api::{
    CompletionClass, CompletionPoint, Completions, LinkSeries, PortQueue, QueueSeries, ThroughputSeries,
};
use thalweg_experiment::files::columns::Row;
use thalweg_experiment::files::read::{Cell, TableLimits, read_rows, table};
use thalweg_experiment::results::{FlowRow, LinkRow, QueueRow, SIZE_CLASSES, size_class};

use super::{MAX_POINTS, TABLE_LIMITS};

/// Maximum number of links and ports with a series.
const MAX_SERIES: usize = 8;

/// Maximum number of different links and ports in a table.
const MAX_ITEMS: usize = 200_000;

/// Maximum number of flows, which are kept in memory.
const MAX_FLOWS: u64 = 2_000_000;

/// Maximum number of flows as points.
const MAX_FLOW_POINTS: usize = 2_000;

/// Steps of the distribution of completion times, between the smallest and the largest.
const SHARES: usize = 100;

/// Passes columns of the rows of a table to `each`. Returns `false` if there is no table.
fn each_row<R: Row>(
    folder: &Path,
    columns: &[&str],
    limits: TableLimits,
    each: &mut dyn FnMut(&[Cell<'_>]),
) -> Result<bool, String> {
    let Some((path, format)) = table::<R>(folder) else { return Ok(false) };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let read = read_rows::<R>((&path, format), columns, limits, each);
    read.map(|()| true).map_err(|error| format!("cannot read {name}: {}", error.problem))
}

/// Counts the different times of rows, which are in the order of time. Intervals of a table differ by a nanosecond, because they
/// are whole timeslots, so equal intervals would have one row more here and one less there.
#[derive(Default)]
struct Times {
    count: usize,
    first_ns: u64,
    last_ns: u64,
}

impl Times {
    fn add(&mut self, time_ns: u64) {
        if self.count == 0 {
            self.first_ns = time_ns;
        }
        if self.count == 0 || self.last_ns != time_ns {
            self.count += 1;
            self.last_ns = time_ns;
        }
    }

    /// Returns the mean distance of two times; 0 if there are less than two.
    fn distance_ns(&self) -> u64 {
        let distances = self.count.saturating_sub(1) as u64;
        self.last_ns.saturating_sub(self.first_ns).checked_div(distances).unwrap_or(0)
    }
}

/// Intervals of a series, each with the same number of times of a table.
struct Buckets {
    times_per_bucket: usize,
    seen: Times,
    times_ns: Vec<u64>,
}

impl Buckets {
    /// Covers these times with at most [`MAX_POINTS`] intervals.
    fn of(times: &Times) -> Buckets {
        let times_per_bucket = times.count.div_ceil(MAX_POINTS).max(1);
        Buckets { times_per_bucket, seen: Times::default(), times_ns: Vec::new() }
    }

    /// Returns the number of intervals for all times.
    fn count(&self, times: &Times) -> usize {
        times.count.div_ceil(self.times_per_bucket)
    }

    /// Returns the interval of the next row, and whether its time is new.
    fn index(&mut self, time_ns: u64) -> (usize, bool) {
        let before = self.seen.count;
        self.seen.add(time_ns);
        let index = (self.seen.count - 1) / self.times_per_bucket;
        if index == self.times_ns.len() {
            self.times_ns.push(time_ns);
        }
        (index, self.seen.count > before)
    }
}

/// A link direction or a port while its table is read the first time.
type Item = (String, String, u64);

/// Sums of items, and the order in which they were found.
#[derive(Default)]
struct Items {
    /// Numbers by the three parts of an item, which a row is looked up by without copies.
    numbers: HashMap<String, HashMap<String, HashMap<u64, usize>>>,
    sums: Vec<(Item, f64, u64)>,
    has_too_many: bool,
}

impl Items {
    fn add(&mut self, one: &str, other: &str, number: u64, amount: f64) {
        let known = self.numbers.get(one).and_then(|items| items.get(other)?.get(&number)).copied();
        match known {
            Some(at) => {
                self.sums[at].1 += amount;
                self.sums[at].2 += 1;
            }
            None if self.sums.len() < MAX_ITEMS => {
                let of_one = self.numbers.entry(one.to_owned()).or_default();
                of_one.entry(other.to_owned()).or_default().insert(number, self.sums.len());
                self.sums.push(((one.to_owned(), other.to_owned(), number), amount, 1));
            }
            None => self.has_too_many = true,
        }
    }

    /// Returns the largest items, the largest first.
    fn largest(&self, amount: impl Fn(f64, u64) -> f64) -> Vec<Item> {
        let mut items: Vec<_> =
            self.sums.iter().map(|(item, sum, rows)| (item, amount(*sum, *rows))).collect();
        items.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0)));
        items.into_iter().take(MAX_SERIES).map(|(item, _)| item.clone()).collect()
    }
}

/// Throughput over time; `None` without a table.
pub(super) fn throughput(folder: &Path) -> Result<Option<ThroughputSeries>, String> {
    let (mut items, mut times) = (Items::default(), Times::default());
    let has_table =
        each_row::<LinkRow>(folder, &["time_ns", "from", "to", "bytes"], TABLE_LIMITS, &mut |row| {
            times.add(row[0].count());
            items.add(row[1].name(), row[2].name(), 0, row[3].count() as f64);
        })?;
    if !has_table {
        return Ok(None);
    }
    if items.has_too_many {
        return Err(format!("the table of links has more than {MAX_ITEMS} link directions"));
    }
    let mut buckets = Buckets::of(&times);
    let count = buckets.count(&times);
    let endpoints = endpoints(&items);
    let chosen = items.largest(|bytes, _| bytes);
    let mut links = vec![LinkBuckets::new(count); chosen.len()];
    let (mut delivered, mut covered_ns) = (vec![0_u64; count], vec![0_u64; count]);
    let columns = ["time_ns", "interval_ns", "from", "to", "bytes", "utilisation", "dropped_packets"];
    each_row::<LinkRow>(folder, &columns, TABLE_LIMITS, &mut |row| {
        let (time_ns, interval_ns, bytes) = (row[0].count(), row[1].count(), row[4].count());
        let (from, to) = (row[2].name(), row[3].name());
        let (index, is_new) = buckets.index(time_ns);
        if is_new {
            covered_ns[index] += interval_ns;
        }
        if endpoints.contains(to) {
            delivered[index] += bytes;
        }
        if let Some(link) = chosen.iter().position(|(one, other, _)| one == from && other == to) {
            links[link].add(index, interval_ns, bytes, row[5].ratio(), row[6].count());
        }
    })?;
    let rate = |bytes: u64, ns: u64| if ns == 0 { 0.0 } else { bytes as f64 * 8e9 / ns as f64 };
    let links = chosen.into_iter().zip(links).map(|((from, to, _), link)| LinkSeries {
        from,
        to,
        rate_bps: link.bytes.iter().zip(&link.covered_ns).map(|(&bytes, &ns)| rate(bytes, ns)).collect(),
        utilisation: link.utilisation(),
        dropped_packets: link.dropped,
    });
    Ok(Some(ThroughputSeries {
        interval_ns: covered_ns.first().copied().unwrap_or(0),
        times_ns: buckets.times_ns,
        delivered_bps: delivered.iter().zip(&covered_ns).map(|(&bytes, &ns)| rate(bytes, ns)).collect(),
        links: links.collect(),
        total_links: items.sums.len() as u64,
    }))
}

/// Returns the endpoints: nodes that have one neighbour only.
fn endpoints(links: &Items) -> BTreeSet<&str> {
    let mut neighbours = HashMap::<&str, BTreeSet<&str>>::new();
    for ((from, to, _), ..) in &links.sums {
        for (node, other) in [(from, to), (to, from)] {
            let known = neighbours.entry(node).or_default();
            // Two are as good as more.
            if known.len() < 2 {
                known.insert(other);
            }
        }
    }
    neighbours.into_iter().filter(|(_, others)| others.len() == 1).map(|(node, _)| node).collect()
}

/// A link direction in intervals.
#[derive(Clone)]
struct LinkBuckets {
    bytes: Vec<u64>,
    covered_ns: Vec<u64>,
    /// Sum of utilisation times length.
    used_ns: Vec<f64>,
    dropped: Vec<u64>,
}

impl LinkBuckets {
    fn new(count: usize) -> LinkBuckets {
        let zeros = vec![0; count];
        LinkBuckets {
            bytes: zeros.clone(),
            covered_ns: zeros.clone(),
            used_ns: vec![0.0; count],
            dropped: zeros,
        }
    }

    fn add(&mut self, index: usize, interval_ns: u64, bytes: u64, utilisation: f64, dropped: u64) {
        self.bytes[index] += bytes;
        self.covered_ns[index] += interval_ns;
        self.used_ns[index] += if utilisation.is_finite() { utilisation * interval_ns as f64 } else { 0.0 };
        self.dropped[index] += dropped;
    }

    fn utilisation(&self) -> Vec<f64> {
        let share = |(&used, &ns): (&f64, &u64)| if ns == 0 { 0.0 } else { used / ns as f64 };
        self.used_ns.iter().zip(&self.covered_ns).map(share).collect()
    }
}

/// Queue lengths over time; `None` without a table.
pub(super) fn queues(folder: &Path) -> Result<Option<QueueSeries>, String> {
    let (mut items, mut times) = (Items::default(), Times::default());
    let columns = ["time_ns", "router", "port", "to", "packets", "bytes"];
    let has_table = each_row::<QueueRow>(folder, &columns[..5], TABLE_LIMITS, &mut |row| {
        times.add(row[0].count());
        items.add(row[1].name(), row[3].name(), row[2].count(), row[4].count() as f64);
    })?;
    if !has_table {
        return Ok(None);
    }
    if items.has_too_many {
        return Err(format!("the table of queues has more than {MAX_ITEMS} ports"));
    }
    let mut buckets = Buckets::of(&times);
    let count = buckets.count(&times);
    let chosen = items.largest(|packets, rows| packets / rows as f64);
    let mut ports = vec![vec![QueueBucket::default(); count]; chosen.len()];
    each_row::<QueueRow>(folder, &columns, TABLE_LIMITS, &mut |row| {
        let (router, port, to) = (row[1].name(), row[2].count(), row[3].name());
        let is_of = |(of, other, number): &Item| of == router && *number == port && other == to;
        let (index, _) = buckets.index(row[0].count());
        if let Some(at) = chosen.iter().position(is_of) {
            ports[at][index].add(row[4].count(), row[5].count());
        }
    })?;
    let ports = chosen.into_iter().zip(ports).map(|((router, to, port), buckets)| PortQueue {
        router,
        port: u16::try_from(port).unwrap_or(u16::MAX),
        to,
        packets_mean: buckets.iter().map(|bucket| bucket.mean(bucket.packets)).collect(),
        packets_max: buckets.iter().map(QueueBucket::max).collect(),
        bytes_mean: buckets.iter().map(|bucket| bucket.mean(bucket.bytes)).collect(),
    });
    Ok(Some(QueueSeries {
        interval_ns: times.distance_ns().saturating_mul(buckets.times_per_bucket as u64),
        times_ns: buckets.times_ns,
        ports: ports.collect(),
        total_ports: items.sums.len() as u64,
    }))
}

/// Samples of a queue in an interval.
#[derive(Clone, Copy, Default)]
struct QueueBucket {
    samples: u64,
    packets: u64,
    bytes: u64,
    max_packets: u64,
}

impl QueueBucket {
    fn add(&mut self, packets: u64, bytes: u64) {
        self.samples += 1;
        self.packets += packets;
        self.bytes += bytes;
        self.max_packets = self.max_packets.max(packets);
    }

    fn mean(&self, sum: u64) -> Option<f64> {
        (self.samples > 0).then(|| sum as f64 / self.samples as f64)
    }

    fn max(&self) -> Option<u32> {
        (self.samples > 0).then(|| u32::try_from(self.max_packets).unwrap_or(u32::MAX))
    }
}

/// Flow completion times; `None` without a table.
pub(super) fn completions(folder: &Path) -> Result<Option<Completions>, String> {
    let mut flows: Vec<CompletionPoint> = Vec::new();
    let columns = ["start_ns", "bytes", "fct_ns", "slowdown"];
    let limits = TableLimits { rows: MAX_FLOWS, ..TABLE_LIMITS };
    let has_table = each_row::<FlowRow>(folder, &columns, limits, &mut |row| {
        flows.push(CompletionPoint {
            start_ns: row[0].count(),
            bytes: row[1].count(),
            fct_ns: row[2].count(),
            slowdown: Some(row[3].ratio()).filter(|slowdown| slowdown.is_finite()),
        });
    })?;
    if !has_table {
        return Ok(None);
    }
    flows.sort_by_key(|flow| flow.start_ns);
    let class = |name: &str, belongs: &dyn Fn(&CompletionPoint) -> bool| {
        let flows: Vec<&CompletionPoint> = flows.iter().filter(|flow| belongs(flow)).collect();
        let fct_ns = flows.iter().map(|flow| flow.fct_ns as f64).collect();
        let slowdown = flows.iter().filter_map(|flow| flow.slowdown).collect();
        CompletionClass {
            class: name.to_owned(),
            flows: flows.len() as u64,
            shares: (0..=SHARES).map(|step| step as f64 / SHARES as f64).collect(),
            fct_ns: distribution(fct_ns),
            slowdown: distribution(slowdown),
        }
    };
    let of_size = SIZE_CLASSES.iter().enumerate();
    let mut classes: Vec<CompletionClass> =
        of_size.map(|(index, (name, _))| class(name, &|flow| size_class(flow.bytes) == index)).collect();
    classes.push(class("all", &|_| true));
    classes.retain(|class| class.flows > 0 || class.class == "all");
    let step = flows.len().div_ceil(MAX_FLOW_POINTS).max(1);
    Ok(Some(Completions {
        flows: flows.len() as u64,
        classes,
        points: flows.into_iter().step_by(step).collect(),
    }))
}

/// Returns the smallest value, the value that each hundredth does not exceed, up to the largest; empty without values.
fn distribution(mut values: Vec<f64>) -> Vec<f64> {
    if values.is_empty() {
        return Vec::new();
    }
    values.sort_unstable_by(f64::total_cmp);
    let at = |step: usize| values[(step * values.len()).div_ceil(SHARES).max(1) - 1];
    (0..=SHARES).map(at).collect()
}
