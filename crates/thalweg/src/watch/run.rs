//! One run of `thalweg watch`: opens sources, starts workers, shows what they find.

use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use thalweg_capture::privileges::drop_privileges;
use thalweg_measure::meter::flow_table::Output;
use thalweg_measure::meter::intake::Intake;
use thalweg_measure::tasks::{Plan as TaskPlan, TasksOptions};
use thalweg_wire::HashSeed;
use thalweg_wire::parse::Parser;

use super::handing::Handing;
use super::inputs::Inputs;
use super::json::{FlowLine, Line, Summary};
use super::live_view::{LiveView, Query, Theme};
use super::meter::Meter;
use super::options::{Show, WatchOptions};
use super::reader::{Limits, Pace};
use super::report;
use super::tasks::json::WindowLine;
use super::tasks::{Collector, Finished, Monitoring, Saving, TaskLedger, Turn};
use super::totals::Totals;
use super::view_feed::ViewFeed;
use super::worker::{BATCHES_IN_FLIGHT, Dealer, Dealt, Message, Metering, Reading, Wants};
use crate::figures::grouped;
use crate::terminal;

/// Messages on their way to the main thread, at most; a worker whose message does not fit in waits.
const MESSAGES_IN_FLIGHT: usize = 256;

/// Snapshots that a slow terminal may be behind.
const SNAPSHOTS_IN_FLIGHT: usize = 2;

/// How long the last snapshot waits for a terminal that does not keep up.
const LAST_SNAPSHOT_WAIT: Duration = Duration::from_secs(2);

/// How often the progress bar moves.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was measured.
    Complete,
    /// An input ended before its time: what came before was measured.
    CutShort,
}

/// Watches the sources until they end, a limit is reached or somebody stops it.
///
/// # Errors
/// If it cannot start: a source cannot be opened, memory does not suffice, an option is out of range. What
/// happens to a source later is told in the report and by [`Outcome::CutShort`].
pub fn run(options: &WatchOptions) -> anyhow::Result<Outcome> {
    let seed = options.seed.unwrap_or_else(random_seed);
    let (inputs, notices) = Inputs::open(options)?;
    for notice in notices {
        eprintln!("thalweg: {notice}");
    }
    let mut plan = Plan::new(inputs, options, seed)?;
    if plan.live {
        drop_privileges().context("cannot give up the privileges that capturing needed")?;
    }
    if let (Some(folder), Some(_)) = (&options.save_states, &plan.tasks) {
        // As the user who will write there.
        plan.saving = Some(Saving::into(folder)?);
    }
    plan.handing = Handing::start(options, plan.live)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The first one stops; a second one, while stopping takes its time, ends the process.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let started = Instant::now();
    let mut totals = match options.show {
        Show::LiveView => show_live(plan, options, &stop)?,
        Show::Summary => show_summary(plan, options, &stop)?,
        Show::Json { flows } => show_json(plan, options, &stop, flows)?,
    };
    totals.elapsed = started.elapsed();
    finish(&totals, options)
}

/// The last words: report or summary line, and warnings.
fn finish(totals: &Totals, options: &WatchOptions) -> anyhow::Result<Outcome> {
    let mut out = BufWriter::new(io::stdout().lock());
    let together = totals.tasks.as_ref().and_then(|tasks| tasks.together.as_ref());
    if let (Show::Json { .. }, Some(together)) = (options.show, together) {
        json_line(&mut out, &Line::KeptWindows(WindowLine::from(together)))
            .context("cannot write to standard output")?;
    }
    match options.show {
        Show::Json { .. } => json_line(&mut out, &Line::Summary(Box::new(Summary::from(totals)))),
        Show::LiveView | Show::Summary => report::write(&mut out, totals, options),
    }
    .and_then(|()| out.flush())
    .context("cannot write the report")?;
    for cut in &totals.cut_short {
        eprintln!("thalweg: warning: {}; everything before was measured", cut.reason);
    }
    Ok(if totals.cut_short.is_empty() { Outcome::Complete } else { Outcome::CutShort })
}

/// Seeds are only to be unknown to who sends packets: what the system gives to hash maps will do.
fn random_seed() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// What is to run: readings and meters, memory allocated, nothing started.
struct Plan {
    inputs: Inputs,
    /// One for each metering thread; `None` without a flow table.
    meters: Vec<Option<Meter>>,
    tasks: Option<TaskPlan>,
    saving: Option<Saving>,
    handing: Option<Handing>,
    parser: Parser,
    seed: u64,
    pace: Option<Pace>,
    live: bool,
}

impl Plan {
    fn new(inputs: Inputs, options: &WatchOptions, seed: u64) -> anyhow::Result<Plan> {
        let (live, workers) = match &inputs {
            Inputs::Files(_) => (false, options.workers.unwrap_or(1).max(1)),
            Inputs::Rings(rings) => (true, rings.len()),
        };
        let tasks = options.tasks.clone().map(|tasks| TaskPlan::new(TasksOptions { seed, workers, ..tasks }));
        let tasks = tasks.transpose().context("the measurement tasks cannot be planned")?;
        let meter = |_| options.table.then(|| Meter::new(options, workers, seed)).transpose();
        let meters = (0..workers).map(meter).collect::<anyhow::Result<_>>()?;
        let pace = options.replay.filter(|_| !live).map(Pace::new);
        let parser = Parser { peel_tunnels: options.peel_tunnels };
        Ok(Plan { inputs, meters, tasks, saving: None, handing: None, parser, seed, pace, live })
    }

    /// Threads that tell the main thread something.
    fn workers(&self) -> usize {
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
        let pace = self.pace;
        let reading = |worker| Reading::new(worker, intake(), sender.clone());
        let tasks = self.tasks;
        let metering = |worker, meter| {
            let turns = turns.get(worker).cloned();
            let monitoring = tasks.as_ref().zip(turns);
            let monitoring =
                monitoring.map(|(plan, turns)| Monitoring::new(plan, worker, turns, sender.clone()));
            Metering::new(worker, meter, monitoring, wants.clone(), sender.clone())
        };
        let window = tasks.as_ref().map(|plan| plan.options().window);
        let meters = self.meters.into_iter().enumerate();
        let start = |work: Box<dyn FnOnce() -> Message + Send + 'scope>| {
            let sender = sender.clone();
            scope.spawn(move || super::worker::tell(&sender, work()))
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
                    let (deal, dealt) = bounded::<Dealt>(BATCHES_IN_FLIGHT);
                    senders.push(deal);
                    let metering = metering(worker, meter);
                    handles.push(start(Box::new(move || done(metering.run(&dealt)))));
                }
                let worker = senders.len();
                // Another seed than the tables have: the flows of one worker are to spread over all its buckets.
                let deal_seed = HashSeed::new(!self.seed);
                let views = wants.views.is_some();
                let dealer = Dealer::new(worker, deal_seed, senders, sender.clone(), views, window);
                let reading = reading(worker);
                handles.push(start(Box::new(move || done(reading.run(files, pace, limits, dealer)))));
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

fn done(done: super::worker::Done) -> Message {
    Message::Done(Box::new(done))
}

/// What the main thread hears of.
pub(super) enum Heard<'a> {
    /// Nothing for a while.
    Silence,
    /// A worker's message.
    Message(&'a Message),
    /// A window of all workers that is over.
    Window(&'a Finished),
}

/// Runs the plan; `hear` gets everything as it comes.
///
/// # Errors
/// If states cannot be saved; then everything has been stopped.
fn run_plan(
    mut plan: Plan,
    options: &WatchOptions,
    wants: Wants,
    stop: &AtomicBool,
    mut hear: impl FnMut(Heard<'_>, &Totals),
) -> anyhow::Result<Totals> {
    let (sender, receiver) = bounded(MESSAGES_IN_FLIGHT);
    let mut totals = Totals { tasks: plan.tasks.as_ref().map(TaskLedger::new), ..Totals::default() };
    let (mut collector, turns) = plan.tasks.as_ref().map(Collector::new).unzip();
    let turns = turns.unwrap_or_default();
    let saving = plan.saving.take();
    let mut handing = plan.handing.take();
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
        let limits = Limits { stop, duration: options.duration };
        let handles = plan.start(scope, &wants, limits, &sender, turns);
        drop(sender);
        let mut hear = |heard: Heard<'_>, totals: &Totals| {
            if let Some(handing) = &mut handing {
                handing.hear(&heard);
            }
            hear(heard, totals);
        };
        collect(&receiver, options, collector.as_mut(), &mut totals, &mut save, &mut hear);
        for handle in handles {
            if let Err(panic) = handle.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    if let Some(tasks) = &mut totals.tasks {
        tasks.together = collector.and_then(|collector| collector.together());
    }
    totals.handed_on = handing.map(|handing| handing.finish(&totals.intake));
    saved.map(|()| totals)
}

fn collect(
    receiver: &Receiver<Message>,
    options: &WatchOptions,
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
        match receiver.recv_timeout(PROGRESS_INTERVAL) {
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => hear(Heard::Silence, totals),
            Ok(Message::Done(done)) => totals.add(*done, options.top),
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

/// The report alone, with a progress bar while files are read.
fn show_summary(plan: Plan, options: &WatchOptions, stop: &AtomicBool) -> anyhow::Result<Totals> {
    let mut progress = FileProgress::new(&plan);
    let wants = Wants { records: plan.handing.is_some(), views: progress.views(), largest: options.top };
    let totals = run_plan(plan, options, wants, stop, |heard, _| progress.hear(&heard));
    progress.bar.finish_and_clear();
    totals
}

/// Lines of JSON as things happen.
fn show_json(plan: Plan, options: &WatchOptions, stop: &AtomicBool, flows: bool) -> anyhow::Result<Totals> {
    let mut progress = FileProgress::new(&plan);
    let wants =
        Wants { records: flows || plan.handing.is_some(), views: progress.views(), largest: options.top };
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout());
    let mut written = Ok(());
    let totals = run_plan(plan, options, wants, stop, |heard, _| {
        progress.hear(&heard);
        if written.is_ok() {
            written = match heard {
                Heard::Message(Message::Output(output)) => output_lines(&mut out, output, flows),
                Heard::Window(finished) => {
                    json_line(&mut out, &Line::Window(finished.into())).and_then(|()| out.flush())
                }
                _ => out.flush(),
            };
            if written.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
    progress.bar.finish_and_clear();
    written.and_then(|()| out.flush()).context("cannot write to standard output")?;
    totals
}

fn output_lines(out: &mut impl Write, output: &Output, flows: bool) -> io::Result<()> {
    for finding in &output.findings {
        json_line(out, &Line::from(finding))?;
    }
    for record in output.records.iter().filter(|_| flows) {
        json_line(out, &Line::Flow(FlowLine::from(record)))?;
    }
    // Findings are not to wait in a buffer.
    if output.findings.is_empty() { Ok(()) } else { out.flush() }
}

fn json_line(out: &mut impl Write, line: &Line<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// The live view; when it is left, everything stops.
fn show_live(plan: Plan, options: &WatchOptions, stop: &AtomicBool) -> anyhow::Result<Totals> {
    let (snapshots, shown) = bounded(SNAPSHOTS_IN_FLIGHT);
    let (asked, queries) = unbounded::<Query>();
    let query = Arc::new(Mutex::new(Query::default()));
    let wants =
        Wants { records: plan.handing.is_some(), views: Some(Arc::clone(&query)), largest: options.top };
    let mut feed = ViewFeed::new(plan.workers(), plan.live, plan.pace.is_some(), options.table);
    std::thread::scope(|scope| {
        let running = scope.spawn(move || {
            let current = || query.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let totals = run_plan(plan, options, wants, stop, |heard, totals| {
                if let Some(latest) = queries.try_iter().last() {
                    *query.lock().unwrap_or_else(PoisonError::into_inner) = latest;
                }
                if let Heard::Message(Message::View(view)) = heard {
                    feed.add((**view).clone());
                    // A terminal that does not keep up gets a later one; the view may have been left already.
                    let _ = snapshots.try_send(feed.snapshot(&current(), totals, false));
                }
            });
            let totals = totals?;
            let _ = snapshots.send_timeout(feed.snapshot(&current(), &totals, true), LAST_SNAPSHOT_WAIT);
            Ok(totals)
        });
        let left = terminal::run(&mut LiveView::new(Theme::from_environment()), &shown, &asked, stop);
        stop.store(true, Ordering::Relaxed);
        let totals = match running.join() {
            Ok(totals) => totals,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        left.context("cannot show the live view (try --summary or --json)")?;
        totals
    })
}

/// A progress bar on the terminal while files are read: on standard error, so that output can be redirected.
struct FileProgress {
    bar: ProgressBar,
}

impl FileProgress {
    fn new(plan: &Plan) -> FileProgress {
        let shown = !plan.live && plan.pace.is_none() && io::stderr().is_terminal();
        let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}  {msg}  {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        FileProgress {
            bar: if shown { ProgressBar::new(0).with_style(style) } else { ProgressBar::hidden() },
        }
    }

    /// Progress comes with views; nobody needs their flows.
    fn views(&self) -> Option<Arc<Mutex<Query>>> {
        let nothing = Query { limit: 0, ..Query::default() };
        (!self.bar.is_hidden()).then(|| Arc::new(Mutex::new(nothing)))
    }

    fn hear(&mut self, heard: &Heard<'_>) {
        let Heard::Message(Message::View(view)) = heard else { return };
        let Some(reading) = &view.reading else { return };
        let progress = reading.inputs.iter().filter_map(|input| input.progress);
        let (done, total) = progress.fold((0, 0), |sum, part| (sum.0 + part.done, sum.1 + part.total));
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.bar.set_message(format!("{} packets", grouped(reading.intake.frames.packets)));
    }
}
