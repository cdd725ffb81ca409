//! What one run of an experiment has measured: rows as they go into files, tables and plots.

use serde::Serialize;

/// A flow that has been completed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowRow {
    /// Its number, in the order in which flows began.
    pub flow: u32,
    /// Name of the endpoint that sent it.
    pub src: String,
    /// Name of the endpoint that received it.
    pub dst: String,
    /// Bytes of the application.
    pub bytes: u64,
    /// Differentiated services code point.
    pub dscp: u8,
    /// When it began, in nanoseconds of emulated time.
    pub start_ns: u64,
    /// From its beginning until its receiver had all of it, in nanoseconds.
    pub fct_ns: u64,
    /// Completion time over that of the same flow alone in the same network; at least about 1.
    pub slowdown: f64,
    /// Segments sent again.
    pub retransmissions: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Segments that arrived marked (ECN).
    pub marks: u32,
}

/// What waited at one output port at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueRow {
    /// When, in nanoseconds of emulated time.
    pub time_ns: u64,
    /// Name of the router.
    pub router: String,
    /// The port, counted from 0.
    pub port: u16,
    /// Name of what the port leads to.
    pub to: String,
    /// Packets that waited.
    pub packets: u32,
    /// Bytes that waited, framing included.
    pub bytes: u64,
}

/// One direction of one link in one interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkRow {
    /// When the interval began, in nanoseconds of emulated time.
    pub time_ns: u64,
    /// Its length.
    pub interval_ns: u64,
    /// Name of the sender.
    pub from: String,
    /// Name of the receiver.
    pub to: String,
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, framing included.
    pub bytes: u64,
    /// Bytes sent over what the link could have carried, 0 to 1.
    pub utilisation: f64,
    /// Packets marked at the sending port.
    pub marked_packets: u64,
    /// Packets dropped at the sending port.
    pub dropped_packets: u64,
}

/// Packets dropped at one place for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DropRow {
    /// Where: `tor0 > h3` is the port of `tor0` that leads to `h3`; a name alone is a router, or an endpoint's
    /// network interface.
    pub place: String,
    /// Why, as [`thalweg_emulator::Reason::name`] has it.
    pub reason: &'static str,
    /// How many since the beginning.
    pub packets: u64,
}

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the scheme.
    pub scheme: String,
    /// Name of the transport.
    pub transport: String,
    /// Name of the topology's shape, or of the file that it is from.
    pub topology: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Time emulated and measured, in nanoseconds.
    pub duration_ns: u64,
    /// Time emulated after that, until the flows under way had completed, in nanoseconds.
    pub drain_ns: u64,
    /// Settings that are valid and probably not meant.
    pub warnings: Vec<String>,
    /// How much of it came before what the summary is about.
    pub warm_up_ns: u64,
    /// Slots emulated.
    pub slots: u64,
    /// How long it took, in seconds of the clock on the wall: the only thing here that no seed gives.
    pub wall_seconds: f64,
    /// Whether somebody ended it before its time.
    pub interrupted: bool,
    /// Flows that were completed, in order of their end, those of the warm-up among them.
    pub flows: Vec<FlowRow>,
    /// Queues sampled, by time; at the same time by router and port.
    pub queues: Vec<QueueRow>,
    /// Links in intervals, by time; in the same interval the endpoints' interfaces first, then by router and port.
    pub links: Vec<LinkRow>,
    /// Drops since the beginning, by place and reason.
    pub drops: Vec<DropRow>,
    /// What the table at the end shows.
    pub summary: Summary,
}

/// What a run comes to, after its warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Packets since the beginning: injected = delivered + dropped + in flight.
    pub packets: PacketCounts,
    /// Bits a second that reached endpoints, framing included.
    pub throughput_bps: f64,
    /// Bits a second that applications got; zero of packets without transport.
    pub goodput_bps: f64,
    /// Flows since the beginning.
    pub flows: FlowCounts,
    /// Completion times by size class, of flows that began after the warm-up; the last is of all flows.
    pub sizes: Vec<SizeClassRow>,
    /// Flows without end, together; `None` if there are none.
    pub unbounded: Option<UnboundedFlows>,
    /// Directed links by bytes sent, the busiest first.
    pub busiest_links: Vec<LinkUse>,
    /// Ports by mean queue, the longest first.
    pub longest_queues: Vec<QueueUse>,
    /// Monitor ports, in the order of the experiment.
    pub mirrors: Vec<MirrorUse>,
}

/// Packets since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PacketCounts {
    /// Handed to network interfaces.
    pub injected: u64,
    /// Arrived.
    pub delivered: u64,
    /// Dropped anywhere.
    pub dropped: u64,
    /// Neither, at the end.
    pub in_flight: u64,
    /// Marked (ECN); a packet that is marked twice counts twice.
    pub marked: u64,
}

/// Flows since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlowCounts {
    /// Began.
    pub started: u64,
    /// Arrived whole, and their senders know it.
    pub completed: u64,
    /// Not completed when the drain time was over, those without end left out.
    pub unfinished: u64,
    /// Without end.
    pub unbounded: u64,
    /// Could not begin: too many were under way.
    pub refused: u64,
    /// Completed, but beyond what is kept: neither rows nor completion times know of them.
    pub not_recorded: u64,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Segments that arrived though their bytes had arrived before: retransmitted needlessly.
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
    /// Completion time over that of the same flow alone.
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

/// Flows without end, after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UnboundedFlows {
    /// How many.
    pub flows: u64,
    /// What they had each, in bits a second.
    pub goodput_bps: Spread,
    /// Jain's index of fairness (Jain, Chiu, Hawe 1984): 1 if all had the same, 1/n if one had all.
    pub fairness: f64,
}

/// One direction of one link, after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkUse {
    /// Name of the sender.
    pub from: String,
    /// Name of the receiver.
    pub to: String,
    /// Packets sent.
    pub packets: u64,
    /// Bits a second sent, framing included.
    pub rate_bps: f64,
    /// The same over the link's rate.
    pub utilisation: f64,
    /// Packets marked at the sending port.
    pub marked_packets: u64,
    /// Packets dropped at the sending port.
    pub dropped_packets: u64,
}

/// The queue of one port over all samples after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueUse {
    /// Name of the router.
    pub router: String,
    /// The port, counted from 0.
    pub port: u16,
    /// Name of what the port leads to.
    pub to: String,
    /// Packets that waited.
    pub packets: Spread,
    /// Bytes that waited, framing included.
    pub bytes: Spread,
}

/// A monitor port, since the beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MirrorUse {
    /// Name of the router.
    pub router: String,
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, framing included.
    pub bytes: u64,
    /// Packets that found no room.
    pub dropped_packets: u64,
}

/// One experiment run again and again with other values of some keys.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepResults {
    /// Name of the experiment.
    pub experiment: String,
    /// Keys that were swept, as they were typed, the one that changes slowest first.
    pub keys: Vec<String>,
    /// A run for each combination of values, in order.
    pub runs: Vec<SweepRun>,
}

/// One combination of values.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRun {
    /// The values, in the order of [`SweepResults::keys`], as text.
    pub values: Vec<String>,
    /// Name of the folder with the files of the run, below that of the sweep.
    pub folder: String,
    /// The run; its rows are left out, they are in the files.
    pub results: Results,
}

impl Spread {
    /// The spread of `numbers`, which are left sorted.
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

/// Names of the size classes, with the most bytes of each: as in the figures of pFabric (section 5.3) and Flexplane
/// (section 5.2).
pub const SIZE_CLASSES: [(&str, u64); 3] = [("small", 100_000), ("medium", 9_999_999), ("large", u64::MAX)];

/// Index into [`SIZE_CLASSES`] of a flow of so many bytes.
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
