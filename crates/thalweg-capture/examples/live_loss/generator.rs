//! Sends one frame repeatedly from within the kernel, at a given rate: BPF_PROG_TEST_RUN runs a small XDP program on
//! "live" copies of the frame. The program waits until the copy is due and sends it out of an interface. User space
//! cannot send as fast, because each packet that it sends becomes a socket buffer first.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::checked;

// Commands of bpf(2).
const MAP_CREATE: i32 = 0;
const PROGRAM_LOAD: i32 = 5;
const PROGRAM_TEST_RUN: i32 = 10;

/// BPF_MAP_TYPE_ARRAY.
const ARRAY: u32 = 2;
/// BPF_PROG_TYPE_XDP.
const XDP: u32 = 6;
/// BPF_F_TEST_XDP_LIVE_FRAMES.
const LIVE_FRAMES: u32 = 1 << 1;

/// Packets per batch: a driver's usual budget, and a quarter of a veth ring.
const BURST: u32 = 64;

/// The maximum number of clock reads per packet: at least 20 us.
const MAX_LOOKS: i32 = 1000;

/// The minimum rate in packets per second: below that a packet would have to wait longer.
pub(crate) const LOWEST_RATE: u64 = 100_000;

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    result: u32,
    input_length: u32,
    output_length: u32,
    input: u64,
    output: u64,
    repeat: u32,
    duration: u32,
    context_input_length: u32,
    context_output_length: u32,
    context_input: u64,
    context_output: u64,
    flags: u32,
    core: u32,
    batch_length: u32,
    padding: u32,
}

/// Sends `count` copies of `frame` out of the interface `index`, one every `gap_ns`.
pub(crate) fn send(index: u32, frame: &[u8], count: u32, gap_ns: u32) -> io::Result<()> {
    let map = MapCreate { kind: ARRAY, key_size: 4, value_size: 8, max_entries: 1 };
    // SAFETY: the attributes match this command and have no pointers; we own the returned descriptor.
    let next_due = unsafe { OwnedFd::from_raw_fd(call(MAP_CREATE, &map)?) };
    let instructions = program(index, gap_ns, &next_due).map(u64::to_le_bytes);
    let load = ProgramLoad {
        kind: XDP,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        licence: c"Apache-2.0".as_ptr() as u64,
    };
    // SAFETY: the attributes match this command; the program has the given length, the licence is a C string; we own
    // the returned descriptor.
    let program = unsafe { OwnedFd::from_raw_fd(call(PROGRAM_LOAD, &load)?) };
    let run = TestRun {
        program: program.as_raw_fd() as u32,
        input_length: frame.len() as u32,
        input: frame.as_ptr() as u64,
        repeat: count,
        flags: LIVE_FRAMES,
        batch_length: BURST,
        ..TestRun::default()
    };
    // SAFETY: the attributes match this command; the frame has the given length.
    unsafe { call(PROGRAM_TEST_RUN, &run) }.map(drop)
}

/// The program waits until the time in the map, adds the gap to it, and redirects to the interface.
fn program(index: u32, gap_ns: u32, next_due: &OwnedFd) -> [u64; 18] {
    // Registers: 6 points to the time in the map, 7 is that time, 8 counts the remaining clock reads.
    const KTIME_GET_NS: i32 = 5;
    const REDIRECT: i32 = 23;
    let map = next_due.as_raw_fd();
    let instruction = |code: u64, registers: u64, offset: i16, immediate: i32| {
        code | registers << 8 | u64::from(offset as u16) << 16 | u64::from(immediate as u32) << 32
    };
    [
        instruction(0x18, 0x26, 0, map), // r6 = the first value of the map (BPF_PSEUDO_MAP_VALUE)
        instruction(0, 0, 0, 0),
        instruction(0x79, 0x67, 0, 0),             // r7 = *r6
        instruction(0x55, 0x07, 2, 0),             // if r7 != 0 skip two
        instruction(0x85, 0, 0, KTIME_GET_NS),     // the first packet is due now
        instruction(0xbf, 0x07, 0, 0),             // r7 = r0
        instruction(0xb7, 0x08, 0, MAX_LOOKS),     // r8 = looks
        instruction(0x85, 0, 0, KTIME_GET_NS),     // look:
        instruction(0x3d, 0x70, 2, 0),             // if r0 >= r7 leave the loop
        instruction(0x07, 0x08, 0, -1),            // r8 -= 1
        instruction(0x55, 0x08, -4, 0),            // if r8 != 0 look again
        instruction(0x07, 0x07, 0, gap_ns as i32), // r7 += gap
        instruction(0x7b, 0x76, 0, 0),             // *r6 = r7
        instruction(0x18, 0x01, 0, index as i32),  // r1 = interface
        instruction(0, 0, 0, 0),
        instruction(0xb7, 0x02, 0, 0), // r2 = no flags
        instruction(0x85, 0, 0, REDIRECT),
        instruction(0x95, 0, 0, 0), // return
    ]
}

/// # Safety
/// `attributes` must have the layout that `command` requires, and its pointers must be valid.
unsafe fn call<T>(command: i32, attributes: &T) -> io::Result<i32> {
    // SAFETY: guaranteed by the caller.
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) };
    checked(answer as i32)
}
