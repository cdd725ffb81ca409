//! TCP connections that move much data.
//!
//! All connections of the host are looked at in each interval. Those that moved at least [`ConnectionOptions::min_bytes`] are reported,
//! and for [`LINGER`] intervals after that, so that a transfer that stalls is seen to stall.

use std::collections::{HashMap, HashSet};
use std::io;

use thalweg_api::{ConnectionSample, TransferDirection};
use thalweg_linux::sock_diag::{SockDiag, TcpConnection, TcpInfo};
use thalweg_wire::Timestamp;

use super::micros;
use super::processes::{ProcessCounters, Processes};

/// Intervals for which a connection is reported after it moved data.
const LINGER: u32 = 5;

/// Which connections to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionOptions {
    /// Bytes in one direction and interval from which a connection is a transfer.
    pub min_bytes: u64,
    /// Maximum number of connections in an interval. The largest are reported.
    pub max_connections: usize,
}

/// Samples connections.
#[derive(Debug)]
pub struct ConnectionSampler {
    options: ConnectionOptions,
    source: SockDiag,
    known: HashMap<u64, Known>,
    processes: Processes,
    process_counters: HashMap<u32, ProcessCounters>,
    before: Option<Timestamp>,
    left_out: u64,
}

/// A connection of the previous interval.
#[derive(Clone, Debug)]
struct Known {
    info: TcpInfo,
    /// Intervals for which it is still reported.
    left: u32,
    direction: TransferDirection,
}

impl ConnectionSampler {
    /// Creates a sampler in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the kernel does not list connections.
    pub fn open(options: ConnectionOptions) -> io::Result<ConnectionSampler> {
        Ok(ConnectionSampler {
            options,
            source: SockDiag::open()?,
            known: HashMap::new(),
            processes: Processes::default(),
            process_counters: HashMap::new(),
            before: None,
            left_out: 0,
        })
    }

    /// Whether a connection is being reported.
    pub fn is_active(&self) -> bool {
        self.known.values().any(|known| known.left > 0)
    }

    /// Returns how many samples were left out because there were too many connections.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Samples whether processes of reported connections are blocked. Call it several times in an interval.
    pub fn sample_blocked(&mut self) {
        self.processes.sample_blocked();
    }

    /// Returns the connections that move data, the largest first. `now` is the wall clock.
    ///
    /// # Errors
    /// If the kernel does not list connections.
    pub fn sample(&mut self, now: Timestamp) -> io::Result<Vec<ConnectionSample>> {
        let connections = self.source.tcp_connections()?;
        let interval_us = self.before.replace(now).map(|before| now.0.saturating_sub(before.0) / 1_000);
        let mut active = self.changes(&connections, interval_us.is_none());
        // Connections that had moved data before the first interval are new in none.
        let Some(interval_us) = interval_us else { return Ok(Vec::new()) };
        active.sort_by_key(|(_, change)| std::cmp::Reverse(moved(change)));
        self.left_out += active.len().saturating_sub(self.options.max_connections) as u64;
        active.truncate(self.options.max_connections);
        self.processes.follow(&active.iter().map(|(connection, _)| connection.inode).collect());
        let counters = self.processes.read();
        let samples = active.iter().map(|(connection, change)| {
            let known = &self.known[&connection.cookie];
            let mut sample = sample(connection, change, known.direction);
            sample.time_us = micros(now);
            sample.interval_us = interval_us.min(u64::from(u32::MAX)) as u32;
            if let Some((pid, name)) = self.processes.owner(connection.inode) {
                (sample.pid, sample.process) = (pid, name.to_owned());
                if let (Some(now), Some(then)) = (counters.get(&pid), self.process_counters.get(&pid)) {
                    add_process(&mut sample, now, then, interval_us);
                }
            }
            sample
        });
        let samples = samples.collect();
        self.process_counters = counters;
        Ok(samples)
    }

    /// Returns the active connections with what changed since the previous interval, and remembers all. `is_first`: there is none.
    fn changes<'a>(
        &mut self,
        connections: &'a [TcpConnection],
        is_first: bool,
    ) -> Vec<(&'a TcpConnection, TcpInfo)> {
        let mut active = Vec::new();
        let mut seen = HashSet::with_capacity(connections.len());
        for connection in connections {
            seen.insert(connection.cookie);
            let known = self.known.entry(connection.cookie).or_insert_with(|| Known {
                // A connection that began within the interval counts from its beginning.
                info: if is_first { connection.info } else { TcpInfo::default() },
                left: 0,
                direction: TransferDirection::Send,
            });
            let change = difference(&connection.info, &known.info);
            known.info = connection.info;
            if moved(&change) >= self.options.min_bytes {
                known.left = LINGER + 1;
                known.direction = match change.acked_bytes >= change.received_bytes {
                    true => TransferDirection::Send,
                    false => TransferDirection::Receive,
                };
            }
            if known.left > 0 {
                known.left -= 1;
                active.push((connection, change));
            }
        }
        self.known.retain(|cookie, _| seen.contains(cookie));
        active
    }
}

/// Returns the bytes of the larger direction.
fn moved(change: &TcpInfo) -> u64 {
    change.acked_bytes.max(change.received_bytes)
}

/// Returns the current state with the changes of all counters.
fn difference(now: &TcpInfo, then: &TcpInfo) -> TcpInfo {
    TcpInfo {
        acked_bytes: now.acked_bytes.saturating_sub(then.acked_bytes),
        received_bytes: now.received_bytes.saturating_sub(then.received_bytes),
        sent_segments: now.sent_segments.wrapping_sub(then.sent_segments),
        retransmitted_segments: now.retransmitted_segments.wrapping_sub(then.retransmitted_segments),
        sent_bytes: now.sent_bytes.saturating_sub(then.sent_bytes),
        retransmitted_bytes: now.retransmitted_bytes.saturating_sub(then.retransmitted_bytes),
        busy_us: now.busy_us.saturating_sub(then.busy_us),
        receive_window_limited_us: now
            .receive_window_limited_us
            .saturating_sub(then.receive_window_limited_us),
        send_buffer_limited_us: now.send_buffer_limited_us.saturating_sub(then.send_buffer_limited_us),
        ..*now
    }
}

fn sample(connection: &TcpConnection, change: &TcpInfo, direction: TransferDirection) -> ConnectionSample {
    let (local, remote) = (connection.local, connection.remote);
    let (src, dst) = match direction {
        TransferDirection::Send => (local, remote),
        TransferDirection::Receive => (remote, local),
    };
    ConnectionSample {
        time_us: 0,
        interval_us: 0,
        src: src.ip(),
        dst: dst.ip(),
        src_port: src.port(),
        dst_port: dst.port(),
        direction,
        pid: 0,
        process: String::new(),
        process_cpu_us: 0,
        process_wait_us: 0,
        process_throttled_us: 0,
        process_blocked_us: 0,
        process_read_bytes: 0,
        process_write_bytes: 0,
        rtt_us: change.rtt_us,
        rtt_variation_us: change.rtt_variation_us,
        min_rtt_us: change.min_rtt_us,
        cwnd_segments: change.cwnd_segments,
        mss_bytes: change.mss_bytes,
        sent_bytes: change.sent_bytes,
        acked_bytes: change.acked_bytes,
        received_bytes: change.received_bytes,
        retransmitted_bytes: change.retransmitted_bytes,
        sent_segments: change.sent_segments,
        retransmitted_segments: change.retransmitted_segments,
        delivery_rate_bps: change.delivery_rate_bytes_per_second.saturating_mul(8),
        busy_us: change.busy_us,
        receive_window_limited_us: change.receive_window_limited_us,
        send_buffer_limited_us: change.send_buffer_limited_us,
        application_limited: change.is_application_limited,
        send_queue_bytes: connection.send_queue_bytes.into(),
        receive_queue_bytes: connection.receive_queue_bytes.into(),
        send_buffer_bytes: connection.send_buffer_bytes.into(),
        receive_buffer_bytes: connection.receive_buffer_bytes.into(),
        congestion_control: connection.congestion_control.clone(),
    }
}

fn add_process(
    sample: &mut ConnectionSample,
    now: &ProcessCounters,
    then: &ProcessCounters,
    interval_us: u64,
) {
    sample.process_cpu_us = now.cpu_us.saturating_sub(then.cpu_us);
    sample.process_wait_us = now.wait_us.saturating_sub(then.wait_us);
    sample.process_throttled_us = now.throttled_us.saturating_sub(then.throttled_us);
    sample.process_read_bytes = now.read_bytes.saturating_sub(then.read_bytes);
    sample.process_write_bytes = now.write_bytes.saturating_sub(then.write_bytes);
    let (blocked, samples) = now.blocked;
    sample.process_blocked_us = interval_us * u64::from(blocked) / u64::from(samples.max(1));
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const OPTIONS: ConnectionOptions = ConnectionOptions { min_bytes: 500_000, max_connections: 10 };

    fn second(number: u64) -> Timestamp {
        Timestamp(number * 1_000_000_000)
    }

    #[test]
    fn a_connection_that_moves_data_is_reported_from_both_sides() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        let mut sampler = ConnectionSampler::open(OPTIONS).unwrap();
        let mut send = |bytes: usize| {
            let reader = std::thread::spawn({
                let mut server = server.try_clone().unwrap();
                move || server.read_exact(&mut vec![0; bytes]).unwrap()
            });
            client.write_all(&vec![7; bytes]).unwrap();
            reader.join().unwrap();
        };
        let of_test = |samples: Vec<ConnectionSample>| -> Vec<ConnectionSample> {
            samples.into_iter().filter(|sample| sample.dst_port == port).collect()
        };
        // What was moved before the first interval counts in none.
        send(1_000_000);
        assert!(sampler.sample(second(0)).unwrap().is_empty());
        assert!(of_test(sampler.sample(second(1)).unwrap()).is_empty());
        send(1_000_000);
        let samples = of_test(sampler.sample(second(2)).unwrap());
        assert_eq!(samples.len(), 2);
        let sender = samples.iter().find(|sample| sample.direction == TransferDirection::Send).unwrap();
        let receiver = samples.iter().find(|sample| sample.direction == TransferDirection::Receive).unwrap();
        assert_eq!((sender.acked_bytes, receiver.received_bytes), (1_000_000, 1_000_000));
        assert_eq!((sender.src_port, sender.interval_us), (receiver.src_port, 1_000_000));
        assert_eq!(sender.pid, std::process::id());
        assert!(sampler.is_active());
        // It stalls, and is reported for a while.
        for number in 3..3 + u64::from(LINGER) {
            let samples = of_test(sampler.sample(second(number)).unwrap());
            assert_eq!(samples.iter().map(moved_by).collect::<Vec<_>>(), [0, 0], "{number}");
        }
        send(1_000);
        assert!(of_test(sampler.sample(second(20)).unwrap()).is_empty());
        server.write_all(b"end").unwrap();
    }

    fn moved_by(sample: &ConnectionSample) -> u64 {
        sample.acked_bytes.max(sample.received_bytes)
    }
}
