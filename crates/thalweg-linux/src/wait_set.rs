//! Waits until one of several descriptors has data to read (ppoll(2)), with the resolution of the kernel's timers.

#![expect(unsafe_code, reason = "a system call that takes pointers")]

use std::io;
use std::os::fd::RawFd;

use thalweg_wire::Nanos;

/// Some descriptors to wait for. Allocated once.
#[derive(Clone, Debug)]
pub struct WaitSet {
    requests: Box<[libc::pollfd]>,
}

impl WaitSet {
    /// Creates a set of these descriptors. The caller keeps them open as long as it waits.
    pub fn new(descriptors: impl IntoIterator<Item = RawFd>) -> WaitSet {
        let request = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        WaitSet { requests: descriptors.into_iter().map(request).collect() }
    }

    /// Waits until a descriptor has data or an error, for at most `timeout`. Returns early, without either, after a signal.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        let timeout = libc::timespec {
            tv_sec: (timeout.0 / 1_000_000_000) as libc::time_t,
            tv_nsec: (timeout.0 % 1_000_000_000) as libc::c_long,
        };
        let (requests, count) = (self.requests.as_mut_ptr(), self.requests.len() as libc::nfds_t);
        // SAFETY: the pointer is to that many requests; the kernel only reads the time, and takes no signal mask.
        let ready = unsafe { libc::ppoll(requests, count, &raw const timeout, std::ptr::null()) };
        if ready >= 0 {
            return Ok(());
        }
        self.requests.iter_mut().for_each(|request| request.revents = 0);
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        }
    }

    /// Whether the descriptor at this position of the set had data or an error when the last wait ended.
    pub fn is_ready(&self, position: usize) -> bool {
        self.requests[position].revents != 0
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn only_the_descriptor_with_data_is_ready() {
        let [one, other] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut set = WaitSet::new([one.as_raw_fd(), other.as_raw_fd()]);
        set.wait(Nanos::from_micros(1)).unwrap();
        assert!(!set.is_ready(0) && !set.is_ready(1));
        one.send_to(&[1], other.local_addr().unwrap()).unwrap();
        set.wait(Nanos::from_secs(10)).unwrap();
        assert!(!set.is_ready(0) && set.is_ready(1));
    }
}
