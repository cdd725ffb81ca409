//! Runs a program on a frame without an interface (bpf(2), `BPF_PROG_TEST_RUN`), for tests and benchmarks.

#![expect(unsafe_code, reason = "a system call that takes buffers by pointer")]

use std::ffi::c_int;
use std::io;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use super::program::Program;
use super::syscall::bpf_mut;

/// BPF_PROG_TEST_RUN of `enum bpf_cmd`.
const PROGRAM_TEST_RUN: c_int = 10;

/// BPF_F_TEST_XDP_LIVE_FRAMES: frames go where the program sends them.
const LIVE_FRAMES: u32 = 1 << 1;

/// Room for bytes that a program adds to its frame.
const ADDED: usize = 256;

/// Attributes of BPF_PROG_TEST_RUN.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    program: u32,
    verdict: u32,
    input_length: u32,
    output_length: u32,
    input: u64,
    output: u64,
    repeat: u32,
    duration_ns: u32,
    context_input_length: u32,
    context_output_length: u32,
    context_input: u64,
    context_output: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    padding: u32,
}

/// The outcome of a test run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRun {
    /// What the last run returned.
    pub verdict: i32,
    /// The frame after the last run.
    pub frame: Vec<u8>,
    /// The average duration of a run, in whole nanoseconds.
    pub duration: Duration,
}

impl Program {
    /// Runs the program `repeat` times on a frame, on the calling thread's CPU. The frame is passed once: each run sees
    /// what the previous one left.
    ///
    /// # Errors
    /// If the kernel returns an error: the frame is shorter than an Ethernet header, or this process lacks the privilege.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> io::Result<TestRun> {
        let mut output = vec![0; frame.len() + ADDED];
        let mut attributes = Attributes {
            program: self.descriptor.as_raw_fd() as u32,
            input_length: frame.len() as u32,
            output_length: output.len() as u32,
            input: frame.as_ptr() as u64,
            output: output.as_mut_ptr() as u64,
            repeat,
            ..Attributes::default()
        };
        // SAFETY: the attributes of this command; both buffers have the given lengths, and outlive the call.
        unsafe { bpf_mut(PROGRAM_TEST_RUN, &mut attributes) }?;
        output.truncate(attributes.output_length as usize);
        Ok(TestRun {
            verdict: attributes.verdict as i32,
            frame: output,
            duration: Duration::from_nanos(attributes.duration_ns.into()),
        })
    }
    /// Runs the program on `count` frames, `batch` at a time, and lets them go where it sends them: the kernel's packet generator for
    /// XDP programs (Linux 5.18). The kernel keeps `batch` frames that begin as `frame`, and uses them again as the last run left them.
    ///
    /// # Errors
    /// If the kernel returns an error: the frame is shorter than an Ethernet header or longer than a page, `batch` is above 256, or
    /// this process lacks the privilege.
    pub fn send(&self, frame: &[u8], count: u32, batch: u32) -> io::Result<()> {
        let mut attributes = Attributes {
            program: self.descriptor.as_raw_fd() as u32,
            input_length: frame.len() as u32,
            input: frame.as_ptr() as u64,
            repeat: count,
            flags: LIVE_FRAMES,
            batch,
            ..Attributes::default()
        };
        // SAFETY: the attributes of this command; the kernel only reads the frame, which outlives the call.
        unsafe { bpf_mut(PROGRAM_TEST_RUN, &mut attributes) }?;
        Ok(())
    }
}
