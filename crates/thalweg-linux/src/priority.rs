//! Scheduling of threads (sched(7)).

#![expect(unsafe_code, reason = "system calls that take pointers")]

use std::io;

use thalweg_wire::Nanos;

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
