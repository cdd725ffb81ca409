//! The second pass: part by part, assembles records into flows, and flows into flowsets.

use std::sync::atomic::{AtomicUsize, Ordering};

use thalweg_wire::flow_export::Address;

use super::flow::{Flow, Reconstruction};
use super::flowset::{Flowset, FlowsetBuilder};
use super::order::{Keyed, MAX_ROWS, Orderer};
use super::parts::{Parts, Portion, Spill};
use super::row::{Fields, Narrow, Row, Wide};
use super::scatter::Scattered;
use super::table::{FlowTable, FlowsetTable, Table};
use super::write::{MIN_PAGE_ROWS, TableFile};
use super::{AnalyseError, Options, Outputs, Statistics};
use crate::read::scan::Tick;

/// Parts per thread and round; results are written after each round.
const PARTS_PER_ROUND: usize = 8;

/// The context of the second pass.
#[derive(Clone, Copy)]
struct Job<'a> {
    options: &'a Options,
    spill: &'a Spill,
    ranks: &'a [u32],
    flows_wanted: bool,
    flowsets_wanted: bool,
}

/// Rows per transposition into columns; they fit the first-level cache.
const BATCH: usize = 64;

/// The results of some parts.
#[derive(Default)]
struct Assembled {
    flows: FlowTable,
    flowsets: FlowsetTable,
    statistics: Statistics,
    /// Rows not transposed yet.
    new_flows: Vec<Flow>,
    new_flowsets: Vec<Flowset>,
}

/// Assembles all parts and writes the results.
pub(super) fn assemble(
    scattered: Scattered,
    outputs: &Outputs,
    options: &Options,
    spill: &Spill,
    ranks: &[u32],
    progress: &mut Tick<'_, AnalyseError>,
) -> Result<Statistics, AnalyseError> {
    let mut results = Results {
        flows: TableFile::create(outputs.flows.as_deref())?,
        flowsets: TableFile::create(outputs.flowsets.as_deref())?,
        statistics: Statistics::default(),
    };
    let (flows_wanted, flowsets_wanted) = (results.flows.is_wanted(), results.flowsets.is_wanted());
    let job = Job { options, spill, ranks, flows_wanted, flowsets_wanted };
    let mut done = 0;
    let mut advance = |rows: usize| {
        done += rows as u64;
        progress(done)
    };
    job.all::<Narrow>(&scattered.narrow, &mut results, &mut advance)?;
    job.all::<Wide>(&scattered.wide, &mut results, &mut advance)?;
    results.flows.finish()?;
    results.flowsets.finish()?;
    Ok(results.statistics)
}

/// The files being written.
struct Results {
    flows: TableFile<FlowTable>,
    flowsets: TableFile<FlowsetTable>,
    statistics: Statistics,
}

impl Results {
    fn write(&mut self, assembled: &mut Assembled) -> Result<(), AnalyseError> {
        self.statistics.add(&std::mem::take(&mut assembled.statistics));
        self.flows.append(&mut assembled.flows)?;
        self.flowsets.append(&mut assembled.flowsets)
    }
}

impl Job<'_> {
    /// Assembles all parts of one kind and writes the results in order.
    fn all<R: Row>(
        self,
        parts: &[Parts<R>],
        results: &mut Results,
        advance: &mut impl FnMut(usize) -> Result<(), AnalyseError>,
    ) -> Result<(), AnalyseError> {
        match self.options.threads {
            1 => self.sequential(parts, results, advance),
            threads => self.parallel(parts, threads, results, advance),
        }
    }

    fn sequential<R: Row>(
        self,
        parts: &[Parts<R>],
        results: &mut Results,
        advance: &mut impl FnMut(usize) -> Result<(), AnalyseError>,
    ) -> Result<(), AnalyseError> {
        let mut assembler = Assembler::new(self);
        for part in Portion::all(parts) {
            let rows = part.rows();
            assembler.process_part(part, &mut |assembled| match assembled.is_page() {
                true => results.write(assembled),
                false => Ok(()),
            })?;
            advance(rows)?;
        }
        results.write(&mut assembler.builder.out)
    }

    /// Worker threads assemble a round of parts while this thread writes the results of the previous one. This thread also
    /// assembles the parts that are too large for memory.
    fn parallel<R: Row>(
        self,
        parts: &[Parts<R>],
        threads: usize,
        results: &mut Results,
        advance: &mut impl FnMut(usize) -> Result<(), AnalyseError>,
    ) -> Result<(), AnalyseError> {
        enum Done<'p, R> {
            Assembled(Box<Assembled>, usize),
            TooLarge(Portion<'p, R>),
        }
        let mut assemblers: Vec<_> = (0..threads).map(|_| Assembler::new(self)).collect();
        let mut own = Assembler::new(self);
        let mut parts = Portion::all(parts);
        let mut before: Vec<Done<'_, R>> = Vec::new();
        loop {
            let round: Vec<_> = parts.by_ref().take(threads * PARTS_PER_ROUND).collect();
            if round.is_empty() && before.is_empty() {
                return Ok(());
            }
            let next = AtomicUsize::new(0);
            let work = |assembler: &mut Assembler<'_, R>| -> Result<Vec<(usize, Done<'_, R>)>, AnalyseError> {
                let mut all = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&part) = round.get(number) else { return Ok(all) };
                    let rows = part.rows();
                    if rows > assembler.max_rows() {
                        all.push((number, Done::TooLarge(part)));
                        continue;
                    }
                    let mut out = Assembled::default();
                    assembler.process_part(part, &mut |assembled| {
                        out.statistics.add(&std::mem::take(&mut assembled.statistics));
                        out.flows.append(&mut assembled.flows);
                        out.flowsets.append(&mut assembled.flowsets);
                        Ok(())
                    })?;
                    all.push((number, Done::Assembled(Box::new(out), rows)));
                }
            };
            let mut now = std::thread::scope(|scope| {
                let work = &work;
                let workers: Vec<_> = assemblers.iter_mut().map(|a| scope.spawn(move || work(a))).collect();
                let written = before.drain(..).try_for_each(|done| match done {
                    Done::Assembled(mut assembled, rows) => {
                        results.write(&mut assembled)?;
                        advance(rows)
                    }
                    Done::TooLarge(part) => {
                        let rows = part.rows();
                        own.process_part(part, &mut |assembled| results.write(assembled))?;
                        advance(rows)
                    }
                });
                let mut now = Vec::new();
                for worker in workers {
                    now.extend(worker.join().expect("workers do not panic")?);
                }
                written.map(|()| now)
            })?;
            now.sort_unstable_by_key(|(number, _)| *number);
            before = now.into_iter().map(|(_, done)| done).collect();
        }
    }
}

/// Called with the results so far after each part. May take them out.
type Sink<'a> = dyn FnMut(&mut Assembled) -> Result<(), AnalyseError> + 'a;

/// Assembles parts, one after another.
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
            out: Assembled::default(),
        };
        Assembler { job, rows: Vec::new(), orderer: Orderer::default(), builder }
    }

    /// Returns the maximum number of rows to load at once: each needs memory for itself, its key, and its results.
    fn max_rows(&self) -> usize {
        let bytes = size_of::<R>() + size_of::<Keyed>() + size_of::<Flow>();
        (self.job.options.working_bytes() / bytes).clamp(1, MAX_ROWS)
    }

    /// Assembles a part that shares no pair of hosts with other parts.
    fn process_part(&mut self, part: Portion<'_, R>, sink: &mut Sink<'_>) -> Result<(), AnalyseError> {
        self.part(part, sink)?;
        self.builder.finish_pair();
        self.builder.out.flush_rows();
        sink(&mut self.builder.out)
    }

    fn part(&mut self, part: Portion<'_, R>, sink: &mut Sink<'_>) -> Result<(), AnalyseError> {
        let (count, shift) = (part.rows(), part.shift());
        if count == 0 {
            return Ok(());
        }
        let mut one_key = false;
        if count > self.max_rows() {
            if let Some(parts) = part.split(self.job.options.working_bytes() / 2, self.job.spill)? {
                return Portion::all(&[parts]).try_for_each(|part| self.part(part, sink));
            }
            one_key = true;
        }
        part.load(&mut self.rows, self.job.spill)?;
        if one_key {
            let statistics = &mut self.builder.out.statistics;
            statistics.largest_key = statistics.largest_key.max(count as u64);
            self.builder.key(self.rows.iter());
            self.rows = Vec::new();
        } else {
            let ordered = self.orderer.order(&self.rows, shift);
            for keys in ordered.chunk_by(|a, b| a.key() == b.key()) {
                match keys {
                    [only] => self.builder.single_record(&self.rows[only.index()]),
                    keys => self.builder.key(keys.iter().map(|keyed| &self.rows[keyed.index()])),
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
    fn single_record<R: Row>(&mut self, row: &R) {
        let flow = self.reconstruction.single(row.addresses(), row.fields());
        self.out.flow(self.job, &mut self.flowsets, row.pair_hash(), &flow);
    }

    /// Adds the records of a key.
    fn key<'r, R: Row>(&mut self, rows: impl Iterator<Item = &'r R> + Clone) {
        let mut all = rows.clone();
        let Some(first) = all.next() else { return };
        let (pair_hash, addresses) = (first.pair_hash(), first.addresses());
        if all.all(|row| row.addresses() == addresses) {
            return self.records(pair_hash, addresses, rows);
        }
        // Several pairs of hosts share a hash.
        let mut rows: Vec<&R> = rows.collect();
        rows.sort_by_key(|row| row.addresses());
        for rows in rows.chunk_by(|a, b| a.addresses() == b.addresses()) {
            self.records(pair_hash, rows[0].addresses(), rows.iter().copied());
        }
    }

    fn records<'r, R: Row>(
        &mut self,
        pair_hash: u64,
        addresses: (Address, Address),
        rows: impl Iterator<Item = &'r R>,
    ) {
        self.records.clear();
        self.records.extend(rows.map(|row| *row.fields()));
        let FlowBuilder { job, records, reconstruction, flowsets, out } = self;
        reconstruction.flows(addresses, records, |flow| out.flow(*job, flowsets, pair_hash, &flow));
    }

    fn finish_pair(&mut self) {
        let FlowBuilder { job, flowsets, out, .. } = self;
        flowsets.finish(&mut |set| out.flowset(*job, &set));
        out.statistics.largest_pair = flowsets.largest() as u64;
    }
}

impl Assembled {
    /// Returns whether there are enough rows for a page.
    fn is_page(&self) -> bool {
        self.flows.len() >= MIN_PAGE_ROWS || self.flowsets.len() >= MIN_PAGE_ROWS
    }

    #[inline]
    fn flow(&mut self, job: Job<'_>, flowsets: &mut FlowsetBuilder, pair_hash: u64, flow: &Flow) {
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
            flowsets.push(pair_hash, *flow, &mut |set| self.flowset(job, &set));
        }
    }

    fn flowset(&mut self, job: Job<'_>, set: &Flowset) {
        self.statistics.flowsets += 1;
        self.statistics.single_flows += u64::from(set.flows == 1);
        if job.flowsets_wanted {
            self.new_flowsets.push(*set);
            if self.new_flowsets.len() == BATCH {
                self.flowsets.extend(&self.new_flowsets);
                self.new_flowsets.clear();
            }
        }
    }

    /// Transposes the remaining rows.
    fn flush_rows(&mut self) {
        self.flows.extend(&self.new_flows);
        self.flowsets.extend(&self.new_flowsets);
        self.new_flows.clear();
        self.new_flowsets.clear();
    }
}
