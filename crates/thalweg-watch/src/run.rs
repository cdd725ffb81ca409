//! A run: sources opened, workers started, what they find put together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use thalweg_measure::meter::flow_table::Output;
use thalweg_measure::meter::intake::Intake;
use thalweg_measure::tasks::{Plan, TasksOptions};
use thalweg_wire::parse::Parser;
use thalweg_wire::{HashSeed, Nanos};

use crate::clock::Clock;
use crate::error::WatchError;
use crate::flow_exporter::FlowExporter;
use crate::heard::Heard;
use crate::inputs::Inputs;
use crate::message::{Done, Message, tell};
use crate::meter::Meter;
use crate::options::WatchOptions;
use crate::reader::{Limits, Pace};
use crate::tasks::{Collector, Finished, Monitoring, Saving, TaskLedger, Turn};
use crate::totals::Totals;
use crate::worker::{BATCHES_IN_FLIGHT, DistributedBatch, FlowDistributor, Metering, Reading, Wants};

/// Messages on their way to the main thread, at most; a worker whose message does not fit in waits.
const MESSAGES_IN_FLIGHT: usize = 256;

/// How long the main thread waits for a message before it hears of the silence.
const PATIENCE: Duration = Duration::from_millis(100);

/// What is to run: sources open, memory allocated, nothing started.
pub struct Watch {
    inputs: Inputs,
    notices: Vec<String>,
    /// One for each metering thread; `None` without a flow table.
    meters: Vec<Option<Meter>>,
    tasks: Option<Plan>,
    saving: Option<Saving>,
    flow_exporter: Option<FlowExporter>,
    parser: Parser,
    seed: u64,
    pace: Option<Pace>,
    duration: Option<Nanos>,
    /// Rows of the list of largest flows.
    top: usize,
    live: bool,
    clock: Clock,
}

impl Watch {
    /// Opens the sources and allocates the memory that `options` ask for. Privileges are needed until then.
    ///
    /// # Errors
    /// If a source cannot be opened, memory does not suffice, an option is out of range.
    pub fn open(options: &WatchOptions, seed: u64, clock: Clock) -> Result<Watch, WatchError> {
        let (inputs, notices) = Inputs::open(options)?;
        let (live, workers) = match &inputs {
            Inputs::Files(_) => (false, options.workers.unwrap_or(1).max(1)),
            Inputs::Rings(rings) => (true, rings.len()),
        };
        let tasks = options.tasks.clone().map(|tasks| Plan::new(TasksOptions { seed, workers, ..tasks }));
        let tasks = tasks.transpose().map_err(WatchError::Tasks)?;
        let meter = |_| options.table.then(|| Meter::new(options, workers, seed)).transpose();
        let meters = (0..workers).map(meter).collect::<Result<_, _>>()?;
        let pace = options.replay.filter(|_| !live).map(Pace::new);
        let parser = Parser { peel_tunnels: options.peel_tunnels };
        let (saving, flow_exporter) = (None, None);
        let (duration, top) = (options.duration, options.top);
        Ok(Watch {
            inputs,
            notices,
            meters,
            tasks,
            saving,
            flow_exporter,
            parser,
            seed,
            pace,
            duration,
            top,
            live,
            clock,
        })
    }

    /// Makes ready what is written besides what is shown: states in a folder, flows handed on. It is written as the
    /// user that the process then is.
    ///
    /// # Errors
    /// If a folder or a certificate cannot be used.
    pub fn make_outputs(&mut self, options: &WatchOptions) -> Result<(), WatchError> {
        if let (Some(folder), Some(_)) = (&options.save_states, &self.tasks) {
            self.saving = Some(Saving::into(folder)?);
        }
        self.flow_exporter = FlowExporter::start(options, self.live, self.clock)?;
        Ok(())
    }

    /// How packets of interfaces are captured, where that is not the default: a line for each.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Whether packets come as they happen, by the clock of this machine.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Whether files are replayed at a pace.
    pub fn is_replayed(&self) -> bool {
        self.pace.is_some()
    }

    /// Whether flow records are handed on, so that workers have to tell of them.
    pub fn hands_on(&self) -> bool {
        self.flow_exporter.is_some()
    }

    /// Threads that tell the main thread something.
    pub fn workers(&self) -> usize {
        self.meters.len() + usize::from(self.deals())
    }

    /// Whether one thread reads and others meter.
    fn deals(&self) -> bool {
        !self.live && self.meters.len() > 1
    }

    /// Starts all threads; they end when their input does or `stop` is set.
    fn start<'scope, 'env>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        wants: &Wants,
        limits: Limits<'env>,
        sender: &Sender<Message>,
        turns: Vec<Turn>,
    ) -> Vec<ScopedJoinHandle<'scope, ()>> {
        let deals = self.deals();
        let seed = HashSeed::new(self.seed);
        let intake = || Intake::new(self.parser, seed);
        let (pace, clock) = (self.pace, self.clock);
        let reading = |worker| Reading::new(worker, intake(), sender.clone(), clock);
        let tasks = self.tasks;
        let metering = |worker, meter| {
            let turns = turns.get(worker).cloned();
            let monitoring = tasks.as_ref().zip(turns);
            let monitoring =
                monitoring.map(|(plan, turns)| Monitoring::new(plan, worker, turns, sender.clone()));
            Metering::new(worker, meter, monitoring, wants.clone(), sender.clone(), clock)
        };
        let window = tasks.as_ref().map(|plan| plan.options().window);
        let meters = self.meters.into_iter().enumerate();
        let start = |work: Box<dyn FnOnce() -> Message + Send + 'scope>| {
            let sender = sender.clone();
            scope.spawn(move || tell(&sender, work()))
        };
        match self.inputs {
            Inputs::Rings(rings) => rings
                .into_iter()
                .zip(meters)
                .map(|(ring, (worker, meter))| {
                    let (reading, metering) = (reading(worker), metering(worker, meter));
                    start(Box::new(move || done(reading.run(vec![ring], None, limits, metering))))
                })
                .collect(),
            Inputs::Files(files) if deals => {
                let mut handles = Vec::new();
                let mut senders = Vec::new();
                for (worker, meter) in meters {
                    let (deal, dealt) = bounded::<DistributedBatch>(BATCHES_IN_FLIGHT);
                    senders.push(deal);
                    let metering = metering(worker, meter);
                    handles.push(start(Box::new(move || done(metering.run(&dealt)))));
                }
                let worker = senders.len();
                // Another seed than the tables have: the flows of one worker are to spread over all its buckets.
                let deal_seed = HashSeed::new(!self.seed);
                let views = wants.views.is_some();
                let distributor =
                    FlowDistributor::new(worker, deal_seed, senders, sender.clone(), clock, views, window);
                let reading = reading(worker);
                handles.push(start(Box::new(move || done(reading.run(files, pace, limits, distributor)))));
                handles
            }
            Inputs::Files(files) => meters
                .take(1)
                .map(|(worker, meter)| (reading(worker), metering(worker, meter)))
                .zip([files])
                .map(|((reading, metering), files)| {
                    start(Box::new(move || done(reading.run(files, pace, limits, metering))))
                })
                .collect(),
        }
    }
}

fn done(done: Done) -> Message {
    Message::Done(Box::new(done))
}

/// Watches the sources until they end, the duration asked for is over, or `stop` is set; `hear` gets everything as it
/// comes.
///
/// # Errors
/// If states cannot be saved; then everything has been stopped. What happens to a source is in [`Totals::cut_short`].
pub fn run(
    mut watch: Watch,
    wants: Wants,
    stop: &AtomicBool,
    mut hear: impl FnMut(Heard<'_>, &Totals),
) -> Result<Totals, WatchError> {
    let (begun, clock, top) = (watch.clock.now(), watch.clock, watch.top);
    let (sender, receiver) = bounded(MESSAGES_IN_FLIGHT);
    let mut totals = Totals { tasks: watch.tasks.as_ref().map(TaskLedger::new), ..Totals::default() };
    let (mut collector, turns) = watch.tasks.as_ref().map(Collector::new).unzip();
    let turns = turns.unwrap_or_default();
    let saving = watch.saving.take();
    let mut flow_exporter = watch.flow_exporter.take();
    let mut saved = Ok(());
    let mut save = |collector: &Collector, finished: &Finished| {
        if let (Some(saving), Ok(()), Some(window)) = (&saving, &saved, collector.window_of(finished)) {
            saved = saving.save(collector.plan(), window);
            if saved.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        let limits = Limits { stop, duration: watch.duration };
        let handles = watch.start(scope, &wants, limits, &sender, turns);
        drop(sender);
        let mut hear = |heard: Heard<'_>, totals: &Totals| {
            if let Some(flow_exporter) = &mut flow_exporter {
                flow_exporter.hear(&heard);
            }
            hear(heard, totals);
        };
        collect(&receiver, top, collector.as_mut(), &mut totals, &mut save, &mut hear);
        for handle in handles {
            if let Err(panic) = handle.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    if let Some(tasks) = &mut totals.tasks {
        tasks.together = collector.and_then(|collector| collector.together());
    }
    totals.handed_on = flow_exporter.map(|flow_exporter| flow_exporter.finish(&totals.intake));
    totals.elapsed = clock.since(begun);
    saved.map(|()| totals)
}

fn collect(
    receiver: &Receiver<Message>,
    top: usize,
    mut collector: Option<&mut Collector>,
    totals: &mut Totals,
    save: &mut impl FnMut(&Collector, &Finished),
    hear: &mut impl FnMut(Heard<'_>, &Totals),
) {
    let mut window_is_over =
        |collector: &Collector, finished: Finished, totals: &mut Totals, hear: &mut _| {
            save(collector, &finished);
            window_is_over(finished, totals, hear);
        };
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => hear(Heard::Silence, totals),
            Ok(Message::Done(done)) => totals.add(*done, top),
            Ok(Message::Windows(states)) => {
                if let Some(collector) = &mut collector {
                    collector
                        .add(states, |collector, finished| window_is_over(collector, finished, totals, hear));
                }
            }
            Ok(Message::NoMoreWindows(worker)) => {
                if let Some(collector) = &mut collector {
                    let take =
                        |collector: &Collector, finished| window_is_over(collector, finished, totals, hear);
                    collector.worker_has_gone(worker, take);
                }
            }
            Ok(message) => {
                if let Message::Output(Output { findings, .. }) = &message {
                    findings.iter().for_each(|finding| totals.cheetahs.add(finding));
                }
                hear(Heard::Message(&message), totals);
            }
        }
    }
}

fn window_is_over(finished: Finished, totals: &mut Totals, hear: &mut impl FnMut(Heard<'_>, &Totals)) {
    hear(Heard::Window(&finished), totals);
    if let Some(tasks) = &mut totals.tasks {
        tasks.add(finished);
    }
}
