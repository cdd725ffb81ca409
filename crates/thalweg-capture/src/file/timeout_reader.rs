//! Reading a pipe with a timeout, so that the caller can do other work.
#![expect(unsafe_code, reason = "poll(2) is not in the standard library")]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

/// The timeout of one read: as long as [`thalweg_wire::Source`] allows a source to be silent.
const TIMEOUT_MS: libc::c_int = 100;

/// A file whose reads return [`io::ErrorKind::WouldBlock`] if nothing arrives for 100 ms, or on a signal.
#[derive(Debug)]
pub(super) struct TimeoutReader {
    file: File,
}

impl TimeoutReader {
    pub(super) fn new(file: File) -> TimeoutReader {
        TimeoutReader { file }
    }
}

impl Read for TimeoutReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut request = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `request` is one valid pollfd for the length of the call, and its descriptor is open.
        match unsafe { libc::poll(&mut request, 1, TIMEOUT_MS) } {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            -1 => Err(match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => io::ErrorKind::WouldBlock.into(),
                error => error,
            }),
            _ => self.file.read(out),
        }
    }
}
