//! An endpoint in a thread of the test.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use thalweg_linux::clock;
use thalweg_realtime::endpoint::{EndpointProcess, Event, ProcessError, ProcessOptions, Report};
use thalweg_wire::Nanos;

use crate::allocations;

pub(crate) struct EndpointThread {
    is_stopped: Arc<AtomicBool>,
    events: Arc<Mutex<Vec<Event>>>,
    thread: JoinHandle<Result<Finished, ProcessError>>,
}

/// What an endpoint leaves.
pub(crate) struct Finished {
    pub(crate) report: Report,
    /// Allocations while it ran.
    pub(crate) allocations: u64,
}

impl EndpointThread {
    /// Starts an endpoint. It intercepts when this returns.
    pub(crate) fn start(options: ProcessOptions) -> EndpointThread {
        let (is_stopped, events) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (started, is_started) = std::sync::mpsc::channel();
        let thread = std::thread::spawn({
            let (is_stopped, events) = (Arc::clone(&is_stopped), Arc::clone(&events));
            move || {
                let mut process = EndpointProcess::start(options)?;
                started.send(()).unwrap();
                let end = clock::monotonic() + Nanos::from_secs(600);
                let is_stopped = || is_stopped.load(Ordering::Relaxed);
                let before = allocations::of_this_thread();
                process.run(end, is_stopped, |event| events.lock().unwrap().push(event))?;
                let allocations = allocations::of_this_thread() - before;
                Ok(Finished { report: process.finish(|| false, |_| ())?, allocations })
            }
        });
        match is_started.recv() {
            Ok(()) => EndpointThread { is_stopped, events, thread },
            Err(_) => panic!("{}", thread.join().unwrap().err().unwrap()),
        }
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// Waits for an event, for at most 5 s.
    pub(crate) fn wait_for(&self, expected: impl Fn(&Event) -> bool) {
        for _ in 0..500 {
            if self.events().iter().any(&expected) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("only {:?}", self.events());
    }

    /// Stops the endpoint.
    pub(crate) fn finish(self) -> Report {
        self.finish_counted().report
    }

    /// Stops the endpoint.
    pub(crate) fn finish_counted(self) -> Finished {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.thread.join().unwrap().unwrap()
    }

    /// Waits until the endpoint fails.
    pub(crate) fn error(self) -> ProcessError {
        match self.thread.join().unwrap() {
            Ok(_) => panic!("the endpoint has ended without an error"),
            Err(error) => error,
        }
    }
}
