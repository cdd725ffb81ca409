//! The figures of a run, and whether the emulation fell behind.

use super::Setting;
use super::network::Record;
use super::peer::Peer;
use super::processors::ProcessorUse;
use super::traffic::Traffic;
use crate::results::Table;
use crate::row;
use crate::statistics::{median, quantile};

/// Bytes of TCP payload in a packet of the largest size: MTU 1,500 without the headers of IPv4 and of TCP with timestamps.
const PAYLOAD: f64 = 1_448.0;

/// Bytes of a packet of the largest size on the wire: 1,500 and 38 of Ethernet.
const WIRE: f64 = 1_538.0;

/// The largest share of late slots or samples of a run that kept up.
pub const MAX_LATE_SHARE: f64 = 0.001;

/// The largest relative error of the rate of a run that kept up.
pub const MAX_RATE_ERROR: f64 = 0.02;

/// The delay at which ns-3 ends a simulation with `HardLimit`, in milliseconds: its default.
pub const HARD_LIMIT_MS: f64 = 100.0;

/// A run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The emulation.
    pub peer: Peer,
    /// Rate of the links in Mbit/s.
    pub mbps: u32,
    /// Hosts.
    pub hosts: u32,
    /// TCP connections.
    pub flows: u32,
    /// Number of the run, from 0.
    pub run: usize,
    /// Whether other programs used the processors before or after the run, or it was stopped for a while.
    pub is_disturbed: bool,
    /// Earlier runs of the case that were disturbed.
    pub repetitions: u32,
    /// The figures, or why there are none.
    pub outcome: Result<Figures, String>,
}

/// The figures of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// TCP payload of all flows in Mbit/s.
    pub goodput_mbps: f64,
    /// The same, divided by what the link leaves for it.
    pub goodput_ratio: f64,
    /// Jain's index of the clients' goodput, at most 1.
    pub fairness: f64,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// The queue to the receiver in packets: 5th percentile, median, 95th percentile.
    pub queue: [f64; 3],
    /// Samples of it.
    pub samples: usize,
    /// Round-trip time of pings in milliseconds: median, 99th percentile.
    pub round_trip_ms: [f64; 2],
    /// The median of round-trip times without the time of the queue when the ping was sent, in milliseconds.
    pub beyond_queue_ms: f64,
    /// The share of late slots or samples, from 0 to 1.
    pub late_share: Option<f64>,
    /// The longest delay in milliseconds.
    pub worst_ms: Option<f64>,
    /// Packets that queues dropped.
    pub dropped: u64,
    /// Processor time.
    pub processors: ProcessorUse,
    /// Packets that were emulated, and the time of a processor for each in nanoseconds: endpoints, and all but endpoints and arbiter.
    pub packets: Option<(u64, [f64; 2])>,
}

impl Measured {
    /// Computes the figures.
    pub fn new(
        peer: Peer,
        setting: &Setting<'_>,
        run: usize,
        measured: anyhow::Result<(Traffic, Record)>,
    ) -> Measured {
        let outcome = measured.map(|(traffic, record)| Figures::new(setting.mbps, &traffic, &record));
        let outcome = outcome.map_err(|error| format!("{error:#}"));
        Measured {
            peer,
            mbps: setting.mbps,
            hosts: setting.hosts,
            flows: setting.flows,
            run,
            is_disturbed: false,
            repetitions: 0,
            outcome,
        }
    }

    /// Whether the emulation did not fall behind by its own sign: `None` if it has none.
    pub fn kept_up(&self) -> Option<bool> {
        match &self.outcome {
            Ok(figures) => figures.late_share.map(|share| share <= MAX_LATE_SHARE),
            Err(_) => Some(false),
        }
    }

    /// Whether the goodput is that of the link.
    pub fn has_rate(&self) -> bool {
        matches!(&self.outcome, Ok(figures) if (figures.goodput_ratio - 1.0).abs() <= MAX_RATE_ERROR)
    }

    /// Returns a line for a terminal.
    pub fn line(&self) -> String {
        let case =
            format!("{}, {} hosts, {} flows, {} Mbit/s", self.peer.name(), self.hosts, self.flows, self.mbps);
        match &self.outcome {
            Err(error) => format!("{case}: failed: {error}"),
            Ok(figures) => {
                let late = figures
                    .late_share
                    .map_or("unknown".to_owned(), |share| format!("{:.3} %", 100.0 * share));
                format!(
                    "{case}: goodput {:.1} Mbit/s ({:.3}), queue {:.0}, round trip {:.2} ms, late {late}, {:.2} processors busy",
                    figures.goodput_mbps,
                    figures.goodput_ratio,
                    figures.queue[1],
                    figures.round_trip_ms[0],
                    figures.processors.busy
                )
            }
        }
    }
}

impl Figures {
    fn new(mbps: u32, traffic: &Traffic, record: &Record) -> Figures {
        let goodput: f64 = traffic.goodputs.iter().sum();
        let squares: f64 = traffic.goodputs.iter().map(|rate| rate * rate).sum();
        let within = record.queue.iter().filter(|sample| traffic.window.contains(&sample.time_ns));
        let queue: Vec<f64> = within.map(|sample| sample.packets).collect();
        let quantiles = [0.05, 0.5, 0.95].map(|share| quantile(&queue, share));
        let rate = f64::from(mbps) * 1e6;
        let packet_ms = WIRE * 8.0 / rate * 1e3;
        let round_trips: Vec<f64> = traffic.pings.iter().map(|ping| ping.round_trip_ms).collect();
        let round_trip_ms = [0.5, 0.99].map(|share| quantile(&round_trips, share));
        let beyond = traffic.pings.iter().map(|ping| {
            let after = record.queue.partition_point(|sample| sample.time_ns <= ping.sent_ns);
            let queued = after.checked_sub(1).map_or(0.0, |place| record.queue[place].packets);
            ping.round_trip_ms - queued * packet_ms
        });
        let beyond: Vec<f64> = beyond.collect();
        let late = record.lateness.within(&traffic.window);
        Figures {
            goodput_mbps: goodput / 1e6,
            goodput_ratio: goodput / (rate * PAYLOAD / WIRE),
            fairness: goodput * goodput / (squares * traffic.goodputs.len() as f64).max(f64::MIN_POSITIVE),
            retransmits: traffic.retransmits,
            queue: quantiles,
            samples: queue.len(),
            round_trip_ms,
            beyond_queue_ms: median(&beyond),
            late_share: late.map(|(share, _)| share),
            worst_ms: late.map(|(_, worst)| worst as f64 / 1e6),
            dropped: record.dropped,
            processors: traffic.processors,
            packets: record.packets.map(|packets| {
                let ProcessorUse { busy, core, endpoints, .. } = traffic.processor_seconds;
                let each =
                    [endpoints, busy - core - endpoints].map(|seconds| seconds * 1e9 / packets.max(1) as f64);
                (packets, each)
            }),
        }
    }
}

/// Returns the raw rows.
pub fn rows(runs: &[Measured]) -> Table {
    let mut table = Table::new([
        "peer",
        "mbps",
        "hosts",
        "flows",
        "run",
        "goodput_mbps",
        "goodput_ratio",
        "fairness",
        "retransmits",
        "dropped",
        "queue_p5_packets",
        "queue_median_packets",
        "queue_p95_packets",
        "queue_samples",
        "round_trip_median_ms",
        "round_trip_p99_ms",
        "beyond_queue_ms",
        "late_share",
        "worst_delay_ms",
        "processors_busy",
        "processors_core",
        "processors_endpoints",
        "processors_stolen",
        "packets",
        "endpoint_ns_per_packet",
        "other_ns_per_packet",
        "disturbed",
        "repetitions",
        "error",
        "differs",
    ]);
    for run in runs {
        let Measured { peer, mbps, hosts, flows, run: number, is_disturbed, repetitions, outcome } = run;
        let disturbances = [is_disturbed.to_string(), repetitions.to_string()];
        let mut cells = vec![peer.name().to_owned()];
        cells.extend([*mbps, *hosts, *flows].map(|count| count.to_string()));
        cells.push(number.to_string());
        let optional = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.6}"));
        match outcome {
            Ok(figures) => {
                let Figures { queue, round_trip_ms, processors, .. } = figures;
                cells.push(format!("{:.3}", figures.goodput_mbps));
                cells.push(format!("{:.5}", figures.goodput_ratio));
                cells.push(format!("{:.4}", figures.fairness));
                cells.extend([figures.retransmits, figures.dropped].map(|count| count.to_string()));
                cells.extend(queue.map(|packets| format!("{packets:.1}")));
                cells.push(figures.samples.to_string());
                cells.extend(round_trip_ms.map(|time| format!("{time:.3}")));
                cells.push(format!("{:.3}", figures.beyond_queue_ms));
                cells.extend([figures.late_share, figures.worst_ms].map(optional));
                let ProcessorUse { busy, core, endpoints, stolen } = *processors;
                let uses = [busy, core, endpoints, stolen];
                cells.extend(uses.map(|processors| format!("{processors:.3}")));
                cells.push(figures.packets.map_or_else(String::new, |(packets, _)| packets.to_string()));
                let cost = |part: usize| {
                    figures.packets.map_or_else(String::new, |(_, each)| format!("{:.0}", each[part]))
                };
                cells.extend([cost(0), cost(1)]);
                cells.extend(disturbances);
                cells.push(String::new());
            }
            Err(error) => {
                cells.extend((0..21).map(|_| String::new()));
                cells.extend(disturbances);
                cells.push(error.clone());
            }
        }
        cells.push(peer.differs().to_owned());
        table.push(cells);
    }
    table
}

/// Returns the table of a peer for people.
pub fn table(runs: &[&Measured]) -> Table {
    let mut table = Table::new([
        "hosts, flows",
        "Mbit/s",
        "goodput, Mbit/s",
        "of the link's",
        "queue: p5, median, p95",
        "round trip: median, p99, ms",
        "beyond the queue, ms",
        "late",
        "worst delay, ms",
        "retransmits",
        "processors: all, network, endpoints",
        "kept up",
    ]);
    for run in runs {
        let case = || format!("{}, {}", run.hosts, run.flows);
        match &run.outcome {
            Err(error) => {
                let mut cells = vec![case(), run.mbps.to_string()];
                cells.extend((0..9).map(|_| "-".to_owned()));
                cells.push(format!("failed: {error}"));
                table.push(cells);
            }
            Ok(figures) => {
                let [p5, median, p95] = figures.queue;
                let (unknown, used) = (|| "unknown".to_owned(), figures.processors);
                row!(
                    table,
                    case(),
                    run.mbps,
                    format!("{:.1}", figures.goodput_mbps),
                    format!("{:.3}", figures.goodput_ratio),
                    format!("{p5:.0}, {median:.0}, {p95:.0}"),
                    format!("{:.2}, {:.2}", figures.round_trip_ms[0], figures.round_trip_ms[1]),
                    format!("{:.2}", figures.beyond_queue_ms),
                    figures.late_share.map_or_else(unknown, |share| format!("{:.3} %", 100.0 * share)),
                    figures.worst_ms.map_or_else(unknown, |worst| format!("{worst:.2}")),
                    figures.retransmits,
                    format!("{:.2}, {:.2}, {:.2}", used.busy, used.core, used.endpoints),
                    verdict(run)
                );
            }
        }
    }
    table
}

fn verdict(run: &Measured) -> &'static str {
    match (run.kept_up(), run.has_rate()) {
        _ if run.is_disturbed => "disturbed",
        (Some(true) | None, true) => "yes",
        (Some(true) | None, false) => "rate wrong",
        (Some(false), true) => "late",
        (Some(false), false) => "late, rate wrong",
    }
}

#[cfg(test)]
mod tests {
    use super::super::network::{Lateness, QueueSample};
    use super::super::traffic::Ping;
    use super::*;

    fn traffic(goodput: f64) -> Traffic {
        Traffic {
            goodputs: vec![goodput / 2.0; 2],
            retransmits: 3,
            pings: [12.5, 12.4, 12.6].map(|round_trip_ms| Ping { sent_ns: 120, round_trip_ms }).to_vec(),
            window: 100..200,
            processors: ProcessorUse::default(),
            processor_seconds: ProcessorUse { busy: 5.0, core: 2.0, endpoints: 1.0, stolen: 0.0 },
        }
    }

    #[test]
    fn the_payload_of_a_full_link_has_the_ratio_one() {
        let sample = |(time_ns, packets)| QueueSample { time_ns, packets };
        let record = Record {
            queue: [(50, 9.0), (100, 1_000.0), (150, 1_000.0), (250, 9.0)].map(sample).to_vec(),
            lateness: Lateness::Slots { late_share: 0.002, worst_ns: 3_000_000 },
            packets: Some(1_000_000),
            ..Record::default()
        };
        let figures = Figures::new(1_000, &traffic(1e9 * 1_448.0 / 1_538.0), &record);
        assert!((figures.goodput_ratio - 1.0).abs() < 1e-9 && (figures.fairness - 1.0).abs() < 1e-9);
        assert_eq!((figures.queue, figures.samples), ([1_000.0; 3], 2));
        assert_eq!(figures.packets, Some((1_000_000, [1_000.0, 2_000.0])));
        // 1,000 packets take 12.304 ms.
        assert!((figures.beyond_queue_ms - 0.196).abs() < 1e-9, "{figures:?}");
        let setting = Setting {
            hosts: 3,
            flows: 2,
            mbps: 1_000,
            queue: 1_024,
            folder: std::path::Path::new(""),
            thalweg: std::path::Path::new(""),
            build: std::path::Path::new(""),
        };
        let full = || Ok((traffic(1e9 * 1_448.0 / 1_538.0), record.clone()));
        let run = Measured::new(Peer::Thalweg, &setting, 0, full());
        assert_eq!((run.kept_up(), run.has_rate(), verdict(&run)), (Some(false), true, "late"));
        let slow = Measured::new(Peer::Mininet, &setting, 0, Ok((traffic(8e8), Record::default())));
        assert_eq!((slow.kept_up(), verdict(&slow)), (None, "rate wrong"));
        let failed = Measured::new(Peer::Ns3Csma, &setting, 0, Err(anyhow::anyhow!("ended")));
        assert_eq!(failed.kept_up(), Some(false));
        let all = [run, slow, failed];
        assert!(
            rows(&all).csv().lines().count() == 4
                && table(&all.each_ref()).markdown().contains("failed: ended")
        );
    }
}
