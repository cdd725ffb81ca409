//! What systemd is told (sd_notify(3)): that the daemon is ready, reloads, stops, and still does its work.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Where systemd listens; nowhere if it did not start this process.
#[derive(Debug, Default)]
pub(super) struct Supervisor {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// How often it wants to hear that all is well.
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// As the environment says: `NOTIFY_SOCKET`, `WATCHDOG_USEC`, and `WATCHDOG_PID` if that is set.
    pub(super) fn from_environment() -> Supervisor {
        let variable = |name| std::env::var(name).ok();
        let socket = variable("NOTIFY_SOCKET").and_then(|name| connect(&name).ok());
        let is_ours = variable("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
        let micros =
            variable("WATCHDOG_USEC").and_then(|text| text.parse().ok()).filter(|&micros| micros > 0);
        Supervisor { socket, watchdog: micros.filter(|_| is_ours).map(Duration::from_micros) }
    }

    /// How often [`Supervisor::is_well`] has to be said; twice as often as systemd demands.
    pub(super) fn interval(&self) -> Option<Duration> {
        self.watchdog.map(|watchdog| watchdog / 2)
    }

    /// All sources have been tried.
    pub(super) fn is_ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}"));
    }

    /// The configuration is read again; [`Supervisor::is_ready`] ends it.
    pub(super) fn reloads(&self) {
        self.tell("RELOADING=1\nSTATUS=reloading");
    }

    /// On the way out.
    pub(super) fn stops(&self) {
        self.tell("STOPPING=1\nSTATUS=stopping");
    }

    /// Every collector does its work.
    pub(super) fn is_well(&self) {
        self.tell("WATCHDOG=1");
    }

    /// What `systemctl status` shows.
    pub(super) fn status(&self, status: &str) {
        self.tell(&format!("STATUS={status}"));
    }

    /// Whether systemd hears it is not the daemon's business.
    fn tell(&self, state: &str) {
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
    fn what_is_told_arrives_at_the_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        let socket = Some(connect(path.to_str().unwrap()).unwrap());
        let supervisor = Supervisor { socket, watchdog: Some(Duration::from_secs(10)) };
        assert_eq!(supervisor.interval(), Some(Duration::from_secs(5)));
        supervisor.is_ready("two collectors");
        supervisor.reloads();
        supervisor.is_well();
        supervisor.stops();
        let heard = ["READY=1\nSTATUS=two collectors", "RELOADING=1\nSTATUS=reloading", "WATCHDOG=1"];
        for expected in heard.into_iter().chain(["STOPPING=1\nSTATUS=stopping"]) {
            let mut bytes = [0; 100];
            let length = systemd.recv(&mut bytes).unwrap();
            assert_eq!(std::str::from_utf8(&bytes[..length]), Ok(expected));
        }
        drop(systemd);
        supervisor.is_well();
        Supervisor::default().is_well();
    }
}
