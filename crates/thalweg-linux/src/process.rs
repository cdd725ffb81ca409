//! Groups of processes (setpgid(2), kill(2)).

use std::io;

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

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_group_is_killed_with_its_children() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 1000 & wait"]).process_group(0).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        kill_group(child.id()).unwrap();
        assert!(!child.wait().unwrap().success());
        // The end of the pipe: its writers, both of them, are gone.
        assert_eq!(stderr.read(&mut [0]).unwrap(), 0);
    }
}
