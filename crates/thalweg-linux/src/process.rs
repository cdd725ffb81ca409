//! Groups of processes (setpgid(2), kill(2)), and pipes that are read without waiting (fcntl(2)).

#![expect(unsafe_code, reason = "fcntl(2) has variable arguments")]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Kills all processes of a group, by the number of its first process. Call it before that process was waited for: its number, and so that of
/// the group, may be another's afterwards. Processes that moved to a group of their own survive.
///
/// # Errors
/// If the kernel refuses. No error if the group has ended.
pub fn kill_group(leader: u32) -> io::Result<()> {
    let group = i32::try_from(leader).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    match killpg(Pid::from_raw(group), Signal::SIGKILL) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Lets reads of a descriptor fail with [`io::ErrorKind::WouldBlock`] instead of waiting. So do those of all copies of it.
///
/// # Errors
/// If the kernel refuses.
pub fn set_nonblocking(descriptor: impl AsFd) -> io::Result<()> {
    let descriptor = descriptor.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and the command has no pointer.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    let result = unsafe { libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_group_is_killed_with_its_children_and_a_pipe_does_not_block() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 1000 & wait"]).process_group(0).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        set_nonblocking(&stderr).unwrap();
        assert_eq!(stderr.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        kill_group(child.id()).unwrap();
        assert!(!child.wait().unwrap().success());
        // The end of the pipe: its writers, both of them, are gone.
        let end = loop {
            match stderr.read(&mut [0]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                end => break end,
            }
        };
        assert_eq!(end.unwrap(), 0);
    }
}
