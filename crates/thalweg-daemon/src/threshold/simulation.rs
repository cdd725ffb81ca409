//! Simulations of recorded periods, one after the other, on a thread of the lowest priority.
//!
//! All rates and round-trip times are replayed in one pass. In quick mode, a quarter of the period stands for it
//! ([`Sample`]), with an error that the curve states.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use thalweg_control::threshold::Input;
use thalweg_control::threshold::loss_curve::{LossCurve, LossPoint};
use thalweg_control::threshold::period::Period;
use thalweg_control::threshold::tag::Tag;
use thalweg_emulator::bottleneck::lane::PortFlow;
use thalweg_emulator::bottleneck::round_flow::RoundFlow;
use thalweg_emulator::bottleneck::sample::Sample;
use thalweg_emulator::bottleneck::setup::{LossTable, Setup, SetupError};
use thalweg_emulator::bottleneck::tcp_flow::TcpFlow;
use thalweg_emulator::workloads::burst_process::Arrival;
use thalweg_linux::priority::be_idle;
use thalweg_records::recording::{RecordedPacket, RecordingError, RecordingReader};
use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

use super::recorder::Recorder;
use crate::config::{FlowModel, SimulationOptions};

/// Packets between two looks at whether the daemon stops.
const GROUP: usize = 1_024;

/// Picoseconds per nanosecond.
const NANO_PS: u64 = 1_000;

/// Why a simulation has no result.
#[derive(Debug, Error)]
pub(super) enum SimulationError {
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The packets cannot be replayed.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The daemon stops.
    #[error("stopped")]
    Stopped,
}

/// The state of the thread, for progress reports.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The period that is simulated, plus 1; 0 for none.
    period: AtomicU64,
    /// Packets of its file, and those read.
    packets: AtomicU64,
    read: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// Returns the period that is simulated, and the share of its packets that were read; `None` if none is.
    pub(super) fn current(&self) -> Option<(Period, f64)> {
        let period = self.period.load(Ordering::Relaxed).checked_sub(1)?;
        let packets = self.packets.load(Ordering::Relaxed).max(1);
        Some((Period(period), self.read.load(Ordering::Relaxed) as f64 / packets as f64))
    }

    fn check(&self) -> Result<(), SimulationError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(SimulationError::Stopped),
            false => Ok(()),
        }
    }
}

/// A thread that simulates periods. Dropping it stops the thread.
#[derive(Debug)]
pub(super) struct Simulator {
    jobs: Option<Sender<(Period, Tag)>>,
    results: Receiver<Input>,
    progress: Arc<Progress>,
    thread: Option<JoinHandle<()>>,
}

impl Simulator {
    /// Starts the thread.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn start(folder: &Path, options: SimulationOptions) -> std::io::Result<Simulator> {
        let (jobs, waiting) = bounded::<(Period, Tag)>(1);
        let (sender, results) = unbounded();
        let progress = Arc::new(Progress::default());
        let (folder, shared) = (folder.to_owned(), Arc::clone(&progress));
        let work = move || {
            if let Err(error) = be_idle() {
                tracing::warn!(%error, "simulations run at normal priority");
            }
            for (period, tag) in waiting {
                match simulate(&Recorder::path(&folder, period), period, tag, &options, &shared) {
                    Ok(curve) => drop(sender.send(Input::Simulated(period, curve))),
                    Err(SimulationError::Stopped) => return,
                    Err(error) => {
                        tracing::error!(%error, period = period.0, "traffic not simulated");
                        let _ = sender.send(Input::NotSimulated(period));
                    }
                }
                shared.period.store(0, Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new().name("simulation".to_owned()).spawn(work)?;
        Ok(Simulator { jobs: Some(jobs), results, progress, thread: Some(thread) })
    }

    /// Simulates a period. One at a time: the next after the result of this one.
    pub(super) fn simulate(&self, period: Period, tag: Tag) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.try_send((period, tag));
        }
    }

    /// The results.
    pub(super) fn results(&self) -> &Receiver<Input> {
        &self.results
    }

    /// The progress.
    pub(super) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.progress.stop.store(true, Ordering::Relaxed);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Simulates a recording.
fn simulate(
    path: &Path,
    period: Period,
    tag: Tag,
    options: &SimulationOptions,
    progress: &Progress,
) -> Result<LossCurve, SimulationError> {
    progress.read.store(0, Ordering::Relaxed);
    progress.period.store(period.0 + 1, Ordering::Relaxed);
    let start = period.start(options.period);
    let table = match options.flow {
        FlowModel::Tcp => replay(path, start, options, progress, TcpFlow::new),
        FlowModel::Rounds => replay(path, start, options, progress, |rate, round_trip| {
            RoundFlow::new(rate, round_trip, options.setup.port_rate)
        }),
    }?;
    let point = table.of_longest_round_trip().map(|row| LossPoint {
        rate: row.rate,
        loss: row.loss(),
        error: row.error,
    });
    Ok(LossCurve { tag, points: point.collect(), seconds: table.seconds })
}

/// Replays a recording that starts at `start`.
fn replay<F: PortFlow>(
    path: &Path,
    start: Timestamp,
    options: &SimulationOptions,
    progress: &Progress,
    flow: impl Fn(thalweg_wire::BitRate, Nanos) -> F,
) -> Result<LossTable, SimulationError> {
    let mut reader = RecordingReader::open(path)?;
    progress.packets.store(reader.packets(), Ordering::Relaxed);
    let mut setup = Setup::new(&options.setup, flow)?;
    let mut sample = match options.is_quick {
        true => Sample::quick(options.period),
        false => Sample::all(),
    };
    let mut packets: Vec<RecordedPacket> = Vec::new();
    while reader.next(&mut packets)? {
        for some in packets.chunks(GROUP) {
            progress.check()?;
            for packet in some {
                let at_ps = (packet.time - start).0 * NANO_PS;
                sample.add(Arrival { at_ps, length: packet.length }, &mut setup)?;
            }
            progress.read.fetch_add(some.len() as u64, Ordering::Relaxed);
        }
    }
    Ok(sample.finish(&mut setup)?)
}

/// Returns the file of a period that exists.
pub(super) fn recorded(folder: &Path, period: Period) -> Option<PathBuf> {
    Some(Recorder::path(folder, period)).filter(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use thalweg_emulator::bottleneck::setup::SetupConfig;
    use thalweg_emulator::workloads::burst_process::{BurstPackets, BurstProcess, Rounding};
    use thalweg_records::recording::RecordingWriter;
    use thalweg_wire::BitRate;

    use super::*;

    /// A recording of 60 s of the dissertation's traffic in period 7.
    fn record(folder: &Path) -> (PathBuf, u64) {
        let process = BurstProcess::of_dissertation(15.0, BitRate(200_000_000));
        let start = Period(7).start(Nanos::from_secs(60));
        let path = Recorder::path(folder, Period(7));
        let mut file = RecordingWriter::create(&path).unwrap();
        let packets: Vec<RecordedPacket> = BurstPackets::new(&process, 1, Rounding::Up)
            .unwrap()
            .take_while(|arrival| arrival.at_ps < 60_000_000_000_000)
            .map(|arrival| RecordedPacket {
                time: start + Nanos(arrival.at_ps / NANO_PS),
                length: arrival.length,
            })
            .collect();
        file.add(&packets).unwrap();
        file.finish().unwrap();
        (path, packets.len() as u64)
    }

    fn options(is_quick: bool) -> SimulationOptions {
        SimulationOptions {
            setup: SetupConfig {
                port_rate: BitRate(1_000_000_000),
                buffer: 200_000,
                rates: [200, 800].map(|rate| BitRate(rate * 1_000_000)).to_vec(),
                round_trips: [10, 100].map(Nanos::from_millis).to_vec(),
                window: Nanos::from_millis(100),
            },
            period: Nanos::from_secs(60),
            flow: FlowModel::Rounds,
            is_quick,
        }
    }

    const TAG: Tag = Tag { mean_rate: BitRate(200_000_000), burstiness: 0.66 };

    #[test]
    fn a_recording_gives_a_curve_of_the_longest_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        let (path, packets) = record(folder.path());
        let progress = Progress::default();
        let curve = simulate(&path, Period(7), TAG, &options(false), &progress).unwrap();
        assert_eq!(progress.current(), Some((Period(7), 1.0)));
        assert_eq!((curve.tag, curve.points.len()), (TAG, 2));
        assert!(curve.points[0].loss < curve.points[1].loss, "{curve:?}");
        assert!((curve.seconds - 60.0).abs() < 0.1 && packets > 500_000, "{curve:?} {packets}");
        assert!(curve.points.iter().all(|point| point.error == 0.0));
    }

    #[test]
    fn a_quick_simulation_replays_a_quarter_and_states_its_error() {
        let folder = tempfile::tempdir().unwrap();
        let (path, _) = record(folder.path());
        let [whole, quick] = [false, true].map(|is_quick| {
            simulate(&path, Period(7), TAG, &options(is_quick), &Progress::default()).unwrap()
        });
        assert!((quick.seconds - 15.0).abs() < 0.1, "{quick:?}");
        let (whole, quick) = (whole.points[1], quick.points[1]);
        assert!(quick.error > 0.0, "{quick:?}");
        // A normal deviate exceeds four with a probability of 6e-5; the seed is fixed.
        assert!((quick.loss - whole.loss).abs() < 4.0 * quick.error, "{quick:?} {whole:?}");
    }

    #[test]
    fn a_missing_recording_is_an_error_and_a_stop_ends_a_simulation() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none.parquet");
        let error = simulate(&missing, Period(7), TAG, &options(false), &Progress::default());
        assert!(matches!(error, Err(SimulationError::Recording(_))));
        let (path, _) = record(folder.path());
        let progress = Progress::default();
        progress.stop.store(true, Ordering::Relaxed);
        let error = simulate(&path, Period(7), TAG, &options(false), &progress);
        assert!(matches!(error, Err(SimulationError::Stopped)));
    }

    #[test]
    fn the_thread_answers_and_goes_on_after_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        record(folder.path());
        let simulator = Simulator::start(folder.path(), options(true)).unwrap();
        simulator.simulate(Period(6), TAG);
        assert_eq!(simulator.results().recv().unwrap(), Input::NotSimulated(Period(6)));
        simulator.simulate(Period(7), TAG);
        assert!(matches!(simulator.results().recv().unwrap(), Input::Simulated(Period(7), _)));
    }
}
