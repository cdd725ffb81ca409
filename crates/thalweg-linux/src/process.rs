//! Groups of processes (setpgid(2), kill(2)), and processes that are not children (proc_pid_stat(5)).

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// The identity of a process until the machine restarts. The kernel uses the numbers of processes again; with the start time, a later process
/// with the same number is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The number.
    pub pid: u32,
    /// The start time, in clock ticks since the start of the machine.
    pub start_time: u64,
}

impl ProcessIdentity {
    /// Returns the identity of the process that has this number now; `None` if there is none, or it has ended.
    pub fn of(pid: u32) -> Option<ProcessIdentity> {
        let start_time = start_time(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
        Some(ProcessIdentity { pid, start_time })
    }

    /// Whether the process has not ended. A process that was stopped runs.
    pub fn is_running(self) -> bool {
        ProcessIdentity::of(self.pid) == Some(self)
    }

    /// Whether the process was stopped, by SIGSTOP or a debugger, and has not been continued.
    pub fn is_stopped(self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        start_time(&stat) == Some(self.start_time) && matches!(state(&stat), Some("T" | "t"))
    }

    /// Asks the process to end (SIGTERM). Does nothing if it has ended.
    ///
    /// # Errors
    /// If this process lacks the privilege.
    pub fn terminate(self) -> io::Result<()> {
        self.signal(Signal::SIGTERM)
    }

    /// Ends the process (SIGKILL). Does nothing if it has ended.
    ///
    /// # Errors
    /// If this process lacks the privilege.
    pub fn kill(self) -> io::Result<()> {
        self.signal(Signal::SIGKILL)
    }

    fn signal(self, signal: Signal) -> io::Result<()> {
        if !self.is_running() {
            return Ok(());
        }
        match kill(Pid::from_raw(self.pid as i32), signal) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns a text that differs after each start of the machine, by which process identities of an earlier one can be recognised.
///
/// # Errors
/// If the kernel does not say.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim_end().to_owned())
}

/// Returns the start time in /proc/PID/stat; `None` if the process has ended and only waits to be reaped. The name of the program, in
/// parentheses, may have spaces and parentheses itself.
fn start_time(stat: &str) -> Option<u64> {
    match state(stat)? {
        "Z" | "X" | "x" => None,
        // Field 22, and the state is field 3.
        _ => stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok(),
    }
}

/// Returns the state in /proc/PID/stat, a letter.
fn state(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().next()
}

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
    fn a_process_is_told_from_a_later_one_with_its_number() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let process = ProcessIdentity::of(child.id()).unwrap();
        assert!(process.is_running());
        let earlier = ProcessIdentity { start_time: process.start_time - 1, ..process };
        assert!(!earlier.is_running());
        earlier.kill().unwrap();
        assert!(process.is_running(), "the signal was for another process");
        process.signal(Signal::SIGSTOP).unwrap();
        while !process.is_stopped() {
            std::thread::yield_now();
        }
        assert!(process.is_running() && !earlier.is_stopped());
        process.signal(Signal::SIGCONT).unwrap();
        process.terminate().unwrap();
        // Ended once its parent can see it, even before it was reaped.
        while process.is_running() {
            std::thread::yield_now();
        }
        process.kill().unwrap();
        assert_eq!(child.wait().unwrap().code(), None);
        assert_eq!(ProcessIdentity::of(child.id()), None);
        assert_eq!(boot_id().unwrap(), boot_id().unwrap());
    }

    #[test]
    fn the_start_time_is_the_22nd_field_of_a_process_that_has_not_ended() {
        let stat = |state| {
            format!(
                "7 (a) b)) {state} 1 7 7 0 -1 4194560 99 0 0 0 1 2 0 0 20 0 1 0 1234 8192 400 18446744073709551615 1 1"
            )
        };
        assert_eq!(
            ["S", "R", "T", "Z", "X"].map(|state| start_time(&stat(state))),
            [Some(1234), Some(1234), Some(1234), None, None]
        );
        assert_eq!(["", "7", "7 (a)", "7 (a) S 1"].map(start_time), [None; 4]);
    }

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
