//! Dumps of samples to capture files, on request and on events.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use thalweg_measure::samples::Samples;
use thalweg_wire::FlowKey;
use thiserror::Error;

use super::labels::Labels;
use super::names::{self, Stem};
use super::{pcap, pcapng};
use crate::collectors::network::Network;
use crate::collectors::sinks::DumpSignal;
use crate::collectors::{CollectorHandle, CollectorList};
use crate::config::{CaptureFormat, SampleOptions, Trigger};

/// Minimum time from the end of a requested dump to the next one, because each copies and writes a whole ring.
const MIN_REQUEST_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum time before the thread notices a stop.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(50);

/// The cause of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A request to the API.
    Request,
    /// SIGUSR1.
    Signal,
    /// An event.
    Event(Trigger),
}

/// A request for a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpRequest {
    /// Name of the collector; `None` for all.
    pub collector: Option<String>,
    /// Format of the files; `None` for the configured one.
    pub format: Option<CaptureFormat>,
    /// The cause.
    pub cause: Cause,
}

/// A written capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedFile {
    /// Name of the collector.
    pub collector: String,
    /// Path of the file.
    pub path: PathBuf,
    /// Number of packets.
    pub packets: u64,
    /// Number of samples of the collector that were overwritten while they were copied.
    pub overwritten: u64,
}

/// Samples as a capture file in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dumped {
    /// The pcapng file.
    pub bytes: Vec<u8>,
    /// Number of packets.
    pub packets: u64,
    /// Number of samples that were overwritten while they were copied.
    pub overwritten: u64,
}

/// Why samples were not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DumpError {
    /// No directory is configured.
    #[error("no directory for samples is configured: set samples.folder")]
    NoFolder,
    /// The collector is unknown.
    #[error("no collector {0:?}")]
    NoCollector(String),
    /// The collector keeps no samples.
    #[error("collector {0:?} keeps no samples: set keep_samples")]
    NoSampleRing(String),
    /// The last request was too recent.
    #[error("samples were written just now: retry in {} ms", wait.as_millis().max(1))]
    TooSoon {
        /// Time to wait.
        wait: Duration,
    },
    /// A file cannot be written.
    #[error("cannot write samples to {}: {source}", path.display())]
    WriteFailed {
        /// The file or directory.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Writes dumps, and counts them.
#[derive(Debug)]
pub struct Dumps {
    collectors: CollectorList,
    /// The network, whose ports label packets.
    network: Network,
    options: Mutex<SampleOptions>,
    /// End of the last requested dump. Locked during a dump.
    last: Mutex<Option<Instant>>,
    written: AtomicU64,
    overwritten: AtomicU64,
    failed: AtomicU64,
    too_soon: AtomicU64,
    queue_full: Arc<AtomicU64>,
}

/// Counters of dumps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpCounters {
    /// Files written.
    pub written: u64,
    /// Number of samples that were overwritten while they were copied.
    pub overwritten: u64,
    /// Dumps whose file could not be written.
    pub failed: u64,
    /// Dumps skipped because another was too recent.
    pub too_soon: u64,
    /// Dumps dropped because the queue was full or the daemon stopped.
    pub queue_full: u64,
}

impl Dumps {
    /// Creates the writer for these collectors and this network.
    pub fn new(options: SampleOptions, collectors: CollectorList, network: Network) -> Dumps {
        Dumps {
            collectors,
            network,
            options: Mutex::new(options),
            last: Mutex::default(),
            written: AtomicU64::new(0),
            overwritten: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            too_soon: AtomicU64::new(0),
            queue_full: Arc::default(),
        }
    }

    /// Returns the options.
    pub fn options(&self) -> SampleOptions {
        self.options.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the options.
    pub fn set_options(&self, options: SampleOptions) {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner) = options;
    }

    /// Returns the counters.
    pub fn counters(&self) -> DumpCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DumpCounters {
            written: read(&self.written),
            overwritten: read(&self.overwritten),
            failed: read(&self.failed),
            too_soon: read(&self.too_soon),
            queue_full: read(&self.queue_full),
        }
    }

    /// Returns the counter of dumps that found the queue full.
    pub(crate) fn queue_full(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.queue_full)
    }

    /// Writes the samples of one collector, or of all that keep some, to the configured directory. Returns after the files are
    /// written. Concurrent dumps wait for each other.
    ///
    /// # Errors
    /// If no directory is configured, the collector is unknown, or a file cannot be written.
    pub fn dump(&self, request: &DumpRequest) -> Result<Vec<DumpedFile>, DumpError> {
        let result = self.dump_uncounted(request);
        if let Err(DumpError::WriteFailed { .. }) = result {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    fn dump_uncounted(&self, request: &DumpRequest) -> Result<Vec<DumpedFile>, DumpError> {
        let options = self.options();
        let folder = options.folder.as_deref().ok_or(DumpError::NoFolder)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if request.cause == Cause::Request {
            let since = last.map_or(Duration::MAX, |last| last.elapsed());
            if since < MIN_REQUEST_INTERVAL {
                return Err(DumpError::TooSoon { wait: MIN_REQUEST_INTERVAL - since });
            }
        }
        fs::create_dir_all(folder)
            .map_err(|source| DumpError::WriteFailed { path: folder.to_owned(), source })?;
        let collectors = match &request.collector {
            Some(name) => vec![self.collector_with_ring(name)?],
            None => {
                self.collectors.all().into_iter().filter(|collector| collector.samples().is_some()).collect()
            }
        };
        let format = request.format.unwrap_or(options.format);
        let mut files = Vec::new();
        for collector in &collectors {
            files.extend(self.dump_one(collector, folder, format, request.cause)?);
        }
        if request.cause == Cause::Request {
            *last = Some(Instant::now());
        }
        Ok(files)
    }

    /// Returns the last samples of a collector, at most `max`, as a pcapng file: all, or those of `flow`. Temporarily needs about twice the memory of the
    /// ring.
    ///
    /// # Errors
    /// If the collector is unknown or keeps no samples.
    pub fn samples_of(&self, collector: &str, max: u64, flow: Option<&FlowKey>) -> Result<Dumped, DumpError> {
        let collector = self.collector_with_ring(collector)?;
        let (samples, snap_length) = self.copy(&collector, max);
        let network = self.network.versions();
        let labels = Labels::new(&collector.description().switch, network.as_deref());
        let (bytes, packets) = pcapng::encode(&samples, &labels, snap_length, flow);
        Ok(Dumped { bytes, packets, overwritten: samples.overwritten })
    }

    fn collector_with_ring(&self, name: &str) -> Result<CollectorHandle, DumpError> {
        let collector = self.collectors.named(name).ok_or_else(|| DumpError::NoCollector(name.to_owned()))?;
        match collector.samples() {
            Some(_) => Ok(collector),
            None => Err(DumpError::NoSampleRing(name.to_owned())),
        }
    }

    fn copy(&self, collector: &CollectorHandle, max: u64) -> (Samples, u32) {
        let Some(ring) = collector.samples() else { return Default::default() };
        let samples = ring.copy(max);
        self.overwritten.fetch_add(samples.overwritten, Ordering::Relaxed);
        (samples, ring.snap_length())
    }

    fn dump_one(
        &self,
        collector: &CollectorHandle,
        folder: &Path,
        format: CaptureFormat,
        cause: Cause,
    ) -> Result<Vec<DumpedFile>, DumpError> {
        let (samples, snap_length) = self.copy(collector, u64::MAX);
        let network = self.network.versions();
        let labels = Labels::new(&collector.description().switch, network.as_deref());
        let last = samples.iter().last().map(|frame| frame.time).unwrap_or_default();
        let write_failed = |source| DumpError::WriteFailed { path: folder.to_owned(), source };
        let stem = Stem::new(collector.name(), last, cause).unused_in(folder).map_err(write_failed)?;
        let write = |name: String, bytes: &[u8], packets| {
            let path = folder.join(name);
            write_whole(&path, bytes)
                .map_err(|source| DumpError::WriteFailed { path: path.clone(), source })?;
            // A later file may fail.
            self.written.fetch_add(1, Ordering::Relaxed);
            let collector = collector.name().to_owned();
            Ok(DumpedFile { collector, path, packets, overwritten: samples.overwritten })
        };
        match format {
            CaptureFormat::Pcapng => {
                let (bytes, _) = pcapng::encode(&samples, &labels, snap_length, None);
                Ok(vec![write(format!("{stem}.pcapng"), &bytes, samples.len() as u64)?])
            }
            CaptureFormat::Pcap => pcap::encode(&samples, &labels, snap_length)
                .into_iter()
                .map(|file| {
                    write(format!("{stem}-{}.pcap", names::sanitized(&file.name)), &file.bytes, file.packets)
                })
                .collect(),
        }
    }
}

/// Checks that files can be written to a directory, which is created if missing.
///
/// # Errors
/// If the directory cannot be created or written.
pub(crate) fn can_write(folder: &Path) -> Result<(), DumpError> {
    let trial = folder.join("trial.unfinished");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&trial, b""))
        .and_then(|()| fs::remove_file(&trial))
        .map_err(|source| DumpError::WriteFailed { path: folder.to_owned(), source })
}

/// Writes a file atomically. On an error nothing of it remains.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path)).inspect_err(|_| {
        // On a full disk the first part has been written. The error that is reported is the first.
        let _ = fs::remove_file(&unfinished);
    })
}

/// Writes requested dumps until all senders are gone or `is_over` returns true.
pub(crate) fn run_dump_thread(dumps: &Dumps, dump_queue: &Receiver<DumpSignal>, is_over: impl Fn() -> bool) {
    let mut last: BTreeMap<String, Instant> = BTreeMap::new();
    while !is_over() {
        let (collector, cause) = match dump_queue.recv_timeout(RECEIVE_TIMEOUT) {
            Ok(DumpSignal::Signal) => (None, Cause::Signal),
            Ok(DumpSignal::Event { collector, trigger }) => {
                (Some(collector.to_string()), Cause::Event(trigger))
            }
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let options = dumps.options();
        if let Some(collector) = &collector {
            if last.get(collector).is_some_and(|last| last.elapsed() < options.min_dump_interval) {
                dumps.too_soon.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            last.insert(collector.clone(), Instant::now());
            std::thread::sleep(options.after);
        }
        match dumps.dump(&DumpRequest { collector, format: None, cause }) {
            Ok(files) => {
                for DumpedFile { collector, path, packets, .. } in files {
                    tracing::info!(collector, path = %path.display(), packets, "samples written");
                }
                if let (Cause::Event(_), Some(folder)) = (cause, &options.folder)
                    && let Err(error) = names::keep_newest(folder, options.keep.max(1))
                {
                    tracing::warn!(folder = %folder.display(), %error, "cannot remove old samples");
                }
            }
            Err(error) => tracing::warn!(%error, "samples not written"),
        }
    }
    dumps.queue_full.fetch_add(dump_queue.try_iter().count() as u64, Ordering::Relaxed);
}
