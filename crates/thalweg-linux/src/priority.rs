//! Scheduling of threads (sched(7)).

#![expect(unsafe_code, reason = "system calls that take pointers")]

use std::io;

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
