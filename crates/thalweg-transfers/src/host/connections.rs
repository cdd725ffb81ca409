//! TCP connections that move much data.
//!
//! All connections of the host are looked at in each interval. Those that moved at least [`ConnectionOptions::min_bytes`] are reported,
//! and for [`LINGER`] intervals after that, so that a transfer that stalls is seen to stall. If one moves data again later, one sample
//! covers the time in between: a longer stall of a transfer, or the pause between two transfers of a connection.

use std::collections::{HashMap, HashSet};
use std::io;

use thalweg_api::{ConnectionSample, TransferDirection};
use thalweg_linux::sock_diag::{SockDiag, TcpConnection, TcpInfo};

use super::processes::{ProcessCounters, Processes};
use super::{SampleTime, interval, micros};

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
    before: Option<SampleTime>,
    left_out: u64,
}

/// A connection of the previous interval.
#[derive(Clone, Debug)]
struct Known {
    info: TcpInfo,
    /// Bytes in the send queue, and in the receive queue.
    queues: (u32, u32),
    /// Intervals for which it is still reported.
    left: u32,
    direction: TransferDirection,
    /// The state at its latest sample; `None` before the first.
    reported: Option<Box<Reported>>,
}

/// A connection at the time of a sample.
#[derive(Clone, Debug)]
struct Reported {
    time: SampleTime,
    info: TcpInfo,
    direction: TransferDirection,
    /// Its process, if that is known.
    process: Option<(u32, ProcessCounters)>,
}

/// A connection to report.
struct Active<'a> {
    connection: &'a TcpConnection,
    /// What changed since the previous interval.
    change: TcpInfo,
    /// The connection at the end of the previous interval, if it moves data again after it was no longer reported.
    resumed: Option<TcpConnection>,
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

    /// Returns the connections that move data, the largest first.
    ///
    /// # Errors
    /// If the kernel does not list connections.
    pub fn sample(&mut self, now: SampleTime) -> io::Result<Vec<ConnectionSample>> {
        let connections = self.source.tcp_connections()?;
        let before = self.before.replace(now);
        let mut active = self.changes(&connections, before.is_none());
        // Connections that had moved data before the first interval are new in none.
        let Some(before) = before else { return Ok(Vec::new()) };
        active.sort_by_key(|active| std::cmp::Reverse(moved(&active.change)));
        self.left_out += active.len().saturating_sub(self.options.max_connections) as u64;
        active.truncate(self.options.max_connections);
        self.processes.follow(&active.iter().map(|active| active.connection.inode).collect());
        let counters = self.processes.read();
        let mut samples = Vec::with_capacity(active.len());
        for active in &active {
            samples.extend(self.gap(active, before));
            let direction = self.known[&active.connection.cookie].direction;
            let mut sample = self.between(active.connection, &active.change, direction, before, now);
            let process = counters.get(&sample.pid);
            if let (Some(counters), Some(then)) = (process, self.process_counters.get(&sample.pid)) {
                add_process(&mut sample, counters, then);
                let (blocked, samples) = counters.blocked;
                sample.process_blocked_us =
                    now.micros_since(before) * u64::from(blocked) / u64::from(samples.max(1));
            }
            let process = process.map(|counters| (sample.pid, counters.clone()));
            let reported = Reported { time: now, info: active.connection.info, direction, process };
            if let Some(known) = self.known.get_mut(&active.connection.cookie) {
                known.reported = Some(Box::new(reported));
            }
            samples.push(sample);
        }
        self.process_counters = counters;
        Ok(samples)
    }

    /// Returns a sample of the time since the latest one of a connection that moves data again, up to the end of the previous interval;
    /// `None` if there is no such time. Times of the process are 0 if they are not known. The time that it was blocked never is.
    fn gap(&self, active: &Active<'_>, before: SampleTime) -> Option<ConnectionSample> {
        let resumed = active.resumed.as_ref()?;
        let reported = self.known.get(&resumed.cookie)?.reported.as_ref()?;
        if reported.time == before {
            return None;
        }
        let change = difference(&resumed.info, &reported.info);
        let mut sample = self.between(resumed, &change, reported.direction, reported.time, before);
        if let Some((pid, then)) = &reported.process
            && *pid == sample.pid
            && let Some(counters) = self.process_counters.get(pid)
        {
            add_process(&mut sample, counters, then);
        }
        Some(sample)
    }

    /// Returns a sample of the time between two others, without times of the process.
    fn between(
        &self,
        connection: &TcpConnection,
        change: &TcpInfo,
        direction: TransferDirection,
        start: SampleTime,
        end: SampleTime,
    ) -> ConnectionSample {
        let mut sample = sample(connection, change, direction);
        sample.time_us = micros(end.wall);
        sample.interval_us = interval(end.micros_since(start));
        if let Some((pid, name)) = self.processes.owner(connection.inode) {
            (sample.pid, sample.process) = (pid, name.to_owned());
        }
        sample
    }

    /// Returns the connections to report, and remembers all. `is_first`: there is no previous interval.
    fn changes<'a>(&mut self, connections: &'a [TcpConnection], is_first: bool) -> Vec<Active<'a>> {
        let mut active = Vec::new();
        let mut seen = HashSet::with_capacity(connections.len());
        for connection in connections {
            seen.insert(connection.cookie);
            let known = self.known.entry(connection.cookie).or_insert_with(|| Known {
                // A connection that began within the interval counts from its beginning.
                info: if is_first { connection.info } else { TcpInfo::default() },
                queues: (0, 0),
                left: 0,
                direction: TransferDirection::Send,
                reported: None,
            });
            let change = difference(&connection.info, &known.info);
            let mut resumed = None;
            if moved(&change) >= self.options.min_bytes {
                if known.left == 0 && known.reported.is_some() {
                    let (send_queue_bytes, receive_queue_bytes) = known.queues;
                    let info = known.info;
                    resumed = Some(TcpConnection {
                        info,
                        send_queue_bytes,
                        receive_queue_bytes,
                        ..connection.clone()
                    });
                }
                known.left = LINGER + 1;
                known.direction = match change.acked_bytes >= change.received_bytes {
                    true => TransferDirection::Send,
                    false => TransferDirection::Receive,
                };
            }
            known.info = connection.info;
            known.queues = (connection.send_queue_bytes, connection.receive_queue_bytes);
            if known.left > 0 {
                known.left -= 1;
                active.push(Active { connection, change, resumed });
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

/// Adds what a process did between two readings of its counters.
fn add_process(sample: &mut ConnectionSample, now: &ProcessCounters, then: &ProcessCounters) {
    sample.process_cpu_us = now.cpu_us.saturating_sub(then.cpu_us);
    sample.process_wait_us = now.wait_us.saturating_sub(then.wait_us);
    sample.process_throttled_us = now.throttled_us.saturating_sub(then.throttled_us);
    sample.process_read_bytes = now.read_bytes.saturating_sub(then.read_bytes);
    sample.process_write_bytes = now.write_bytes.saturating_sub(then.write_bytes);
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use thalweg_wire::Timestamp;

    use super::*;

    const OPTIONS: ConnectionOptions = ConnectionOptions { min_bytes: 500_000, max_connections: 10 };

    /// The wall clock is an hour ahead until it is set.
    fn second(number: u64) -> SampleTime {
        let wall = match number < 2 {
            true => number + 3_600,
            false => number,
        };
        let [wall, monotonic] = [wall, number].map(|seconds| Timestamp(seconds * 1_000_000_000));
        SampleTime { wall, monotonic }
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
        // It moves data again. The stall is a sample of its own.
        send(1_000_000);
        let samples = of_test(sampler.sample(second(21)).unwrap());
        for direction in [TransferDirection::Send, TransferDirection::Receive] {
            let of_side: Vec<_> = samples.iter().filter(|sample| sample.direction == direction).collect();
            let [gap, last] = of_side[..] else { panic!("two samples, not {of_side:?}") };
            assert_eq!((gap.time_us, gap.interval_us), (20_000_000, 13_000_000));
            assert_eq!((last.time_us, last.interval_us), (21_000_000, 1_000_000));
            assert_eq!((gap.pid, last.pid), (std::process::id(), std::process::id()));
            assert!(moved_by(gap) <= 1_000);
            assert_eq!(moved_by(gap) + moved_by(last), 1_001_000);
        }
        send(1_000_000);
        assert_eq!(of_test(sampler.sample(second(22)).unwrap()).len(), 2);
        server.write_all(b"end").unwrap();
    }

    fn moved_by(sample: &ConnectionSample) -> u64 {
        sample.acked_bytes.max(sample.received_bytes)
    }
}
