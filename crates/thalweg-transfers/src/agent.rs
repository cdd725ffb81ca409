//! The agent: follows logs, samples the host, and sends both to the daemon.
//!
//! Three threads share the queue: one follows logs, one samples each second, one sends. So neither a daemon that does not answer nor a
//! name server stops the samples.
//!
//! | file | contents |
//! |---|---|
//! | `samples` | samples that wait for a report |
//! | `names` | addresses of peers that logs name |

mod names;
mod samples;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest};
use serde::Serialize;
use thalweg_api::client::Client;
use thalweg_api::{ReportRows, Transfer, TransferDirection};
use thalweg_linux::clock::realtime;
use thalweg_linux::durable_file;
use thalweg_wire::Timestamp;
use thiserror::Error;

use crate::follow::{FollowCounts, Found, LogFollower};
use crate::host::{
    ConnectionOptions, ConnectionSampler, LoadSampler, ParameterOptions, SampleTime, micros, parameters,
};
use crate::logs::{LoggedTransfer, Peer};
use crate::privacy::{Privacy, hex};
use crate::push::{Attempt, PushState, Pusher, lock};
use crate::queue::{Positions, Queue, QueueCounts, QueueError};
use names::{Names, look_up};
use samples::Samples;

/// Interval of samples.
const SECOND: Duration = Duration::from_secs(1);

/// Samples of blocked processes in an interval.
const BLOCKED_SAMPLES: u32 = 4;

/// Samples wait this long for a report.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// Interval of parameters of the host.
const PARAMETER_INTERVAL: Duration = Duration::from_secs(24 * 3_600);

/// Bytes of a log that are read before what was found goes into the queue.
const LOG_BYTES: u64 = 200 << 10;

/// How long the agent goes on sending when it is asked to stop.
const LAST_REPORTS: Duration = Duration::from_secs(3);

/// What an agent needs.
#[derive(Debug)]
pub struct AgentOptions {
    /// Name of the host, that of its token.
    pub host: String,
    /// The daemon.
    pub client: Client,
    /// Directory of the queue.
    pub queue: PathBuf,
    /// Maximum size of the queue in bytes.
    pub queue_bytes: u64,
    /// Whether names are reported as they are.
    pub privacy: Privacy,
    /// Parameters of the host that an operator states.
    pub parameters: ParameterOptions,
    /// The disk to sample; `None` for the busiest.
    pub disk: Option<String>,
    /// Which connections to report.
    pub connections: ConnectionOptions,
}

/// Why the agent ended.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The queue cannot be used.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// Connections cannot be listed.
    #[error("cannot list TCP connections: {0}")]
    Connections(std::io::Error),
    /// A thread panicked.
    #[error("a thread of the agent panicked")]
    Panicked,
}

/// What the agent shows in `status.json`.
#[derive(Debug, Serialize)]
struct Status<'a> {
    host: &'a str,
    /// Time of this status in microseconds since 1970.
    time_us: i64,
    daemon: PushState,
    queue: QueueStatus,
    logs: HashMap<String, FollowCounts>,
    /// Connections that were left out because there were too many.
    connections_left_out: u64,
    /// Samples that were dropped because the queue could not be written.
    samples_dropped: u64,
    /// Failures since the start, of any kind that is retried.
    errors: u64,
    last_error: &'a str,
}

#[derive(Debug, Serialize)]
struct QueueStatus {
    id: String,
    reports: usize,
    bytes: u64,
    #[serde(flatten)]
    counts: QueueCounts,
}

/// What the threads share.
struct Shared<'a> {
    options: &'a AgentOptions,
    queue: Mutex<Queue>,
    stop: &'a AtomicBool,
    daemon: Mutex<PushState>,
    logs: Mutex<HashMap<String, FollowCounts>>,
    errors: Mutex<(u64, String)>,
}

/// A log to follow.
pub type OpenLog = Box<dyn FnOnce(Option<crate::follow::Position>) -> LogFollower + Send>;

/// Runs the agent until `stop` is set, then sends what it can for a few seconds. `logs` opens the follower of each log, by its path, at the
/// position of an earlier run.
///
/// # Errors
/// If the queue or the list of connections cannot be opened.
pub fn run(
    options: &AgentOptions,
    logs: Vec<(String, OpenLog)>,
    stop: &AtomicBool,
) -> Result<(), AgentError> {
    let queue = Queue::open(&options.queue, options.queue_bytes)?;
    let sampler = ConnectionSampler::open(options.connections).map_err(AgentError::Connections)?;
    let positions = queue.positions().clone();
    let open = |(path, log): (String, OpenLog)| {
        let follower = log(positions.get(&path).cloned());
        (path, follower)
    };
    let logs: Vec<(String, LogFollower)> = logs.into_iter().map(open).collect();
    tracing::info!(
        host = options.host,
        daemon = options.client.base(),
        queue = %options.queue.display(),
        logs = logs.len(),
        waiting = queue.length().0,
        "agent started"
    );
    let shared = &Shared::new(options, queue, stop);
    std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| stopping_on_panic(stop, || shared.follow_logs(logs))),
            scope.spawn(|| stopping_on_panic(stop, || shared.sample(sampler))),
            scope.spawn(|| stopping_on_panic(stop, || shared.send())),
        ];
        let results = threads.map(|thread| thread.join());
        match results.iter().all(Result::is_ok) {
            true => Ok(()),
            false => Err(AgentError::Panicked),
        }
    })
}

/// Runs a thread of the agent. If it panics, the others stop too, and a service manager starts the agent again.
fn stopping_on_panic(stop: &AtomicBool, run: impl FnOnce()) {
    struct StopOnPanic<'a>(&'a AtomicBool);
    impl Drop for StopOnPanic<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.store(true, Ordering::Relaxed);
            }
        }
    }
    let _stop = StopOnPanic(stop);
    run();
}

impl<'a> Shared<'a> {
    fn new(options: &'a AgentOptions, queue: Queue, stop: &'a AtomicBool) -> Shared<'a> {
        Shared {
            options,
            queue: Mutex::new(queue),
            stop,
            daemon: Mutex::default(),
            logs: Mutex::default(),
            errors: Mutex::default(),
        }
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps until then, or until the agent stops.
    fn sleep_until(&self, then: Instant) {
        const STEP: Duration = Duration::from_millis(100);
        while !self.is_stopping() {
            match then.checked_duration_since(Instant::now()) {
                Some(left) if !left.is_zero() => std::thread::sleep(left.min(STEP)),
                _ => return,
            }
        }
    }

    /// Counts and logs a failure that is retried.
    fn failed(&self, what: &str, error: &dyn std::fmt::Display) {
        let text = format!("{what}: {error}");
        if let Ok(mut errors) = self.errors.lock() {
            if errors.1 != text {
                tracing::error!("{text}");
            }
            errors.0 += 1;
            errors.1 = text;
        }
    }

    /// Follows all logs.
    fn follow_logs(&self, mut logs: Vec<(String, LogFollower)>) {
        let mut names = Names::default();
        while !self.is_stopping() {
            let next = Instant::now() + SECOND;
            for number in 0..logs.len() {
                while !self.is_stopping() && self.follow_log(&mut logs, number, &mut names) {}
            }
            self.sleep_until(next);
        }
    }

    /// Reads a piece of a log. Returns whether there may be more.
    fn follow_log(&self, logs: &mut [(String, LogFollower)], number: usize, names: &mut Names) -> bool {
        let (path, follower) = &mut logs[number];
        let had_position = follower.position().is_some();
        let mut found = Vec::new();
        let has_more = follower.poll(micros(realtime()), LOG_BYTES, &mut found).unwrap_or_else(|error| {
            self.failed(&format!("cannot read {path}"), &error);
            false
        });
        let is_first_position = !had_position && follower.position().is_some();
        if let Ok(mut logs) = self.logs.lock() {
            let counts = follower.counts();
            if counts.bad_lines > 0 && logs.get(path).is_none_or(|before| before.bad_lines == 0) {
                tracing::warn!("{}; status.json counts such lines", counts.last_bad_line);
            }
            logs.insert(path.clone(), counts);
        }
        if found.is_empty() && !is_first_position {
            return has_more;
        }
        let transfers: Vec<Transfer> =
            found.into_iter().map(|found| self.transfer(path, found, names)).collect();
        let positions: Positions =
            logs.iter().filter_map(|(path, follower)| Some((path.clone(), follower.position()?))).collect();
        // A full disk: what was found is kept in memory, and the log is not read on.
        while !self.is_stopping() {
            let mut queue = lock(&self.queue);
            let pushed = match transfers.is_empty() {
                true => queue.set_positions(positions.clone()),
                false => queue.push_transfers(transfers.clone(), positions.clone()),
            };
            drop(queue);
            match pushed {
                Ok(()) => break,
                Err(error) => {
                    self.failed("transfers wait", &error);
                    self.sleep_until(Instant::now() + REPORT_INTERVAL);
                }
            }
        }
        has_more
    }

    /// Converts what a log says.
    fn transfer(&self, path: &str, found: Found, names: &mut Names) -> Transfer {
        let Found { transfer: logged, inode, offset_after, index, .. } = found;
        let logged = self.with_reported_names(logged);
        let identity = format!("{}|{path}|{inode}|{offset_after}|{index}|{logged:?}", self.options.host);
        let remote = logged.remote.and_then(|peer| match peer {
            Peer::Address(address) => Some(address),
            Peer::Name(name) => names.address(&name, Instant::now(), look_up),
        });
        let local = logged.local.or_else(|| remote.and_then(local_address));
        let (here, there) = ((local, logged.local_port), (remote, logged.remote_port));
        let (src, dst) = match logged.direction {
            TransferDirection::Send => (here, there),
            TransferDirection::Receive => (there, here),
        };
        Transfer {
            transfer: hex(&digest(&SHA256, identity.as_bytes()).as_ref()[..16]),
            application: shortened(logged.application),
            direction: logged.direction,
            user: shortened(logged.user),
            file: shortened(logged.file),
            src: src.0,
            dst: dst.0,
            src_port: src.1,
            dst_port: dst.1,
            start_us: logged.start_us.min(logged.end_us),
            end_us: logged.end_us,
            bytes: logged.bytes,
            streams: logged.streams,
            send_buffer_bytes: logged.send_buffer_bytes,
            receive_buffer_bytes: logged.receive_buffer_bytes,
            congestion_control: shortened(logged.congestion_control),
            error: shortened(logged.error),
        }
    }

    /// Returns a transfer as it may leave the host. All that is reported comes from it, its identifier too: a digest of clear names would
    /// confirm a guess.
    fn with_reported_names(&self, logged: LoggedTransfer) -> LoggedTransfer {
        let privacy = &self.options.privacy;
        LoggedTransfer {
            user: privacy.name(&logged.user),
            file: privacy.name(&logged.file),
            error: privacy.message(&logged.error, [&logged.user, &logged.file]),
            ..logged
        }
    }

    /// Samples the host and its connections each second.
    fn sample(&self, mut connections: ConnectionSampler) {
        let AgentOptions { parameters: of_host, disk, .. } = self.options;
        let mut load = LoadSampler::new(disk.clone(), of_host.interface.clone());
        let mut samples = Samples::default();
        let mut parameters_due = Instant::now();
        let mut next = Instant::now();
        while !self.is_stopping() {
            for _ in 0..BLOCKED_SAMPLES {
                next += SECOND / BLOCKED_SAMPLES;
                self.sleep_until(next);
                if connections.is_active() {
                    connections.sample_blocked();
                }
            }
            // A host that was suspended does not catch up.
            next = next.max(Instant::now() - SECOND);
            let now = SampleTime::now();
            match connections.sample(now) {
                Ok(found) => samples.connections.extend(found),
                Err(error) => self.failed("cannot list TCP connections", &error),
            }
            match load.sample(now) {
                Ok(Some(sample)) if connections.is_active() => samples.host.push(sample),
                Ok(_) => {}
                Err(error) => self.failed("cannot read the load of the host", &error),
            }
            if parameters_due <= Instant::now() {
                let rows = ReportRows::Hosts(vec![parameters(of_host, now.wall)]);
                match lock(&self.queue).push_samples(rows) {
                    Ok(()) => parameters_due = Instant::now() + PARAMETER_INTERVAL,
                    Err(error) => self.failed("parameters of the host wait", &error),
                }
            }
            if samples.is_due() || self.is_stopping() {
                self.report(&mut samples);
                self.write_status(now.wall, connections.left_out(), samples.dropped);
            }
            samples.limit();
        }
        self.report(&mut samples);
    }

    /// Puts samples into the queue.
    fn report(&self, samples: &mut Samples) {
        let pushed = samples.push(&mut lock(&self.queue));
        if let Err(error) = pushed {
            self.failed("samples wait", &error);
        }
    }

    /// Sends reports until the agent stops, and for a few seconds more.
    fn send(&self) {
        let AgentOptions { client, host, .. } = self.options;
        let mut pusher = Pusher::new(client.clone(), host.clone());
        let mut last = None;
        loop {
            if self.is_stopping() {
                let until = *last.get_or_insert_with(|| Instant::now() + LAST_REPORTS);
                if until <= Instant::now() {
                    break;
                }
            }
            let attempt = pusher.push(&self.queue, || micros(realtime()));
            if let Ok(mut daemon) = self.daemon.lock() {
                *daemon = pusher.state();
            }
            match attempt {
                Ok(Attempt::Progress) => {}
                // The other threads may still put their last rows into the queue.
                Ok(Attempt::Idle) if self.is_stopping() => std::thread::sleep(SECOND / 4),
                Ok(Attempt::Idle) => self.sleep_until(Instant::now() + SECOND / 4),
                Ok(Attempt::Failed(_)) if self.is_stopping() => break,
                Ok(Attempt::Failed(wait)) => self.sleep_until(Instant::now() + wait),
                Err(error) => {
                    self.failed("cannot remove a report", &error);
                    self.sleep_until(Instant::now() + REPORT_INTERVAL);
                }
            }
        }
        let (reports, bytes) = lock(&self.queue).length();
        tracing::info!(waiting = reports, bytes, "agent stopped");
    }

    /// Writes `status.json` beside the queue. It is for people, so a failure is no more than counted.
    fn write_status(&self, now: Timestamp, connections_left_out: u64, samples_dropped: u64) {
        let queue = {
            let queue = lock(&self.queue);
            let (reports, bytes) = queue.length();
            QueueStatus { id: queue.id().to_owned(), reports, bytes, counts: queue.counts() }
        };
        let (errors, last_error) = self.errors.lock().map(|errors| errors.clone()).unwrap_or_default();
        let status = Status {
            host: &self.options.host,
            time_us: micros(now),
            daemon: self.daemon.lock().map(|daemon| daemon.clone()).unwrap_or_default(),
            queue,
            logs: self.logs.lock().map(|logs| logs.clone()).unwrap_or_default(),
            connections_left_out,
            samples_dropped,
            errors,
            last_error: &last_error,
        };
        let path = self.options.queue.join("status.json");
        let written = serde_json::to_vec(&status)
            .map_err(std::io::Error::other)
            .and_then(|text| durable_file::replace(&path, &text));
        if let Err(error) = written {
            self.failed("cannot write status.json", &error);
        }
    }
}

/// Returns the address from which this host reaches another.
fn local_address(remote: IpAddr) -> Option<IpAddr> {
    let any: SocketAddr = match remote {
        IpAddr::V4(_) => ([0; 4], 0).into(),
        IpAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any).ok()?;
    // Connecting a UDP socket sends nothing.
    socket.connect((remote, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// Shortens a text to what a report may have.
fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(thalweg_api::MAX_REPORT_TEXT));
    text
}

#[cfg(test)]
mod tests;
