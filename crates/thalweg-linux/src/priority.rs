//! Scheduling of threads (sched(7)).

#![expect(unsafe_code, reason = "system calls that take pointers")]

use std::path::Path;
use std::{fs, io};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use thalweg_wire::Nanos;

/// The parameter below `/proc/sys` that says how long threads with real-time priority may run in each second, in microseconds; one value for
/// the machine.
pub const REAL_TIME_LIMIT: &str = "kernel/sched_rt_runtime_us";

/// Its value without a limit.
pub const UNLIMITED: &str = "-1";

/// Gives the calling thread the lowest priority (SCHED_IDLE): it runs when a processor has nothing else to do. Needs no privilege.
///
/// # Errors
/// If the kernel refuses.
pub fn be_idle() -> io::Result<()> {
    // SAFETY: a structure of integers, for which zero is valid.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel only reads the parameters, which outlive the call. Thread 0 is the calling one.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives the calling thread the lowest real-time priority (SCHED_FIFO, 1): it runs before all threads without one. A thread
/// that never waits then starves them, except for the share that `kernel.sched_rt_runtime_us` leaves.
///
/// # Errors
/// If this process lacks the privilege.
pub fn be_real_time() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel only reads the parameters, which outlive the call. Thread 0 is the calling one.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets the calling thread run on one processor only, numbered from 0.
///
/// # Errors
/// If there is no such processor, or this process may not use it.
pub fn run_on(processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Lets the calling thread, and what it starts from now on, run on all processors that it may use but one, numbered from 0. Changes
/// nothing if it may use no other.
///
/// # Errors
/// If the kernel refuses.
pub fn keep_off(processor: usize) -> io::Result<()> {
    let this = Pid::from_raw(0);
    let mut set = sched_getaffinity(this)?;
    set.unset(processor)?;
    let is_empty = !(0..CpuSet::count()).any(|other| set.is_set(other).unwrap_or(false));
    if is_empty { Ok(()) } else { Ok(sched_setaffinity(this, &set)?) }
}

/// Whether the kernel stops threads with real-time priority once they have used their share of a second on a processor, 95 % by
/// default (`kernel.sched_rt_runtime_us`). Kernels without this parameter do not.
pub fn has_real_time_limit() -> bool {
    fs::read_to_string(Path::new("/proc/sys").join(REAL_TIME_LIMIT))
        .is_ok_and(|limit| limit.trim() != UNLIMITED)
}

/// Gives the calling thread the largest share of its processor that a thread without real-time priority can have (a nice value
/// of -20). The kernel also moves other threads to other processors, if they may run there.
///
/// # Errors
/// If this process lacks the privilege.
pub fn be_preferred() -> io::Result<()> {
    // SAFETY: takes numbers only. Of Linux, 0 is the calling thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the processors that this process may use, in order.
pub fn processors() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|processor| set.is_set(*processor).unwrap_or(false)).collect()
}

/// Returns the last of the processors that this process may use, if it may use several.
pub fn last_processor() -> Option<usize> {
    let processors = processors();
    processors.last().copied().filter(|_| processors.len() > 1)
}

/// Lets the kernel end waits of the calling thread up to `slack` late, to combine them; 50 us by default.
///
/// # Errors
/// If the kernel refuses.
pub fn set_timer_slack(slack: Nanos) -> io::Result<()> {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack.0.max(1) as libc::c_ulong) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_on_the_processor_that_it_chose() {
        let Some(last) = last_processor() else { return };
        let ran_on = std::thread::spawn(move || {
            run_on(last).unwrap();
            // SAFETY: takes nothing.
            let processor = unsafe { libc::sched_getcpu() };
            (processor, last_processor())
        });
        assert_eq!(ran_on.join().unwrap(), (last as i32, None));
        assert!(run_on(CpuSet::count()).is_err() && last_processor() == Some(last));
    }

    #[test]
    fn what_a_thread_starts_keeps_off_as_well() {
        let Some(last) = last_processor() else { return };
        let of_child = std::thread::spawn(move || {
            keep_off(last).unwrap();
            std::thread::spawn(last_processor).join().unwrap()
        });
        // With two processors, one is left: no longer several.
        assert_ne!(of_child.join().unwrap(), Some(last));
        let of_one = std::thread::spawn(move || {
            run_on(last).unwrap();
            keep_off(last).unwrap();
            sched_getaffinity(Pid::from_raw(0)).unwrap().is_set(last).unwrap()
        });
        assert!(of_one.join().unwrap(), "the last processor of a thread stays");
        assert_eq!(last_processor(), Some(last));
    }

    #[test]
    fn the_thread_alone_becomes_idle() {
        // SAFETY: reads the policy of the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        let other = std::thread::spawn(move || {
            be_idle().unwrap();
            policy()
        });
        assert_eq!((other.join().unwrap(), policy()), (libc::SCHED_IDLE, before));
    }
}
