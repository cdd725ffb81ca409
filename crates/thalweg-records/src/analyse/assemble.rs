//! The second pass: assembles the records of each partition into flows, and flows into flowsets.

use std::sync::atomic::{AtomicUsize, Ordering};

use thalweg_wire::flow_export::Address;

use super::flow::{Flow, Reconstruction};
use super::flowset::{Flowset, FlowsetBuilder};
use super::largest::{FlowsetOrder, Largest};
use super::order::{KeyedIndex, MAX_ROWS, Orderer};
use super::partitions::{Partition, Spill, WorkerPartitions};
use super::row::{Fields, Narrow, Row, Wide};
use super::scatter::Scattered;
use super::table::{FlowTable, FlowsetTable, Table};
use super::write::{MIN_PAGE_ROWS, TableFile};
use super::{AnalyseError, Options, Statistics, Wanted};
use crate::read::scan::Tick;

/// Partitions per thread and round; results are written after each round.
const PARTITIONS_PER_ROUND: usize = 8;

/// The context of the second pass.
#[derive(Clone, Copy)]
struct Job<'a> {
    options: &'a Options,
    spill: &'a Spill,
    ranks: &'a [u32],
    flows_wanted: bool,
    flowsets_wanted: bool,
    largest: Option<(FlowsetOrder, usize)>,
}

/// Rows per transposition into columns; they fit the first-level cache.
const BATCH: usize = 64;

/// The results of some partitions.
#[derive(Default)]
struct Assembled {
    flows: FlowTable,
    flowsets: FlowsetTable,
    statistics: Statistics,
    largest: Largest,
    /// Rows not transposed yet.
    new_flows: Vec<Flow>,
    new_flowsets: Vec<Flowset>,
}

/// Assembles all partitions and writes the results.
pub(super) fn assemble(
    scattered: Scattered,
    Wanted { outputs, largest }: Wanted<'_>,
    options: &Options,
    spill: &Spill,
    ranks: &[u32],
    progress: &mut Tick<'_, AnalyseError>,
) -> Result<(Statistics, Vec<Flowset>), AnalyseError> {
    let mut results = Results {
        flows: TableFile::create(outputs.flows.as_deref())?,
        flowsets: TableFile::create(outputs.flowsets.as_deref())?,
        largest: Largest::new(largest),
        statistics: Statistics::default(),
    };
    let (flows_wanted, flowsets_wanted) = (results.flows.is_wanted(), results.flowsets.is_wanted());
    let job = Job { options, spill, ranks, flows_wanted, flowsets_wanted, largest };
    let mut done = 0;
    let mut advance = |rows: usize| {
        done += rows as u64;
        progress(done)
    };
    job.assemble_all::<Narrow>(&scattered.narrow, &mut results, &mut advance)?;
    job.assemble_all::<Wide>(&scattered.wide, &mut results, &mut advance)?;
    results.flows.finish()?;
    results.flowsets.finish()?;
    Ok((results.statistics, results.largest.into_sorted()))
}

/// The files being written.
struct Results {
    flows: TableFile<FlowTable>,
    flowsets: TableFile<FlowsetTable>,
    largest: Largest,
    statistics: Statistics,
}

impl Results {
    fn write(&mut self, assembled: &mut Assembled) -> Result<(), AnalyseError> {
        self.statistics.add(&std::mem::take(&mut assembled.statistics));
        self.largest.append(&mut assembled.largest);
        self.flows.append(&mut assembled.flows)?;
        self.flowsets.append(&mut assembled.flowsets)
    }
}

impl Job<'_> {
    /// Assembles all partitions of one kind and writes the results in order.
    fn assemble_all<R: Row>(
        self,
        workers: &[WorkerPartitions<R>],
        results: &mut Results,
        advance: &mut impl FnMut(usize) -> Result<(), AnalyseError>,
    ) -> Result<(), AnalyseError> {
        match self.options.threads {
            1 => self.assemble_sequentially(workers, results, advance),
            threads => self.assemble_in_parallel(workers, threads, results, advance),
        }
    }

    fn assemble_sequentially<R: Row>(
        self,
        workers: &[WorkerPartitions<R>],
        results: &mut Results,
        advance: &mut impl FnMut(usize) -> Result<(), AnalyseError>,
    ) -> Result<(), AnalyseError> {
        let mut assembler = Assembler::new(self);
        for partition in Partition::all(workers) {
            let rows = partition.rows();
            assembler.assemble(partition, &mut |assembled| match assembled.is_page() {
                true => results.write(assembled),
                false => Ok(()),
            })?;
            advance(rows)?;
        }
        results.write(&mut assembler.builder.out)
    }

    /// Worker threads assemble a round of partitions while this thread writes the results of the previous one. This
    /// thread also assembles the partitions that are too large for memory.
    fn assemble_in_parallel<R: Row>(
        self,
        workers: &[WorkerPartitions<R>],
        threads: usize,
        results: &mut Results,
        advance: &mut impl FnMut(usize) -> Result<(), AnalyseError>,
    ) -> Result<(), AnalyseError> {
        let mut assemblers: Vec<_> = (0..threads).map(|_| Assembler::new(self)).collect();
        let mut assembler_of_large = Assembler::new(self);
        let mut partitions = Partition::all(workers);
        let mut previous: Vec<Outcome<'_, R>> = Vec::new();
        loop {
            let round: Vec<_> = partitions.by_ref().take(threads * PARTITIONS_PER_ROUND).collect();
            if round.is_empty() && previous.is_empty() {
                return Ok(());
            }
            let next = AtomicUsize::new(0);
            let mut outcomes = std::thread::scope(|scope| {
                let (round, next) = (&round, &next);
                let threads: Vec<_> = assemblers
                    .iter_mut()
                    .map(|worker| scope.spawn(move || worker.assemble_round(round, next)))
                    .collect();
                let written = previous.drain(..).try_for_each(|outcome| match outcome {
                    Outcome::Assembled(mut assembled, rows) => {
                        results.write(&mut assembled)?;
                        advance(rows)
                    }
                    Outcome::TooLarge(partition) => {
                        let rows = partition.rows();
                        assembler_of_large.assemble(partition, &mut |assembled| results.write(assembled))?;
                        advance(rows)
                    }
                });
                let mut outcomes = Vec::new();
                for thread in threads {
                    outcomes.extend(thread.join().expect("workers do not panic")?);
                }
                written.map(|()| outcomes)
            })?;
            outcomes.sort_unstable_by_key(|(number, _)| *number);
            previous = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
        }
    }
}

/// What a worker did with a partition.
enum Outcome<'p, R> {
    /// Assembled it, with this number of rows.
    Assembled(Box<Assembled>, usize),
    /// Left it, because it exceeds the worker's memory.
    TooLarge(Partition<'p, R>),
}

/// Called with the results so far after each partition. May take them out.
type Sink<'a> = dyn FnMut(&mut Assembled) -> Result<(), AnalyseError> + 'a;

/// Assembles partitions, one after another.
struct Assembler<'a, R> {
    job: Job<'a>,
    rows: Vec<R>,
    orderer: Orderer,
    builder: FlowBuilder<'a>,
}

/// Builds flows from the records of a key, and flowsets from flows.
struct FlowBuilder<'a> {
    job: Job<'a>,
    records: Vec<Fields>,
    reconstruction: Reconstruction<'a>,
    flowsets: FlowsetBuilder,
    out: Assembled,
}

impl<'a, R: Row> Assembler<'a, R> {
    fn new(job: Job<'a>) -> Assembler<'a, R> {
        let options = job.options;
        let builder = FlowBuilder {
            job,
            records: Vec::new(),
            reconstruction: Reconstruction::new(options.gap_us, options.elephant_rule(), job.ranks),
            flowsets: FlowsetBuilder::new(
                options.rule,
                options.tau_us,
                options.working_bytes() / size_of::<Flow>(),
            ),
            out: Assembled { largest: Largest::new(job.largest), ..Assembled::default() },
        };
        Assembler { job, rows: Vec::new(), orderer: Orderer::default(), builder }
    }

    /// Returns the maximum number of rows to load at once: each needs memory for itself, its key, and its results.
    fn max_rows(&self) -> usize {
        let bytes = size_of::<R>() + size_of::<KeyedIndex>() + size_of::<Flow>();
        (self.job.options.working_bytes() / bytes).clamp(1, MAX_ROWS)
    }

    /// Assembles partitions of `round`, which all workers share, until none is left. Returns their numbers and outcomes.
    fn assemble_round<'p>(
        &mut self,
        round: &[Partition<'p, R>],
        next: &AtomicUsize,
    ) -> Result<Vec<(usize, Outcome<'p, R>)>, AnalyseError> {
        let mut outcomes = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(&partition) = round.get(number) else { return Ok(outcomes) };
            let rows = partition.rows();
            if rows > self.max_rows() {
                outcomes.push((number, Outcome::TooLarge(partition)));
                continue;
            }
            let mut all = Assembled { largest: Largest::new(self.job.largest), ..Assembled::default() };
            self.assemble(partition, &mut |assembled| {
                all.append(assembled);
                Ok(())
            })?;
            outcomes.push((number, Outcome::Assembled(Box::new(all), rows)));
        }
    }

    /// Assembles a partition that shares no pair of hosts with other partitions.
    fn assemble(&mut self, partition: Partition<'_, R>, sink: &mut Sink<'_>) -> Result<(), AnalyseError> {
        self.assemble_records(partition, sink)?;
        self.builder.finish_pair();
        self.builder.out.flush_rows();
        sink(&mut self.builder.out)
    }

    /// Builds the flows of a partition. Splits it first if it exceeds the memory.
    fn assemble_records(
        &mut self,
        partition: Partition<'_, R>,
        sink: &mut Sink<'_>,
    ) -> Result<(), AnalyseError> {
        let (count, shift) = (partition.rows(), partition.shift());
        if count == 0 {
            return Ok(());
        }
        let mut one_key = false;
        if count > self.max_rows() {
            if let Some(partitions) = partition.split(self.job.options.working_bytes() / 2, self.job.spill)? {
                return Partition::all(&[partitions])
                    .try_for_each(|partition| self.assemble_records(partition, sink));
            }
            one_key = true;
        }
        partition.load(&mut self.rows, self.job.spill)?;
        if one_key {
            let statistics = &mut self.builder.out.statistics;
            statistics.largest_key = statistics.largest_key.max(count as u64);
            self.builder.add_records_of_key(self.rows.iter());
            self.rows = Vec::new();
        } else {
            let ordered = self.orderer.order(&self.rows, shift);
            for keys in ordered.chunk_by(|a, b| a.key() == b.key()) {
                match keys {
                    [only] => self.builder.add_single_record(&self.rows[only.index()]),
                    keys => {
                        self.builder.add_records_of_key(keys.iter().map(|keyed| &self.rows[keyed.index()]))
                    }
                }
            }
        }
        self.builder.out.flush_rows();
        sink(&mut self.builder.out)
    }
}

impl FlowBuilder<'_> {
    /// Adds the only record of a key.
    #[inline]
    fn add_single_record<R: Row>(&mut self, row: &R) {
        let flow = self.reconstruction.flow_of_record(row.addresses(), row.fields());
        self.out.add_flow(self.job, &mut self.flowsets, row.pair_hash(), &flow);
    }

    /// Adds the records of a key.
    fn add_records_of_key<'r, R: Row>(&mut self, rows: impl Iterator<Item = &'r R> + Clone) {
        let mut all = rows.clone();
        let Some(first) = all.next() else { return };
        let (pair_hash, addresses) = (first.pair_hash(), first.addresses());
        if all.all(|row| row.addresses() == addresses) {
            return self.add_records(pair_hash, addresses, rows);
        }
        // Several pairs of hosts share a hash.
        let mut rows: Vec<&R> = rows.collect();
        rows.sort_by_key(|row| row.addresses());
        for rows in rows.chunk_by(|a, b| a.addresses() == b.addresses()) {
            self.add_records(pair_hash, rows[0].addresses(), rows.iter().copied());
        }
    }

    /// Adds the records of a key and a pair of hosts.
    fn add_records<'r, R: Row>(
        &mut self,
        pair_hash: u64,
        addresses: (Address, Address),
        rows: impl Iterator<Item = &'r R>,
    ) {
        self.records.clear();
        self.records.extend(rows.map(|row| *row.fields()));
        let FlowBuilder { job, records, reconstruction, flowsets, out } = self;
        reconstruction
            .for_each_flow(addresses, records, |flow| out.add_flow(*job, flowsets, pair_hash, &flow));
    }

    fn finish_pair(&mut self) {
        let FlowBuilder { job, flowsets, out, .. } = self;
        flowsets.finish(&mut |set| out.add_flowset(*job, &set));
        out.statistics.largest_pair = flowsets.largest() as u64;
    }
}

impl Assembled {
    /// Returns whether there are enough rows for a page.
    fn is_page(&self) -> bool {
        self.flows.len() >= MIN_PAGE_ROWS || self.flowsets.len() >= MIN_PAGE_ROWS
    }

    #[inline]
    fn add_flow(&mut self, job: Job<'_>, flowsets: &mut FlowsetBuilder, pair_hash: u64, flow: &Flow) {
        self.statistics.flows += 1;
        self.statistics.elephants += u64::from(flow.elephant);
        if job.flows_wanted {
            self.new_flows.push(*flow);
            if self.new_flows.len() == BATCH {
                self.flows.extend(&self.new_flows);
                self.new_flows.clear();
            }
        }
        if flow.elephant || !job.options.elephants_only {
            flowsets.push(pair_hash, *flow, &mut |set| self.add_flowset(job, &set));
        }
    }

    fn add_flowset(&mut self, job: Job<'_>, set: &Flowset) {
        self.statistics.flowsets += 1;
        self.statistics.single_flows += u64::from(set.flows == 1);
        self.largest.push(set);
        if job.flowsets_wanted {
            self.new_flowsets.push(*set);
            if self.new_flowsets.len() == BATCH {
                self.flowsets.extend(&self.new_flowsets);
                self.new_flowsets.clear();
            }
        }
    }

    /// Moves the results of `other` to the end.
    fn append(&mut self, other: &mut Assembled) {
        self.statistics.add(&std::mem::take(&mut other.statistics));
        self.largest.append(&mut other.largest);
        self.flows.append(&mut other.flows);
        self.flowsets.append(&mut other.flowsets);
    }

    /// Transposes the remaining rows.
    fn flush_rows(&mut self) {
        self.flows.extend(&self.new_flows);
        self.flowsets.extend(&self.new_flowsets);
        self.new_flows.clear();
        self.new_flowsets.clear();
    }
}
