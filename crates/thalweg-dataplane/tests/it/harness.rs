//! Runs programs on frames, on one CPU.

use std::io::{ErrorKind, Write as _};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use thalweg_dataplane::kernel_sketches::Entry;
use thalweg_dataplane::{DataplaneError, KernelSketches, Specification};
use thalweg_sketch::Probability;

/// Reports a skipped test on standard error directly, because the test runner captures `eprintln!`.
pub(crate) fn skip(reason: impl std::fmt::Display) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Standard error is closed: nowhere to report.
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}

/// What a program returns for a frame that passes.
pub(crate) fn pass_verdict(entry: Entry) -> i32 {
    match entry {
        Entry::Ingress => -1, // TCX_NEXT
        _ => 2,               // XDP_PASS
    }
}

/// Creates sketches, or skips the test without the privilege.
pub(crate) fn create_or_skip(specification: Specification) -> Option<KernelSketches> {
    create_or_skip_with(specification, &[])
}

/// The same, with probabilities that the reader may choose.
pub(crate) fn create_or_skip_with(
    specification: Specification,
    probabilities: &[Probability],
) -> Option<KernelSketches> {
    // The samplers of CPU 0 draw as those of user space with the same seed.
    let mut first = CpuSet::new();
    first.set(0).unwrap();
    if let Err(error) = sched_setaffinity(Pid::from_raw(0), &first) {
        skip(format_args!("cannot run on CPU 0: {error}"));
        return None;
    }
    match KernelSketches::create(specification, probabilities) {
        Err(error @ DataplaneError::Privilege) => {
            skip(error);
            None
        }
        kernel => Some(kernel.unwrap()),
    }
}

/// Passes frames through a program. Each must pass unchanged. Returns those that the kernel accepts for a test run: at tc
/// it refuses very short ones.
pub(crate) fn run(kernel: &KernelSketches, entry: Entry, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let program = kernel.load(entry).unwrap();
    let mut accepted = Vec::new();
    for frame in frames {
        match program.test_run(frame, 1) {
            Err(error) if error.kind() == ErrorKind::InvalidInput && entry == Entry::Ingress => {}
            run => {
                let run = run.unwrap();
                assert_eq!(run.verdict, pass_verdict(entry));
                assert_eq!(&run.frame, frame, "the frame is unchanged");
                accepted.push(frame.clone());
            }
        }
    }
    assert!(accepted.len() * 10 > frames.len() * 9, "{} of {} frames", accepted.len(), frames.len());
    accepted
}
