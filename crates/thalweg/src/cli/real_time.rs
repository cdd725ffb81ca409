//! `thalweg emulate --real-time`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use thalweg_emulator::Slot;
use thalweg_experiment::{Experiment, Plan, files, plots};
use thalweg_linux::clock::realtime;
use thalweg_realtime::arbiter::serve::{monotonic_clock, serve};
use thalweg_realtime::arbiter::{Arbiter, BatchSocket, Options, Shards, Watchdog, WatchdogOptions};
use thalweg_wire::emulation_protocol::Session;
use thalweg_wire::{Nanos, Timestamp};

use super::exit_code::UsageError;
use crate::config::value::parse;
use crate::console;
use crate::emulate::{real_paths, real_time};

/// Options of a real-time emulation.
#[derive(Args, Debug)]
pub(super) struct RealTimeArgs {
    /// Emulate in real time: decide on the packets of endpoints, which send requests by UDP.
    ///
    /// Takes topology, scheme, routing and failures from the file. Runs until SIGINT or SIGTERM. With --output, writes the report
    /// (`real-time.json`), and queue lengths over time (`queues`) of the ports that the file names in `[measure]`.
    #[arg(long, help_heading = "Real time", conflicts_with_all = ["sweep", "print_config"])]
    pub(super) real_time: bool,

    /// Address for the endpoints' requests [default: 127.0.0.1:6589].
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Real time", requires = "real_time")]
    listen: Option<SocketAddr>,

    /// End after this time.
    #[arg(long, value_name = "TIME", help_heading = "Real time", requires = "real_time", value_parser = parse::<Nanos>)]
    duration: Option<Nanos>,

    /// Delay of a timeslot from which it is late [default: 50us].
    #[arg(long, value_name = "TIME", help_heading = "Real time", requires = "real_time", value_parser = parse::<Nanos>)]
    late_after: Option<Nanos>,

    /// Largest share of late timeslots of a valid run [default: 0.001].
    #[arg(long, value_name = "SHARE", help_heading = "Real time", requires = "real_time")]
    late_share: Option<f64>,

    /// Let answers wait for others for this long [default: 10us].
    ///
    /// More answers share a datagram, which costs less of the network and of the processor, and delays each packet. Endpoints have the same option.
    #[arg(long, value_name = "TIME", help_heading = "Real time", requires = "real_time", value_parser = parse::<Nanos>)]
    batch_delay: Option<Nanos>,

    /// Run on this processor, from 0, ahead of other programs. With several threads: each further one on the next processor.
    ///
    /// A timeslot is late if another program runs when it is due. The thread of the socket gets real-time priority. It rests for a twentieth of its
    /// time, or hardly ever if `sysctl kernel.sched_rt_runtime_us` is -1. Needs root or CAP_SYS_NICE to be ahead of others. Root also keeps idle
    /// processors of the machine from sleeping meanwhile.
    #[arg(long, value_name = "N", help_heading = "Real time", requires = "real_time")]
    processor: Option<usize>,

    /// All paths of the real network between two hosts have the same delay, for instance because one switch connects them.
    ///
    /// Without it, a topology with several paths is refused: real packets may take others than the emulated ones.
    #[arg(long, help_heading = "Real time", requires = "real_time")]
    equal_paths: bool,

    /// Wait as a secondary, and take over when the arbiter at this address is silent for 25 ms.
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Real time", requires = "real_time")]
    standby_of: Option<String>,
}

/// How often a thread with real-time priority rests: often if the kernel would stop it otherwise, since a rest takes 15 to 25 us and the kernel wants a
/// twentieth of the time; else for other threads of this processor that wait.
const REST_EVERY: Nanos = Nanos::from_millis(10);
const REST_EVERY_IF_LIMITED: Nanos = Nanos::from_micros(160);

/// Address for requests.
const LISTEN: ([u8; 4], u16) = ([127, 0, 0, 1], 6_589);

impl RealTimeArgs {
    /// Serves endpoints on so many threads until `stop` is set, and reports. `tables` is the folder for files, with the format of
    /// tables.
    ///
    /// # Errors
    /// If the experiment or an option is invalid, the address cannot be used, or the report cannot be written.
    pub(super) fn run(
        &self,
        (path, experiment): (&Path, &Experiment),
        tables: Option<(&Path, files::Format)>,
        threads: usize,
        json: bool,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        let plan = Plan::for_real_time(experiment)?;
        plan.warnings.iter().for_each(console::warn);
        if !self.equal_paths {
            real_paths::check(&plan.topology)
                .map_err(|error| UsageError(format!("{}: {error}", path.display())))?;
        }
        if let Some((folder, _)) = tables {
            remove_old(folder)?;
        }
        warn_about_threads(threads);
        let mut options = self.options(&plan);
        options.check().map_err(|error| UsageError(error.to_string()))?;
        let watchdog = self.standby_of.as_deref().map(primary).transpose()?;
        let blueprint = real_time::blueprint(&plan);
        let clock = blueprint.clock;
        let events = plan.events.iter().map(|event| (clock.slot_at(event.at), event.in_network()));
        let events: Vec<(Slot, _)> = events.collect();
        let session = next_session();
        let processor = self.processor;
        if let Some(number) = processor {
            let is_real_time = own(number, true)
                .with_context(|| format!("cannot run on processor {number} of --processor"))?;
            options.rest_every = is_real_time.then(rest_every);
            if !is_real_time {
                console::warn(
                    "no real-time priority, for which root or CAP_SYS_NICE is needed: other programs of this processor make timeslots late",
                );
            }
        }
        let _awake = processor.map(|_| keep_awake());
        let begin = move |shard| {
            if let Some(number) = processor {
                // One that does not exist: late timeslots will show.
                let _ = own(number + 1 + shard, false);
            }
        };
        let (mut arbiter, start) = match threads {
            0 | 1 => {
                let network = thalweg_emulator::network::build(&plan.scheme, &blueprint)?;
                (Arbiter::new(options, network, plan.mtu, events, session)?, None)
            }
            _ => {
                let start = Instant::now();
                let shards =
                    Shards::start(threads - 1, &blueprint, &plan.scheme, events, &options, (start, begin))?;
                (Arbiter::with_shards(options, shards, plan.mtu, session)?, Some(start))
            }
        };
        let records_queues = plan.measure.names_ports && tables.is_some();
        let has_series = records_queues && arbiter.record_queues(plan.measure.ports.clone());
        if records_queues && !has_series {
            console::warn("queue lengths over time are not kept with several threads");
        }
        let listen = self.listen.unwrap_or(LISTEN.into());
        let mut socket = BatchSocket::bind(listen, options.session.link.max_datagram)
            .with_context(|| format!("cannot listen on {listen}"))?;
        let address = socket.local_addr()?;
        let endpoints = plan.topology.endpoints().len();
        let role = if watchdog.is_some() { ", as a secondary" } else { "" };
        console::note(format_args!("emulating {endpoints} endpoints in real time on {address}{role}"));
        let until = self.duration.map(|duration| Timestamp(duration.0));
        let start = start.unwrap_or_else(Instant::now);
        let started_at = Timestamp(realtime().0.saturating_sub(start.elapsed().as_nanos() as u64));
        let report = serve(&mut arbiter, &mut socket, watchdog, &mut monotonic_clock(start), until, stop)
            .with_context(|| format!("cannot receive on {address}"))?;
        let document = real_time::json(&plan, &options, &report, started_at);
        if let Some((folder, format)) = tables {
            let path = folder.join("real-time.json");
            std::fs::write(&path, &document).with_context(|| format!("cannot write {}", path.display()))?;
            if has_series {
                let rows = real_time::queue_rows(&plan, &report);
                files::write_rows(folder, format, &rows)?;
                let title = format!("{}, {}, scheme {}", plan.name, plan.topology_name, plan.scheme.name());
                plots::draw_queues(folder, &title, &rows, report.duration)?;
            }
        }
        super::print(if json { document } else { real_time::text(&plan, &options, &report) })
    }

    fn options(&self, plan: &Plan) -> Options {
        let mut options = Options::default();
        options.sample_every = plan.measure.queue_interval.unwrap_or(options.sample_every);
        if let Some(delay) = self.batch_delay {
            options.session.link = options.session.link.with_batches(delay);
        }
        options.pace.late_after = self.late_after.unwrap_or(options.pace.late_after);
        options.pace.max_late_share = self.late_share.unwrap_or(options.pace.max_late_share);
        options.pace.max_catch_up = options.pace.max_catch_up.max(options.pace.late_after);
        options
    }
}

/// What an earlier run may have left in a folder: this one may not write all of it.
const FILES: [&str; 4] = ["real-time.json", "queues.parquet", "queues.csv", "queues.svg"];

/// Removes the files of an earlier run.
fn remove_old(folder: &Path) -> anyhow::Result<()> {
    for path in FILES.map(|name| folder.join(name)) {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", path.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Threads never sleep, so more of them than processors make each other late.
fn warn_about_threads(threads: usize) {
    let processors = available_parallelism().map_or(1, NonZeroUsize::get);
    if threads > processors {
        console::warn(format_args!(
            "--threads {threads}: this machine has {processors} processors, and the threads never sleep: timeslots will be late"
        ));
    }
}

/// How often a thread with real-time priority has to rest.
#[cfg(target_os = "linux")]
fn rest_every() -> Nanos {
    if thalweg_linux::priority::has_real_time_limit() { REST_EVERY_IF_LIMITED } else { REST_EVERY }
}

#[cfg(not(target_os = "linux"))]
const fn rest_every() -> Nanos {
    REST_EVERY_IF_LIMITED
}

/// Keeps the processors of the machine from sleeping, if that is allowed: hosts on it answer sooner, and a rest is shorter.
#[cfg(target_os = "linux")]
fn keep_awake() -> Option<thalweg_linux::awake::Awake> {
    thalweg_linux::awake::Awake::keep().ok()
}

#[cfg(not(target_os = "linux"))]
fn keep_awake() {}

/// Runs the calling thread on a processor, ahead of other programs if that is allowed. One that rests may have real-time priority; returns whether
/// it has.
#[cfg(target_os = "linux")]
fn own(processor: usize, rests: bool) -> std::io::Result<bool> {
    use thalweg_linux::priority::{be_preferred, be_real_time, run_on};
    run_on(processor)?;
    // Without the privilege it runs like others.
    let is_ahead = if rests { be_real_time() } else { be_preferred() };
    Ok(rests && is_ahead.is_ok())
}

#[cfg(not(target_os = "linux"))]
fn own(_processor: usize, _rests: bool) -> std::io::Result<bool> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// The session that begins with the next tenth of a second. Endpoints take a run with the session of an earlier run for that run.
fn next_session() -> Session {
    const TENTH: u64 = 100_000_000;
    std::thread::sleep(Nanos(TENTH - realtime().0 % TENTH).into());
    Session::started_at(realtime())
}

/// The watchdog of the arbiter with this name or address.
fn primary(address: &str) -> anyhow::Result<Watchdog> {
    let expected = || format!("invalid address \"{address}\" of --standby-of: expected ADDRESS:PORT");
    let addresses =
        address.to_socket_addrs().map_err(|error| UsageError(format!("{}: {error}", expected())))?;
    let primary = addresses.into_iter().next().ok_or_else(|| UsageError(expected()))?;
    Ok(Watchdog::new(primary, WatchdogOptions::default()))
}
