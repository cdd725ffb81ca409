//! The few calls of bpf(2) that one small program needs, each behind a typed function.

#![expect(unsafe_code, reason = "a system call that takes pointers")]

use std::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use thalweg_linux::socket::check;

/// Commands of `enum bpf_cmd`.
const MAP_CREATE: c_int = 0;
const MAP_UPDATE_ELEMENT: c_int = 2;
const PROGRAM_LOAD: c_int = 5;
const LINK_CREATE: c_int = 28;
const LINK_DETACH: c_int = 34;

/// BPF_MAP_TYPE_XSKMAP.
const MAP_TYPE_XSKMAP: u32 = 17;
/// BPF_PROG_TYPE_XDP.
const PROGRAM_TYPE_XDP: u32 = 6;
/// BPF_XDP of `enum bpf_attach_type`.
const ATTACH_TYPE_XDP: u32 = 37;

/// One instruction of eBPF (`struct bpf_insn`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: u8,
    /// Destination and source register.
    pub(super) registers: u8,
    pub(super) offset: i16,
    pub(super) immediate: i32,
}

/// For BPF_MAP_CREATE.
#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

/// For BPF_MAP_UPDATE_ELEM.
#[repr(C)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// For BPF_PROG_LOAD; the rest of what it may have stays zero.
#[repr(C)]
struct ProgramLoad {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface_index: u32,
    expected_attach_type: u32,
}

/// For BPF_LINK_CREATE.
#[repr(C)]
struct LinkCreate {
    program: u32,
    interface_index: u32,
    attach_type: u32,
    flags: u32,
}

/// Makes a map from queue to XDP socket with room for queues below `queue_count`.
pub(super) fn create_socket_map(queue_count: u32) -> io::Result<OwnedFd> {
    let four = size_of::<u32>() as u32;
    let attributes = MapCreate {
        map_type: MAP_TYPE_XSKMAP,
        key_size: four,
        value_size: four,
        max_entries: queue_count,
        map_flags: 0,
    };
    // SAFETY: the attributes of this command, without pointers.
    let descriptor = unsafe { bpf(MAP_CREATE, &attributes) }?;
    // SAFETY: the descriptor is open and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Puts the socket of `queue` into the map. It leaves the map when it is closed.
pub(super) fn put_socket(map: &OwnedFd, queue: u32, socket: RawFd) -> io::Result<()> {
    let attributes = MapUpdate {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: &raw const queue as u64,
        value: &raw const socket as u64,
        flags: 0,
    };
    // SAFETY: the attributes of this command; key and value are of the sizes that the map was made with.
    unsafe { bpf(MAP_UPDATE_ELEMENT, &attributes) }.map(drop)
}

/// Loads an XDP program of which the kernel tells `name` (15 bytes at most) to those who ask.
pub(super) fn load_xdp_program(name: &str, instructions: &[Instruction]) -> io::Result<OwnedFd> {
    const LICENCE: &CStr = c"Apache-2.0";
    let mut padded_name = [0; 16];
    padded_name[..name.len()].copy_from_slice(name.as_bytes());
    let attributes = ProgramLoad {
        program_type: PROGRAM_TYPE_XDP,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: padded_name,
        interface_index: 0,
        expected_attach_type: ATTACH_TYPE_XDP,
    };
    // SAFETY: the attributes of this command; the program is as long as said, the licence a C string.
    let descriptor = unsafe { bpf(PROGRAM_LOAD, &attributes) }?;
    // SAFETY: the descriptor is open and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Attaches a program to an interface for as long as the link that is returned is open, in this process or another.
/// `flags` are `XDP_FLAGS_` of if_link.h.
pub(super) fn create_link(program: &OwnedFd, interface_index: i32, flags: u32) -> io::Result<OwnedFd> {
    let attributes = LinkCreate {
        program: program.as_raw_fd() as u32,
        interface_index: interface_index as u32,
        attach_type: ATTACH_TYPE_XDP,
        flags,
    };
    // SAFETY: the attributes of this command, without pointers.
    let descriptor = unsafe { bpf(LINK_CREATE, &attributes) }?;
    // SAFETY: the descriptor is open and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Detaches the program at once, though another process may have the link open as well.
pub(super) fn detach_link(link: &OwnedFd) -> io::Result<()> {
    let attributes = link.as_raw_fd() as u32;
    // SAFETY: the attributes of this command, a descriptor alone.
    unsafe { bpf(LINK_DETACH, &attributes) }.map(drop)
}

/// # Safety
/// `attributes` must be laid out as `command` demands, and what it points to be as it says.
unsafe fn bpf<T>(command: c_int, attributes: &T) -> io::Result<RawFd> {
    let length = size_of::<T>();
    // SAFETY: the kernel reads `length` bytes, and the rest is as the caller promises.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), length) };
    let answer = answer as c_int;
    check(answer)?;
    Ok(answer)
}
