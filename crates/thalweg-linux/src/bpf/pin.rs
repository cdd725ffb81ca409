//! Pinned maps, programs and links: names in a BPF file system that keep them when their process ends (bpf(2), `BPF_OBJ_PIN`).

#![expect(unsafe_code, reason = "a system call that takes a path by pointer")]

use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::map::AnyMap;
use super::program::{Link, Program};
use super::syscall::{bpf, bpf_for_descriptor};

/// Commands of `enum bpf_cmd`.
const OBJECT_PIN: c_int = 6;
const OBJECT_GET: c_int = 7;

/// Attributes of both commands.
#[repr(C)]
struct Attributes {
    path: u64,
    descriptor: u32,
    flags: u32,
}

/// Pins a map, program or link. The directory must be in a BPF file system, such as `/sys/fs/bpf`.
///
/// # Errors
/// If the path exists or is not in a BPF file system, or this process lacks the privilege.
pub fn pin(descriptor: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let attributes =
        Attributes { path: path.as_ptr() as u64, descriptor: descriptor.as_raw_fd() as u32, flags: 0 };
    // SAFETY: the attributes of this command; the path is a C string.
    unsafe { bpf(OBJECT_PIN, &attributes) }.map(drop)
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let attributes = Attributes { path: path.as_ptr() as u64, descriptor: 0, flags: 0 };
    // SAFETY: the attributes of this command; the path is a C string.
    unsafe { bpf_for_descriptor(OBJECT_GET, &attributes) }
}

impl AnyMap {
    /// Opens a pinned map.
    ///
    /// # Errors
    /// If the path does not exist or is not a map, or this process lacks the privilege.
    pub fn open_pinned(path: &Path) -> io::Result<AnyMap> {
        AnyMap::of_descriptor(open(path)?)
    }
}

impl Program {
    /// Opens a pinned program.
    ///
    /// # Errors
    /// If the path does not exist, or this process lacks the privilege.
    pub fn open_pinned(path: &Path) -> io::Result<Program> {
        Ok(Program { descriptor: open(path)? })
    }
}

impl Link {
    /// Opens a pinned link.
    ///
    /// # Errors
    /// If the path does not exist, or this process lacks the privilege.
    pub fn open_pinned(path: &Path) -> io::Result<Link> {
        Ok(Link { descriptor: open(path)? })
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
