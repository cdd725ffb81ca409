//! TUN and TAP interfaces (Documentation/networking/tuntap.rst of Linux): what the kernel sends by the interface is read by
//! the process that created it, as IP packets (TUN) or as Ethernet frames (TAP).

#![expect(unsafe_code, reason = "an ioctl that takes a pointer")]

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;

use thalweg_wire::Nanos;

use crate::netdevice::{name_of, request_for};
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
        let (file, _) = create(name, libc::IFF_TUN)?;
        Ok(Tun { file })
    }

    /// Reads a packet, from its IP header on. Returns its length; `None` if there was none for `timeout`.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn receive(&self, buffer: &mut [u8], timeout: Nanos) -> io::Result<Option<usize>> {
        let received = take(&self.file, buffer)?;
        if received.is_none() {
            wait_for_any([self.file.as_raw_fd()], timeout)?;
        }
        Ok(received)
    }
}

/// A TAP interface. It exists until this value is dropped, or the process ends, even if it is killed.
///
/// It has no offloads. So the kernel computes all checksums, and cuts segments of TCP and UDP into packets, before this
/// process reads them. VLAN tags are in the frame.
#[derive(Debug)]
pub struct Tap {
    file: File,
    name: String,
}

impl Tap {
    /// Creates an interface in the network namespace of the calling thread. It is down. A `%d` in the name becomes the first
    /// number that is not in use.
    ///
    /// # Errors
    /// If the name is in use, the kernel has no TAP interfaces, or this process lacks the privilege.
    pub fn create(name: &str) -> io::Result<Tap> {
        let (file, name) = create(name, libc::IFF_TAP)?;
        Ok(Tap { file, name })
    }

    /// The name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads a frame, from its Ethernet header on. Returns its length; `None` if there is none now. Of a frame that is longer
    /// than the buffer, the rest is lost.
    ///
    /// # Errors
    /// If the kernel returns an error.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        take(&self.file, buffer)
    }
}

impl AsRawFd for Tap {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// Creates an interface of this kind; returns its name.
fn create(name: &str, kind: c_int) -> io::Result<(File, String)> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)?;
    let mut request = request_for(name)?;
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq` without pointers.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    Ok((file, name_of(&request)))
}

/// Reads what is there.
#[inline]
fn take(mut file: &File, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match file.read(buffer) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        read => read.map(Some),
    }
}
