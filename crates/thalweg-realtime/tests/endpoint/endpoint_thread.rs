//! An endpoint in a thread of the test.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use thalweg_linux::clock;
use thalweg_realtime::endpoint::{EndpointProcess, Event, ProcessError, ProcessOptions, Report};
use thalweg_wire::Nanos;

pub(crate) struct EndpointThread {
    is_stopped: Arc<AtomicBool>,
    events: Arc<Mutex<Vec<Event>>>,
    thread: JoinHandle<Result<Report, ProcessError>>,
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
                process.run(end, is_stopped, |event| events.lock().unwrap().push(event))?;
                process.finish(|| false, |_| ())
            }
        });
        match is_started.recv() {
            Ok(()) => EndpointThread { is_stopped, events, thread },
            Err(_) => panic!("{}", thread.join().unwrap().unwrap_err()),
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
        self.is_stopped.store(true, Ordering::Relaxed);
        self.thread.join().unwrap().unwrap()
    }

    /// Waits until the endpoint fails.
    pub(crate) fn error(self) -> ProcessError {
        self.thread.join().unwrap().unwrap_err()
    }
}
