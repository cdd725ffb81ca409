//! How long this thread has worked.

use std::fs;
use std::time::Instant;

/// Measures the processor time of the thread that made it, where the system tells it, or else wall time.
///
/// Processor time leaves out what other programs on the machine took. It is read from `/proc` in whole
/// scheduler updates, which yielding the processor brings up to date; good to some 10 us.
#[derive(Debug)]
pub struct Stopwatch {
    started: Instant,
    processor_started: Option<u64>,
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Stopwatch {
        let processor_started = processor_nanos();
        Stopwatch { started: Instant::now(), processor_started }
    }

    /// Nanoseconds since the start.
    pub fn nanos(&self) -> f64 {
        let wall = self.started.elapsed().as_nanos() as f64;
        match (self.processor_started, processor_nanos()) {
            (Some(started), Some(now)) if now > started => (now - started) as f64,
            _ => wall,
        }
    }
}

/// Processor time of this thread: the first number of `schedstat`, in nanoseconds.
fn processor_nanos() -> Option<u64> {
    std::thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Nanoseconds that `work` took on the processor.
pub fn nanos_of(work: impl FnOnce()) -> f64 {
    let stopwatch = Stopwatch::start();
    work();
    stopwatch.nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time() {
        let nanos = nanos_of(|| {
            std::hint::black_box((0..10_000_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
        });
        assert!(nanos > 0.0);
    }
}
