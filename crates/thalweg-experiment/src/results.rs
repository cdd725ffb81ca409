//! The measurements of one run: rows for files, tables and plots.

pub mod series_rows;

use serde::Serialize;

/// A completed flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowRow {
    /// The flow number, in the order of starts.
    pub flow: u32,
    /// The sending endpoint.
    pub src: String,
    /// The receiving endpoint.
    pub dst: String,
    /// Bytes of payload.
    pub bytes: u64,
    /// Differentiated services code point.
    pub dscp: u8,
    /// The start, in nanoseconds of emulated time.
    pub start_ns: u64,
    /// Flow completion time: from the start until the receiver has all bytes, in nanoseconds.
    pub fct_ns: u64,
    /// Completion time divided by that of the same flow in an idle network; about 1 or more.
    pub slowdown: f64,
    /// Segments retransmitted.
    pub retransmissions: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Segments that arrived marked (ECN).
    pub marks: u32,
}

/// The queue of one output port at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueRow {
    /// The time, in nanoseconds of emulated time.
    pub time_ns: u64,
    /// The router.
    pub router: String,
    /// The port, from 0.
    pub port: u16,
    /// The node that the port leads to.
    pub to: String,
    /// Packets in the queue.
    pub packets: u32,
    /// Bytes in the queue, framing included.
    pub bytes: u64,
}

/// One direction of one link in one interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkRow {
    /// The start of the interval, in nanoseconds of emulated time.
    pub time_ns: u64,
    /// The length of the interval.
    pub interval_ns: u64,
    /// The sending node.
    pub from: String,
    /// The receiving node.
    pub to: String,
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, framing included.
    pub bytes: u64,
    /// Bytes sent divided by the capacity in the interval, 0 to 1.
    pub utilisation: f64,
    /// Packets marked at the sending port.
    pub marked_packets: u64,
    /// Packets dropped at the sending port.
    pub dropped_packets: u64,
}

/// Packets dropped in one place for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DropRow {
    /// The place: `tor0 > h3` is the port of `tor0` that leads to `h3`; a single name is a router, or an endpoint's
    /// network interface.
    pub place: String,
    /// The reason, see [`thalweg_emulator::Reason::name`].
    pub reason: &'static str,
    /// Packets since the start.
    pub packets: u64,
}

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The name of the experiment.
    pub experiment: String,
    /// The scheme.
    pub scheme: String,
    /// The transport.
    pub transport: String,
    /// The shape of the topology, or its file.
    pub topology: String,
    /// The random seed.
    pub seed: u64,
    /// Emulated time that was measured, in nanoseconds.
    pub duration_ns: u64,
    /// Emulated time after that, in which flows could complete, in nanoseconds.
    pub drain_ns: u64,
    /// Settings that are valid and probably not meant.
    pub warnings: Vec<String>,
    /// The part of the duration before the measurement, in nanoseconds.
    pub warm_up_ns: u64,
    /// Slots emulated.
    pub slots: u64,
    /// Real time of the run in seconds: the only field that the seed does not determine.
    pub wall_seconds: f64,
    /// Whether the run was stopped early.
    pub interrupted: bool,
    /// Completed flows in order of completion, including those of the warm-up.
    pub flows: Vec<FlowRow>,
    /// Queue samples, by time, router and port.
    pub queues: Vec<QueueRow>,
    /// Link intervals, by time; within an interval endpoints' interfaces first, then by router and port.
    pub links: Vec<LinkRow>,
    /// Drops since the start, by place and reason.
    pub drops: Vec<DropRow>,
    /// The summary.
    pub summary: Summary,
}

/// The summary of a run, after its warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Packets since the start: sent = delivered + dropped + in flight.
    pub packets: PacketCounts,
    /// Bits per second delivered to endpoints, framing included.
    pub throughput_bps: f64,
    /// Bits per second delivered to applications; zero for packets without transport.
    pub goodput_bps: f64,
    /// Flows since the start.
    pub flows: FlowCounts,
    /// Completion times by size class, of flows that started after the warm-up. The last class has all flows.
    pub sizes: Vec<SizeClassRow>,
    /// Unbounded flows; `None` if there are none.
    pub unbounded: Option<UnboundedFlows>,
    /// Link directions by utilisation, highest first.
    pub busiest_links: Vec<LinkUse>,
    /// Ports by mean queue length, longest first.
    pub longest_queues: Vec<QueueUse>,
    /// Monitor ports, in the order of the experiment.
    pub mirrors: Vec<MirrorUse>,
    /// Time series that were written.
    pub series: Vec<SeriesUse>,
}

/// Packet counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PacketCounts {
    /// Sent by endpoints: handed to their network interfaces.
    pub sent: u64,
    /// Delivered to endpoints.
    pub delivered: u64,
    /// Dropped anywhere.
    pub dropped: u64,
    /// In the network at the end.
    pub in_flight: u64,
    /// ECN marks. A packet that is marked twice counts twice.
    pub marked: u64,
}

/// Flow counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlowCounts {
    /// Started.
    pub started: u64,
    /// Completed: the sender has the last acknowledgement.
    pub completed: u64,
    /// Not completed when the drain time ended, without unbounded flows.
    pub unfinished: u64,
    /// Unbounded flows.
    pub unbounded: u64,
    /// Refused: too many concurrent flows.
    pub refused: u64,
    /// Completed, but beyond the limit of recorded flows: missing from rows and completion times.
    pub not_recorded: u64,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Segments that arrived although their bytes had arrived before: needless retransmissions.
    pub spurious_retransmissions: u64,
    /// Expiries of retransmission timers.
    pub timeouts: u64,
}

/// Completion times of the flows of one size class.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SizeClassRow {
    /// Name of the class: `small`, `medium`, `large`, `all`.
    pub class: &'static str,
    /// Flows completed.
    pub completed: u64,
    /// Flows that had not completed when the drain time was over. Their completion times would have been the longest: mean
    /// and percentiles are too small by an unknown amount if there are any.
    pub unfinished: u64,
    /// Completion time in nanoseconds.
    pub fct_ns: Spread,
    /// Completion time divided by that of the same flow in an idle network.
    pub slowdown: Spread,
}

/// Distribution of a set of numbers; all zero if the set is empty. A percentile is the smallest number that this share of the
/// set is at or below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Median: half of the numbers are at or below it.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Unbounded flows after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UnboundedFlows {
    /// The number of flows.
    pub flows: u64,
    /// The goodput of each in bits per second.
    pub goodput_bps: Spread,
    /// Jain's fairness index (Jain, Chiu, Hawe 1984): 1 if all are equal, 1/n if one flow has everything.
    pub fairness: f64,
}

/// One direction of one link, after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkUse {
    /// The sending node.
    pub from: String,
    /// The receiving node.
    pub to: String,
    /// Packets sent.
    pub packets: u64,
    /// Bits per second, framing included.
    pub rate_bps: f64,
    /// The rate divided by the link's capacity.
    pub utilisation: f64,
    /// Packets marked at the sending port.
    pub marked_packets: u64,
    /// Packets dropped at the sending port.
    pub dropped_packets: u64,
}

/// The queue of one port over all samples after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueUse {
    /// The router.
    pub router: String,
    /// The port, from 0.
    pub port: u16,
    /// The node that the port leads to.
    pub to: String,
    /// Packets in the queue.
    pub packets: Spread,
    /// Bytes in the queue, framing included.
    pub bytes: Spread,
}

/// A monitor port, since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MirrorUse {
    /// The router.
    pub router: String,
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, framing included.
    pub bytes: u64,
    /// Packets dropped because the buffer was full.
    pub dropped_packets: u64,
}

/// A time series in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SeriesUse {
    /// The name of the file without its extension.
    pub table: &'static str,
    /// Rows in the file.
    pub rows: u64,
    /// Rows that were not kept.
    pub lost_rows: u64,
}

/// The results of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepResults {
    /// The name of the experiment.
    pub experiment: String,
    /// The swept keys as typed, slowest first.
    pub keys: Vec<String>,
    /// One run per combination of values, in order.
    pub runs: Vec<SweepRun>,
}

/// A run of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRun {
    /// The values as text, in the order of [`SweepResults::keys`].
    pub values: Vec<String>,
    /// The directory of the run's files, below that of the sweep.
    pub folder: String,
    /// The results without rows, which are in the files.
    pub results: Results,
}

impl Spread {
    /// The distribution of `numbers`. Sorts them.
    pub fn of(numbers: &mut [f64]) -> Spread {
        numbers.sort_unstable_by(f64::total_cmp);
        let Some(&max) = numbers.last() else { return Spread::default() };
        let at = |share: f64| numbers[((share * numbers.len() as f64).ceil() as usize).max(1) - 1];
        Spread {
            mean: numbers.iter().sum::<f64>() / numbers.len() as f64,
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            max,
        }
    }
}

/// The rate in bits per second; zero for zero seconds.
pub(crate) fn per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

/// The size classes with the largest size of each, as in the figures of pFabric (section 5.3) and Flexplane (section
/// 5.2).
pub const SIZE_CLASSES: [(&str, u64); 3] = [("small", 100_000), ("medium", 9_999_999), ("large", u64::MAX)];

/// The index in [`SIZE_CLASSES`] of a flow size.
pub fn size_class(bytes: u64) -> usize {
    SIZE_CLASSES.iter().position(|&(_, most)| bytes <= most).expect("the last has no bound")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_follow_their_definition() {
        let mut numbers: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let spread = Spread::of(&mut numbers);
        assert_eq!(spread, Spread { mean: 50.5, p50: 50.0, p95: 95.0, p99: 99.0, max: 100.0 });
        let of_one = Spread { mean: 7.0, p50: 7.0, p95: 7.0, p99: 7.0, max: 7.0 };
        assert_eq!(Spread::of(&mut [7.0]), of_one);
        assert_eq!(Spread::of(&mut []), Spread::default());
    }

    #[test]
    fn size_classes_are_those_of_the_figures() {
        let classes = [1, 100_000, 100_001, 9_999_999, 10_000_000, u64::MAX].map(size_class);
        assert_eq!(classes, [0, 0, 1, 1, 2, 2]);
    }
}
