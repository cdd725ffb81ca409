//! A run: opens sources, starts workers, collects their results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use thalweg_capture::dpdk::device_of;
use thalweg_dataplane::DataplaneError;
use thalweg_linux::bpf::map::possible_cpus;
use thalweg_measure::meter::flow_table::Output;
use thalweg_measure::meter::intake::Intake;
use thalweg_measure::tasks::{Plan, TasksOptions};
use thalweg_wire::parse::Parser;
use thalweg_wire::{HashSeed, Nanos};

use crate::clock::Clock;
use crate::error::WatchError;
use crate::flow_capture::{CaptureInput, FlowCaptureOptions, FlowCaptures, LiveCapture};
use crate::flow_exporter::FlowExporter;
use crate::in_kernel::{self, InKernelError, InKernelOptions};
use crate::inputs::{Incomplete, Input, InputError, Inputs, OpenInputs, is_file_name};
use crate::message::{Done, Message, send_message};
use crate::meter::Meter;
use crate::options::WatchOptions;
use crate::reader::{Limits, Pace};
use crate::survey::FlowContext;
use crate::tasks::{FinishedWindow, PermitReceiver, SketchWriter, TaskLedger, TaskMonitor, WindowMerger};
use crate::totals::Totals;
use crate::update::WatchUpdate;
use crate::worker::{
    BATCHES_IN_FLIGHT, DistributedBatch, FlowDistributor, FrameObserver, KernelWorker, Metering, Reading,
    WorkerOptions,
};

/// Capacity of the channel to the main thread. Workers block while it is full.
const MESSAGES_IN_FLIGHT: usize = 256;

/// How long the main thread waits for a message before it reports [`WatchUpdate::Idle`].
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(100);

/// A run that is ready to start: sources are open, memory is allocated.
pub struct Watch {
    inputs: Inputs,
    notices: Vec<String>,
    /// Files that cannot be read.
    skipped: Vec<Incomplete>,
    /// One per metering thread; `None` without a flow table.
    meters: Vec<Option<Meter>>,
    tasks: Option<Plan>,
    sketch_writer: Option<SketchWriter>,
    flow_exporter: Option<FlowExporter>,
    parser: Parser,
    seed: u64,
    pace: Option<Pace>,
    duration: Option<Nanos>,
    /// Length of the list of largest flows.
    top: usize,
    live: bool,
    context: FlowContext,
    flow_captures: FlowCaptures,
    live_capture: Arc<LiveCapture>,
    clock: Clock,
}

impl Watch {
    /// Opens the sources and allocates memory. Later steps need no privileges.
    ///
    /// # Errors
    /// If a source cannot be opened, memory is insufficient, or an option is out of range.
    pub fn open(options: &WatchOptions, seed: u64, clock: Clock) -> Result<Watch, WatchError> {
        let plan = |seed, workers| {
            let tasks = options.tasks.clone().map(|tasks| Plan::new(TasksOptions { seed, workers, ..tasks }));
            tasks.transpose().map_err(WatchError::Tasks)
        };
        if let Some(in_kernel) = &options.in_kernel {
            return Watch::open_in_kernel(options, in_kernel, seed, clock, plan);
        }
        let OpenInputs { inputs, notices, skipped } = Inputs::open(options)?;
        let flow_captures = flow_captures(options, &inputs);
        let (live, workers) = match &inputs {
            Inputs::Files(_) => (false, options.workers.unwrap_or(1).max(1)),
            Inputs::Rings(rings) => (true, rings.len()),
            Inputs::Kernel(_) => (true, 1),
        };
        let tasks = plan(seed, workers)?;
        let meter = |_| options.table.then(|| Meter::new(options, workers, seed, live)).transpose();
        let meters = (0..workers).map(meter).collect::<Result<_, _>>()?;
        let pace = options.replay.filter(|_| !live).map(Pace::new);
        let parser = Parser { decapsulate: options.decapsulate };
        let (sketch_writer, flow_exporter) = (None, None);
        let (duration, top) = (options.duration, options.top);
        Ok(Watch {
            inputs,
            notices,
            skipped,
            meters,
            tasks,
            sketch_writer,
            flow_exporter,
            parser,
            seed,
            pace,
            duration,
            top,
            live,
            context: FlowContext::default(),
            live_capture: flow_captures.live(),
            flow_captures,
            clock,
        })
    }

    /// Starts to count in the kernel.
    fn open_in_kernel(
        options: &WatchOptions,
        in_kernel: &InKernelOptions,
        seed: u64,
        clock: Clock,
        plan: impl Fn(u64, usize) -> Result<Option<Plan>, WatchError>,
    ) -> Result<Watch, WatchError> {
        if let (Some(_), [interface, ..]) = (options.replay, options.sources.as_slice()) {
            return Err(InputError::Replay { interface: interface.clone() }.into());
        }
        for source in &options.sources {
            let what = match device_of(source) {
                Some(_) => "DPDK port",
                None if is_file_name(source) => "capture file",
                None => continue,
            };
            return Err(InKernelError::NotAnInterface { source_name: source.clone(), what }.into());
        }
        // Pinned sketches have a seed already.
        let pinned = match (&in_kernel.pin, options.seed) {
            (Some(name), None) => name.seed().map_err(InKernelError::from)?,
            _ => None,
        };
        let seed = pinned.unwrap_or(seed);
        let cpus = possible_cpus().map_err(|error| InKernelError::from(DataplaneError::Map(error)))?;
        let plan = plan(seed, cpus)?.ok_or(InKernelError::NoTasks)?;
        let counting = in_kernel::start(in_kernel, &options.sources, options.live.promiscuous, &plan)?;
        let attachment = counting.attachment();
        let because = attachment.reason().map(|reason| format!(": {reason}")).unwrap_or_default();
        let resumed = if counting.is_resumed() { ", continuing with pinned sketches" } else { "" };
        let notice =
            format!("{}: counting at {}{because}{resumed}", attachment.interface(), attachment.hook());
        let flow_captures =
            FlowCaptures::new(options.flow_capture.clone(), CaptureInput::Live, options.decapsulate);
        Ok(Watch {
            live_capture: flow_captures.live(),
            flow_captures,
            inputs: Inputs::Kernel(Box::new(counting)),
            notices: vec![notice],
            skipped: Vec::new(),
            meters: vec![None],
            tasks: Some(plan),
            sketch_writer: None,
            flow_exporter: None,
            parser: Parser { decapsulate: false },
            seed,
            pace: None,
            duration: options.duration,
            top: options.top,
            live: true,
            context: FlowContext::default(),
            clock,
        })
    }

    /// Opens the other outputs: saved sketches and flow export. Call it after dropping privileges, so that files belong to
    /// the right user.
    ///
    /// # Errors
    /// If a directory or a certificate cannot be used.
    pub fn open_outputs(&mut self, options: &WatchOptions) -> Result<(), WatchError> {
        if let (Some(folder), Some(_)) = (&options.save_sketches, &self.tasks) {
            self.sketch_writer = Some(SketchWriter::new(folder)?);
        }
        self.flow_exporter = FlowExporter::start(options, self.live, self.clock)?;
        Ok(())
    }

    /// Returns the files that are skipped, because they cannot be read.
    pub fn skipped(&self) -> &[Incomplete] {
        &self.skipped
    }

    /// Returns a line for each interface whose capture backend is not the default.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Whether packets are captured live.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Whether a source is a DPDK port. DPDK has threads of its own, which keep the privileges with which it was started.
    pub fn has_dpdk(&self) -> bool {
        match &self.inputs {
            Inputs::Files(inputs) | Inputs::Rings(inputs) => inputs.iter().any(Input::is_dpdk),
            Inputs::Kernel(_) => false,
        }
    }

    /// Whether files are replayed at a set pace.
    pub fn is_replayed(&self) -> bool {
        self.pace.is_some()
    }

    /// Takes the means to write packets of flows. They work while the run lasts, and for files also after it.
    pub fn take_flow_captures(&mut self) -> FlowCaptures {
        let none = FlowCaptures::new(FlowCaptureOptions::default(), CaptureInput::Live, false);
        std::mem::replace(&mut self.flow_captures, none)
    }

    /// Returns what capture filters of flows have to take into account; it grows during the run.
    pub fn flow_context(&self) -> FlowContext {
        self.context.clone()
    }

    /// Whether flow records are exported, so that workers must send them.
    pub fn exports_flows(&self) -> bool {
        self.flow_exporter.is_some()
    }

    /// Returns the number of threads that send messages to the main thread.
    pub fn workers(&self) -> usize {
        self.meters.len() + usize::from(self.is_distributed())
    }

    /// Whether one thread reads and others meter.
    fn is_distributed(&self) -> bool {
        !self.live && self.meters.len() > 1
    }

    /// Starts all threads. They end with their input or when `stop` is set.
    fn start<'scope, 'env>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        worker_options: &WorkerOptions,
        limits: Limits<'env>,
        sender: &Sender<Message>,
        permits: Vec<PermitReceiver>,
    ) -> Vec<ScopedJoinHandle<'scope, ()>> {
        let is_distributed = self.is_distributed();
        let seed = HashSeed::new(self.seed);
        let intake = || Intake::new(self.parser, seed);
        let (pace, clock) = (self.pace, self.clock);
        let (context, capture) = (self.context, self.live_capture);
        let reading = |worker| {
            let frames = FrameObserver { context: context.clone(), capture: Arc::clone(&capture) };
            Reading::new(worker, intake(), frames, sender.clone(), clock)
        };
        let tasks = self.tasks;
        let metering = |worker, meter| {
            let permits = permits.get(worker).cloned();
            let task_monitor = tasks.as_ref().zip(permits);
            let task_monitor =
                task_monitor.map(|(plan, permits)| TaskMonitor::new(plan, worker, permits, sender.clone()));
            Metering::new(worker, meter, task_monitor, worker_options.clone(), sender.clone(), clock)
        };
        let window = tasks.as_ref().map(|plan| plan.options().window);
        let meters = self.meters.into_iter().enumerate();
        let start = |work: Box<dyn FnOnce() -> Message + Send + 'scope>| {
            let sender = sender.clone();
            scope.spawn(move || send_message(&sender, work()))
        };
        match self.inputs {
            Inputs::Kernel(counting) => {
                let plan_and_permits = tasks.clone().zip(permits.first().cloned());
                let worker = plan_and_permits.map(|(plan, permits)| {
                    let views = worker_options.views.is_some();
                    KernelWorker::new(*counting, plan, permits, sender.clone(), clock, views)
                });
                worker.into_iter().map(|worker| start(Box::new(move || done(worker.run(limits))))).collect()
            }
            Inputs::Rings(rings) => rings
                .into_iter()
                .zip(meters)
                .map(|(ring, (worker, meter))| {
                    let (reading, metering) = (reading(worker), metering(worker, meter));
                    start(Box::new(move || done(reading.run(vec![ring], None, limits, metering))))
                })
                .collect(),
            Inputs::Files(files) if is_distributed => {
                let mut handles = Vec::new();
                let mut senders = Vec::new();
                for (worker, meter) in meters {
                    let (batches, receiver) = bounded::<DistributedBatch>(BATCHES_IN_FLIGHT);
                    senders.push(batches);
                    let metering = metering(worker, meter);
                    handles.push(start(Box::new(move || done(metering.run(&receiver)))));
                }
                let worker = senders.len();
                // Differs from the seed of the flow tables, so that the flows of one worker use all buckets of its table.
                let distribution_seed = HashSeed::new(!self.seed);
                let views = worker_options.views.is_some();
                let distributor = FlowDistributor::new(
                    worker,
                    distribution_seed,
                    senders,
                    sender.clone(),
                    clock,
                    views,
                    window,
                );
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

/// Returns the means to write packets of flows: of files, by reading them again.
fn flow_captures(options: &WatchOptions, inputs: &Inputs) -> FlowCaptures {
    let input = match inputs {
        Inputs::Files(files) => CaptureInput::Files {
            names: files.iter().map(|file| file.name.clone()).collect(),
            filter: options.capture_filter.clone(),
        },
        Inputs::Rings(_) | Inputs::Kernel(_) => CaptureInput::Live,
    };
    FlowCaptures::new(options.flow_capture.clone(), input, options.decapsulate)
}

fn done(done: Done) -> Message {
    Message::Done(Box::new(done))
}

/// Measures the sources until they end, the configured duration is over, or `stop` is set. Passes each update to
/// `on_update`.
///
/// # Errors
/// If sketches cannot be saved; all threads have then stopped. Errors of sources are in [`Totals::incomplete`].
pub fn run(
    mut watch: Watch,
    worker_options: WorkerOptions,
    stop: &AtomicBool,
    mut on_update: impl FnMut(WatchUpdate<'_>, &Totals),
) -> Result<Totals, WatchError> {
    let (started, clock, top) = (watch.clock.now(), watch.clock, watch.top);
    let (sender, receiver) = bounded(MESSAGES_IN_FLIGHT);
    let tasks = watch.tasks.as_ref().map(TaskLedger::new);
    let mut totals = Totals { tasks, incomplete: std::mem::take(&mut watch.skipped), ..Totals::default() };
    let (mut merger, permits) = watch.tasks.as_ref().map(WindowMerger::new).unzip();
    let permits = permits.unwrap_or_default();
    let sketch_writer = watch.sketch_writer.take();
    let mut flow_exporter = watch.flow_exporter.take();
    let mut saved = Ok(());
    let mut save = |merger: &WindowMerger, finished: &FinishedWindow| {
        if let (Some(sketch_writer), Ok(()), Some(window)) =
            (&sketch_writer, &saved, merger.window_of(finished))
        {
            saved = sketch_writer.save(merger.plan(), window);
            if saved.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        let limits = Limits { stop, duration: watch.duration };
        let handles = watch.start(scope, &worker_options, limits, &sender, permits);
        drop(sender);
        let mut on_update = |update: WatchUpdate<'_>, totals: &Totals| {
            if let Some(flow_exporter) = &mut flow_exporter {
                flow_exporter.handle(&update);
            }
            on_update(update, totals);
        };
        collect(&receiver, top, merger.as_mut(), &mut totals, &mut save, &mut on_update);
        for handle in handles {
            if let Err(panic) = handle.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    if let Some(tasks) = &mut totals.tasks {
        tasks.combined = merger.and_then(|merger| merger.combined());
    }
    totals.exported = flow_exporter.map(|flow_exporter| flow_exporter.finish(&totals.intake));
    totals.elapsed = clock.since(started);
    saved.map(|()| totals)
}

fn collect(
    receiver: &Receiver<Message>,
    top: usize,
    mut merger: Option<&mut WindowMerger>,
    totals: &mut Totals,
    save: &mut impl FnMut(&WindowMerger, &FinishedWindow),
    on_update: &mut impl FnMut(WatchUpdate<'_>, &Totals),
) {
    let mut finish_window =
        |merger: &WindowMerger, finished: FinishedWindow, totals: &mut Totals, on_update: &mut _| {
            save(merger, &finished);
            finish_window(finished, totals, on_update);
        };
    loop {
        match receiver.recv_timeout(RECEIVE_TIMEOUT) {
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => on_update(WatchUpdate::Idle, totals),
            Ok(Message::Done(done)) => totals.add(*done, top),
            Ok(Message::Windows(states)) => {
                if let Some(merger) = &mut merger {
                    merger.add(states, |merger, finished| finish_window(merger, finished, totals, on_update));
                }
            }
            Ok(Message::NoMoreWindows(worker)) => {
                if let Some(merger) = &mut merger {
                    let emit =
                        |merger: &WindowMerger, finished| finish_window(merger, finished, totals, on_update);
                    merger.worker_ended(worker, emit);
                }
            }
            Ok(message) => {
                if let Message::Output(Output { findings, .. }) = &message {
                    findings.iter().for_each(|finding| totals.cheetahs.add(finding));
                }
                on_update(WatchUpdate::Message(&message), totals);
            }
        }
    }
}

fn finish_window(
    finished: FinishedWindow,
    totals: &mut Totals,
    on_update: &mut impl FnMut(WatchUpdate<'_>, &Totals),
) {
    on_update(WatchUpdate::Window(&finished), totals);
    if let Some(tasks) = &mut totals.tasks {
        tasks.add(finished);
    }
}
