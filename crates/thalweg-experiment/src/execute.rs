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
use super::plan::Plan;
use super::results::Results;
use super::run::{Ended, Run, RunError};
use super::summary;

/// Slots between two looks at whether somebody wants to know or to stop.
const SLOTS_A_LOOK: u64 = 1 << 10;

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Time emulated.
    pub emulated: Nanos,
    /// Time to emulate.
    pub duration: Nanos,
    /// Packets that have arrived.
    pub packets: u64,
    /// Flows that have yet to complete, once the duration is over and the network drains.
    pub unfinished: Option<u64>,
}

/// Runs an experiment. `hear` is told from time to time how far it has come; `stop` ends it, with what was measured so
/// far. Only if there is a folder, rows of queues and links are kept, and what monitor ports send is written into it.
///
/// # Errors
/// If the network cannot be built, captures cannot be written, or packets are not conserved.
pub fn run(
    plan: Plan,
    folder: Option<&Path>,
    stop: &AtomicBool,
    hear: &mut dyn FnMut(Progress),
) -> Result<Results, RunError> {
    let started = Instant::now();
    let mut run = Run::new(plan)?;
    let not_written =
        |source| RunError::Mirror { folder: folder.unwrap_or(Path::new("")).to_owned(), source };
    let topology = run.plan.topology.clone();
    let mut mirrors = Mirrors::new(&run, &topology, folder).map_err(not_written)?;
    let mut interrupted = go(&mut run, &mut mirrors, stop, hear).map_err(not_written)?;
    mirrors.captures.map_or(Ok(()), CaptureFiles::finish).map_err(not_written)?;
    run.end_measurement();
    let mirrors = summary::mirrors(&run);
    if !interrupted {
        interrupted = drain(&mut run, stop, hear);
    }
    let in_flight = run.check_conservation()?;
    let wall_seconds = started.elapsed().as_secs_f64();
    let ended = Ended { in_flight, interrupted, wall_seconds, keep_rows: folder.is_some(), mirrors };
    Ok(summary::results(&run, &ended))
}

/// What monitor ports of a run send, and the files that it is written into.
struct Mirrors<'a> {
    feed: MirrorFeed<'a>,
    captures: Option<CaptureFiles>,
}

impl<'a> Mirrors<'a> {
    /// Without a folder the packets of monitor ports are counted, but not kept.
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

/// Runs all slots. Says whether it was stopped before the last.
fn go(
    run: &mut Run,
    mirrors: &mut Mirrors<'_>,
    stop: &AtomicBool,
    hear: &mut dyn FnMut(Progress),
) -> io::Result<bool> {
    let mut next_look = Slot(0);
    while !run.is_over() {
        if run.watched.now() >= next_look {
            next_look = run.watched.now() + SLOTS_A_LOOK;
            hear(progress(run));
            if stop.load(Ordering::Relaxed) {
                return Ok(true);
            }
        }
        run.slot(|network, hosts| mirrors.slot(network, hosts))?;
    }
    hear(progress(run));
    Ok(false)
}

/// Runs slots in which no flow starts until all have completed. Returns whether it was stopped before.
fn drain(run: &mut Run, stop: &AtomicBool, hear: &mut dyn FnMut(Progress)) -> bool {
    let mut next_look = Slot(0);
    while !run.is_drained() {
        if run.watched.now() >= next_look {
            next_look = run.watched.now() + SLOTS_A_LOOK;
            hear(progress(run));
            if stop.load(Ordering::Relaxed) {
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
