//! TUN interfaces (Documentation/networking/tuntap.rst of Linux): packets that the kernel sends by the interface are read
//! by the process that created it.

#![expect(unsafe_code, reason = "an ioctl that takes a pointer")]

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;

use thalweg_wire::Nanos;

use crate::netdevice::request_for;
use crate::socket::{check, wait_for_any};

const DEVICE: &str = "/dev/net/tun";

/// A TUN interface. It exists until this value is dropped.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

impl Tun {
    /// Creates an interface in the network namespace of the calling thread. It is down.
    ///
    /// # Errors
    /// If the name is in use, the kernel has no TUN interfaces, or this process lacks the privilege.
    pub fn create(name: &str) -> io::Result<Tun> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)?;
        let mut request = request_for(name)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one `ifreq` without pointers.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
        Ok(Tun { file })
    }

    /// Reads a packet, from its IP header on. Returns its length; `None` if there was none for `timeout`.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn receive(&self, buffer: &mut [u8], timeout: Nanos) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_for_any([self.file.as_raw_fd()], timeout)?;
                Ok(None)
            }
            read => read.map(Some),
        }
    }
}
