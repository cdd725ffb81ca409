//! Locks by name within a network namespace, as abstract sockets (unix(7)).
//!
//! The kernel frees a name when the process that holds it ends, however that happens. A lock needs no file, no folder and no
//! privilege, and is kept when privileges are dropped. Processes with different file systems see the same names, those in different
//! network namespaces do not.
//!
//! No privilege also means that any process of the namespace can hold any name. [`LockError::Held`] says which one does.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen, socket, sockopt,
};
use thiserror::Error;

/// A lock, freed when dropped or when the process ends.
#[derive(Debug)]
pub struct NameLock {
    _socket: OwnedFd,
}

/// Why a lock cannot be acquired.
#[derive(Debug, Error)]
pub enum LockError {
    /// A process holds it.
    #[error("{}", holder(.pid))]
    Held {
        /// The process; `None` if it is in another process namespace, or has just ended.
        pid: Option<u32>,
    },
    /// The kernel returned an error.
    #[error(transparent)]
    System(#[from] io::Error),
}

fn holder(pid: &Option<u32>) -> String {
    match pid {
        Some(pid) => format!("held by process {pid}"),
        None => "held by an unknown process".to_owned(),
    }
}

impl NameLock {
    /// Acquires the lock of this name in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the lock is held, or the name has more than 107 bytes.
    pub fn acquire(name: &str) -> Result<NameLock, LockError> {
        let socket = open()?;
        let address = UnixAddr::new_abstract(name.as_bytes()).map_err(io::Error::from)?;
        match bind(socket.as_raw_fd(), &address) {
            Ok(()) => {}
            Err(Errno::EADDRINUSE) => return Err(LockError::Held { pid: holder_of(&address) }),
            Err(error) => return Err(io::Error::from(error).into()),
        }
        // Others connect to learn the process. Nobody accepts them.
        listen(&socket, Backlog::MAXCONN).map_err(io::Error::from)?;
        Ok(NameLock { _socket: socket })
    }
}

fn open() -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?)
}

/// Returns the process that listens at an address.
fn holder_of(address: &UnixAddr) -> Option<u32> {
    let socket = open().ok()?;
    connect(socket.as_raw_fd(), address).ok()?;
    let pid = getsockopt(&socket, sockopt::PeerCredentials).ok()?.pid();
    // 0 for a process of another namespace.
    u32::try_from(pid).ok().filter(|&pid| pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_holder_until_it_is_dropped() {
        let name = format!("thalweg-test/{}", std::process::id());
        let lock = NameLock::acquire(&name).unwrap();
        for _ in 0..3 {
            let error = NameLock::acquire(&name).unwrap_err();
            assert!(matches!(error, LockError::Held { pid } if pid == Some(std::process::id())), "{error}");
            assert_eq!(error.to_string(), format!("held by process {}", std::process::id()));
        }
        let other = NameLock::acquire(&format!("{name}/other")).unwrap();
        drop(lock);
        NameLock::acquire(&name).unwrap();
        drop(other);
        let long = NameLock::acquire(&"x".repeat(108)).unwrap_err();
        assert!(matches!(long, LockError::System(_)), "{long}");
    }
}
