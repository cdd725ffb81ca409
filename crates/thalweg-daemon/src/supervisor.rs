//! Notifications to systemd (sd_notify(3)): ready, reloading, stopping, watchdog.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Time of the process to end after its stop.
const STOP_MARGIN: Duration = Duration::from_secs(2);

/// The notification socket of systemd; none if systemd did not start this process.
#[derive(Debug, Default)]
pub(super) struct Supervisor {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// Timeout of systemd's watchdog.
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC`, and `WATCHDOG_PID` if that is set.
    pub(super) fn from_environment() -> Supervisor {
        let variable = |name| std::env::var(name).ok();
        let socket = variable("NOTIFY_SOCKET").and_then(|name| connect(&name).ok());
        let is_ours = variable("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
        let micros =
            variable("WATCHDOG_USEC").and_then(|text| text.parse().ok()).filter(|&micros| micros > 0);
        Supervisor { socket, watchdog: micros.filter(|_| is_ours).map(Duration::from_micros) }
    }

    /// Returns the interval for [`Supervisor::notify_watchdog`]: half the timeout.
    pub(super) fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|watchdog| watchdog / 2)
    }

    /// All sources are open or have failed.
    pub(super) fn notify_ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// A reload has started. [`Supervisor::notify_ready`] ends it.
    pub(super) fn notify_reloading(&self) {
        self.send("RELOADING=1\nSTATUS=reloading");
    }

    /// The daemon is stopping, which may take this long. If that exceeds `TimeoutStopSec`, systemd waits longer.
    pub(super) fn notify_stopping(&self, limit: Duration) {
        let limit = (limit + STOP_MARGIN).as_micros();
        self.send(&format!("STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC={limit}"));
    }

    /// All collectors are healthy.
    pub(super) fn notify_watchdog(&self) {
        self.send("WATCHDOG=1");
    }

    /// Sets the text that `systemctl status` shows.
    pub(super) fn notify_status(&self, status: &str) {
        self.send(&format!("STATUS={status}"));
    }

    /// Sends a notification. Errors are ignored.
    fn send(&self, state: &str) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(state.as_bytes(), address);
        }
    }
}

fn connect(name: &str) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_arrive_at_the_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        let socket = Some(connect(path.to_str().unwrap()).unwrap());
        let supervisor = Supervisor { socket, watchdog: Some(Duration::from_secs(10)) };
        assert_eq!(supervisor.watchdog_interval(), Some(Duration::from_secs(5)));
        supervisor.notify_ready("two collectors");
        supervisor.notify_reloading();
        supervisor.notify_watchdog();
        supervisor.notify_stopping(Duration::from_secs(8));
        let received = ["READY=1\nSTATUS=two collectors", "RELOADING=1\nSTATUS=reloading", "WATCHDOG=1"];
        let stopping = "STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=10000000";
        for expected in received.into_iter().chain([stopping]) {
            let mut bytes = [0; 100];
            let length = systemd.recv(&mut bytes).unwrap();
            assert_eq!(std::str::from_utf8(&bytes[..length]), Ok(expected));
        }
        drop(systemd);
        supervisor.notify_watchdog();
        Supervisor::default().notify_watchdog();
    }
}
