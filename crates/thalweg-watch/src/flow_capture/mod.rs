//! Writes the packets of one flow to a pcapng file: of a live run from now on, of capture files from their beginning.
//!
//! | file | contents |
//! |---|---|
//! | `recorder` | picks the flow's frames out of batches |
//! | `output` | creates the file; a thread writes it |
//! | `extract` | reads capture files again |
//!
//! Threads that read packets check one flag per batch. While a flow is recorded, they parse each frame a second time, and hand
//! its frames to the writing thread. They never wait for it: frames that find its queue full are counted as lost.

mod extract;
mod output;
mod recorder;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use thalweg_wire::{Batch, Bytes, FlowKey};

use extract::Extraction;
use output::Output;
use recorder::{FlowEncoder, Recorder};

/// Settings of a flow capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowCaptureOptions {
    /// Directory of the files.
    pub directory: PathBuf,
    /// Bytes after which a file ends.
    pub max_size: Bytes,
}

impl Default for FlowCaptureOptions {
    fn default() -> Self {
        FlowCaptureOptions { directory: ".".into(), max_size: Bytes(1_000_000_000) }
    }
}

/// What became of the latest flow capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowCaptureStatus {
    /// The flow.
    pub key: FlowKey,
    /// The file.
    pub path: PathBuf,
    /// Packets written.
    pub packets: u64,
    /// Bytes of the file.
    pub bytes: Bytes,
    /// Packets that found the queue of the writing thread full.
    pub lost: u64,
    /// How far it is.
    pub state: FlowCaptureState,
}

/// A request of the live view to write a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowCaptureRequest {
    /// The flow.
    pub key: FlowKey,
    /// Number of the request: another number begins another file.
    pub number: u32,
}

/// State of a flow capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowCaptureState {
    /// Packets are written as they come.
    Running,
    /// It was stopped, or all files were read.
    Complete,
    /// The file has its maximum size.
    Full,
    /// It failed with this error.
    Failed(String),
}

/// Counters that threads share.
#[derive(Debug, Default)]
struct Progress {
    packets: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
    is_full: AtomicBool,
    is_complete: AtomicBool,
    error: Mutex<Option<String>>,
}

impl Progress {
    fn fail(&self, error: impl ToString) {
        locked(&self.error).get_or_insert(error.to_string());
    }

    /// Whether no more packets are wanted.
    fn is_over(&self) -> bool {
        self.is_full.load(Ordering::Relaxed) || locked(&self.error).is_some()
    }
}

/// How packets are obtained.
#[derive(Debug)]
pub(crate) enum CaptureInput {
    /// From the threads that read interfaces.
    Live,
    /// By reading these files again, with the capture filter of the run.
    Files { names: Vec<String>, filter: Option<String> },
}

/// The flow captures of a run, one at a time.
#[derive(Debug)]
pub struct FlowCaptures {
    options: FlowCaptureOptions,
    input: CaptureInput,
    decapsulate: bool,
    live: Arc<LiveCapture>,
    request: Option<FlowCaptureRequest>,
    current: Option<Current>,
}

/// The capture that is shared with the reading threads.
#[derive(Debug, Default)]
pub(crate) struct LiveCapture {
    is_active: AtomicBool,
    recorder: Mutex<Option<Recorder>>,
}

#[derive(Debug)]
struct Current {
    key: FlowKey,
    path: PathBuf,
    progress: Arc<Progress>,
    /// Set to end the reading of files.
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LiveCapture {
    /// Records the frames of a batch, if a capture runs.
    #[inline]
    pub(crate) fn frames(&self, batch: &Batch<'_>) {
        if self.is_active.load(Ordering::Relaxed) {
            self.record(batch);
        }
    }

    #[cold]
    fn record(&self, batch: &Batch<'_>) {
        let mut recorder = locked(&self.recorder);
        if recorder.as_mut().is_some_and(|recorder| !recorder.frames(batch)) {
            *recorder = None;
            self.is_active.store(false, Ordering::Relaxed);
        }
    }

    fn set(&self, recorder: Option<Recorder>) {
        self.is_active.store(recorder.is_some(), Ordering::Relaxed);
        *locked(&self.recorder) = recorder;
    }
}

impl FlowCaptures {
    pub(crate) fn new(options: FlowCaptureOptions, input: CaptureInput, decapsulate: bool) -> FlowCaptures {
        FlowCaptures { options, input, decapsulate, live: Arc::default(), request: None, current: None }
    }

    pub(crate) fn live(&self) -> Arc<LiveCapture> {
        Arc::clone(&self.live)
    }

    /// Starts or stops a capture as the live view requests.
    pub fn follow(&mut self, request: Option<FlowCaptureRequest>) {
        if request != self.request {
            self.request = request;
            match request {
                Some(FlowCaptureRequest { key, .. }) => self.start(key),
                None => self.stop(),
            }
        }
    }

    /// Starts to write the packets of a flow; a capture that runs is stopped first.
    pub fn start(&mut self, key: FlowKey) {
        self.stop();
        let progress = Arc::new(Progress::default());
        let stop = Arc::new(AtomicBool::new(false));
        let (path, thread) = match self.open(key, &progress, &stop) {
            Ok((path, thread)) => (path, Some(thread)),
            Err(error) => {
                progress.fail(error);
                (self.options.directory.clone(), None)
            }
        };
        self.current = Some(Current { key, path, progress, stop, thread });
    }

    fn open(
        &self,
        key: FlowKey,
        progress: &Arc<Progress>,
        stop: &Arc<AtomicBool>,
    ) -> Result<(PathBuf, JoinHandle<()>), String> {
        if let CaptureInput::Files { names, .. } = &self.input
            && names.iter().any(|name| name == "-" || name == STANDARD_INPUT)
        {
            return Err("standard input cannot be read again".to_owned());
        }
        let output = Output::create(&self.options, &key)?;
        let path = output.path().to_owned();
        let thread = match &self.input {
            CaptureInput::Live => {
                let (sender, thread) = output.write_in_background(Arc::clone(progress))?;
                self.live.set(Some(Recorder::new(key, self.decapsulate, sender, Arc::clone(progress))));
                thread
            }
            CaptureInput::Files { names, filter } => {
                let (names, filter) = (names.clone(), filter.clone());
                let (progress, stop) = (Arc::clone(progress), Arc::clone(stop));
                let encoder = FlowEncoder::new(key, self.decapsulate);
                Extraction { encoder, names, filter, output, progress, stop }.start()?
            }
        };
        Ok((path, thread))
    }

    /// Stops the current capture and waits until its file is written.
    pub fn stop(&mut self) {
        self.live.set(None);
        if let Some(current) = &mut self.current {
            current.stop.store(true, Ordering::Relaxed);
            if let Some(Err(panic)) = current.thread.take().map(JoinHandle::join) {
                std::panic::resume_unwind(panic);
            }
            current.progress.is_complete.store(true, Ordering::Relaxed);
        }
    }

    /// Returns what became of the latest capture.
    pub fn status(&self) -> Option<FlowCaptureStatus> {
        let Current { key, path, progress, .. } = self.current.as_ref()?;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        Some(FlowCaptureStatus {
            key: *key,
            path: path.clone(),
            packets: count(&progress.packets),
            bytes: Bytes(count(&progress.bytes)),
            lost: count(&progress.lost),
            state: match locked(&progress.error).clone() {
                Some(error) => FlowCaptureState::Failed(error),
                None if is(&progress.is_full) => FlowCaptureState::Full,
                None if is(&progress.is_complete) => FlowCaptureState::Complete,
                None => FlowCaptureState::Running,
            },
        })
    }
}

/// The name of standard input as a source.
const STANDARD_INPUT: &str = "standard input";

impl Drop for FlowCaptures {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
