//! Runs an experiment from its first slot to its results.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use thalweg_emulator::hosts::Hosts;
use thalweg_emulator::mirror::MirrorFeed;
use thalweg_emulator::{Fabric, Network, Slot};
use thalweg_network::Topology;
use thalweg_wire::Nanos;

use super::captures::CaptureFiles;
use super::files::Output;
use super::plan::Plan;
use super::results::Results;
use super::run::{Ended, Run, RunError};
use super::summary;

/// Slots between progress reports and checks of `stop`.
const SLOTS_PER_REPORT: u64 = 1 << 10;

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Time emulated.
    pub emulated: Nanos,
    /// Time to emulate and measure.
    pub duration: Nanos,
    /// Packets delivered.
    pub packets: u64,
    /// Flows that have not completed, while the network drains after the duration.
    pub unfinished: Option<u64>,
}

/// Runs an experiment. Calls `report` regularly with the progress. `stop` ends the run early, with what was measured so
/// far. With an output, rows of queues and links are recorded, and time series and the packets of monitor ports are written
/// to its folder.
///
/// # Errors
/// If the network cannot be built, captures or time series cannot be written, or packets are not conserved.
pub fn run(
    plan: Plan,
    output: Option<Output<'_>>,
    stop: &AtomicBool,
    report: &mut dyn FnMut(Progress),
) -> Result<Results, RunError> {
    let started = Instant::now();
    let mut run = Run::new(plan)?;
    output.map_or(Ok(()), |output| run.write_series(output))?;
    let folder = output.map(|output| output.folder);
    let not_written =
        |source| RunError::Mirror { folder: folder.unwrap_or(Path::new("")).to_owned(), source };
    let topology = run.plan.topology.clone();
    let mut mirrors = Mirrors::new(&run, &topology, folder).map_err(not_written)?;
    let mut interrupted = run_duration(&mut run, &mut mirrors, stop, report).map_err(not_written)?;
    mirrors.captures.map_or(Ok(()), CaptureFiles::finish).map_err(not_written)?;
    run.end_measurement();
    let mirrors = summary::mirrors(&run);
    if !interrupted {
        interrupted = drain(&mut run, stop, report);
    }
    let series = run.finish_series()?;
    let in_flight = run.check_conservation()?;
    let wall_seconds = started.elapsed().as_secs_f64();
    let ended = Ended { in_flight, interrupted, wall_seconds, keep_rows: folder.is_some(), mirrors, series };
    Ok(summary::results(&run, &ended))
}

/// The feed of monitor ports and their capture files.
struct Mirrors<'a> {
    feed: MirrorFeed<'a>,
    captures: Option<CaptureFiles>,
}

impl<'a> Mirrors<'a> {
    /// Without a folder, packets of monitor ports are only counted.
    fn new(run: &Run, topology: &'a Topology, folder: Option<&Path>) -> io::Result<Mirrors<'a>> {
        let monitors = folder.iter().flat_map(|_| run.plan.monitors.iter().map(|monitor| monitor.router));
        let mut feed = MirrorFeed::new(topology, run.clock, monitors);
        let captures = folder.map(|folder| CaptureFiles::create(&mut feed, topology, folder)).transpose()?;
        Ok(Mirrors { feed, captures })
    }

    fn slot(&mut self, network: &mut dyn Network, hosts: Option<&Hosts>) -> io::Result<()> {
        let Mirrors { feed, captures } = self;
        feed.collect(network, |copy| hosts.and_then(|hosts| hosts.segment(copy.packet.id())));
        match captures {
            Some(captures) => feed.try_deliver(|router, batch| captures.write(router, &batch)),
            None => Ok(()),
        }
    }
}

/// Runs all slots of the duration. Returns whether the run was stopped early.
fn run_duration(
    run: &mut Run,
    mirrors: &mut Mirrors<'_>,
    stop: &AtomicBool,
    report: &mut dyn FnMut(Progress),
) -> io::Result<bool> {
    let mut next_report = Slot(0);
    while !run.is_over() {
        if run.watched.now() >= next_report {
            next_report = run.watched.now() + SLOTS_PER_REPORT;
            report(progress(run));
            if stop.load(Ordering::Relaxed) || run.has_failed() {
                return Ok(true);
            }
        }
        if !run.open_loop_slots(next_report) {
            run.slot(|network, hosts| mirrors.slot(network, hosts))?;
        }
    }
    report(progress(run));
    Ok(false)
}

/// Runs slots without new flows until all flows have completed. Returns whether the run was stopped early.
fn drain(run: &mut Run, stop: &AtomicBool, report: &mut dyn FnMut(Progress)) -> bool {
    let mut next_report = Slot(0);
    while !run.is_drained() {
        if run.watched.now() >= next_report {
            next_report = run.watched.now() + SLOTS_PER_REPORT;
            report(progress(run));
            if stop.load(Ordering::Relaxed) || run.has_failed() {
                return true;
            }
        }
        let Ok(()) = run.slot(|network, _| {
            let mut unread = Vec::new();
            network.take_mirrored(&mut unread);
            Ok::<(), Infallible>(())
        });
    }
    false
}

fn progress(run: &Run) -> Progress {
    Progress {
        emulated: Nanos(run.clock.start_of(run.watched.now()).0),
        duration: run.plan.duration,
        packets: run.watched.delivered(),
        unfinished: run.measured.as_ref().map(|_| run.unfinished()),
    }
}
