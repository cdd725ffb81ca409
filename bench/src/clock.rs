//! CPU time of the current thread.

use std::fs;
use std::time::Instant;

/// Measures the CPU time of the thread that created it, or wall time if the system does not report CPU time.
///
/// CPU time excludes other programs on the machine. `/proc` updates it with the scheduler, and yielding the processor
/// forces an update; resolution about 10 us.
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

    /// Returns the nanoseconds since the start.
    pub fn nanos(&self) -> f64 {
        let wall = self.started.elapsed().as_nanos() as f64;
        match (self.processor_started, processor_nanos()) {
            (Some(started), Some(now)) if now > started => (now - started) as f64,
            _ => wall,
        }
    }
}

/// Returns the CPU time of this thread in nanoseconds: the first number of `schedstat`.
fn processor_nanos() -> Option<u64> {
    std::thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Returns the CPU time of `work` in nanoseconds.
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
