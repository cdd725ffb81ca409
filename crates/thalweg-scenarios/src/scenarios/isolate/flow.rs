//! What the records of a run say about the TCP flow: when it exceeds the threshold, what it sends again, and which packets
//! overtake others.
//!
//! The record at the router's ingress has every transmission, before any queue can drop it. The record at the receiver has
//! those that arrived, in their order. Both recognise a transmission by its sequence number and its IPv4 identification.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;
use thalweg_wire::parse::Parser;
use thalweg_wire::source::Frame;
use thalweg_wire::{Bytes, Nanos, Protocol, Timestamp};

use crate::traffic::PORT;

/// Retransmissions belong to a move for this long after it.
pub const MOVE_WINDOW: Nanos = Nanos::from_millis(50);

/// A move begins this long before the first packet is seen in the scavenger queue: at most so long before, that packet
/// entered the router, where transmissions are recorded.
pub const MOVE_LEAD: Nanos = Nanos::from_millis(5);

/// Offsets in a frame: Ethernet, IPv4 without options, and those in a TCP header.
const TCP: usize = 14 + 20;
const ACKNOWLEDGEMENT: usize = TCP + 8;
const OPTIONS: usize = TCP + 20;

/// The option SACK (RFC 2018).
const SACK: u8 = 5;

/// A packet of a TCP connection to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// When the kernel saw it.
    pub time: Timestamp,
    /// The port of the client.
    pub client_port: u16,
    /// Whether it goes to the server.
    pub is_forward: bool,
    /// Its sequence number.
    pub sequence: u32,
    /// Bytes of payload.
    pub payload: u32,
    /// Bytes from the IP header on.
    pub ip_length: u32,
    /// The identification of its IPv4 header.
    pub identification: u16,
    /// Whether it reports a segment that arrived twice (DSACK, RFC 2883).
    pub has_dsack: bool,
}

/// A transmission, in the order in which they entered the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transmission {
    time: Timestamp,
    /// Whether its data was sent before.
    is_repeated: bool,
    /// Whether its data was sent before, and nothing after it.
    is_last_repeated: bool,
    /// Whether it is repeated although an earlier transmission of its first byte arrived.
    is_spurious: bool,
    /// Whether it arrived.
    has_arrived: bool,
    /// Whether it arrived before a transmission that had entered the router earlier.
    has_overtaken: bool,
    /// The time at which the latest of those transmissions entered the router that arrived earlier.
    latest_before: Option<Timestamp>,
}

/// The data connection of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The port of its client.
    pub client_port: u16,
    /// Its first packet with data at the router.
    pub start: Timestamp,
    /// Its last packet with data at the router.
    pub end: Timestamp,
    /// Payload that arrived, each byte counted as often as it arrived.
    pub arrived_bytes: u64,
    /// All packets to the server: time and bytes from the IP header on.
    packets: Vec<(Timestamp, u32)>,
    /// Those with data.
    transmissions: Vec<Transmission>,
    /// Times of acknowledgements with a DSACK.
    dsacks: Vec<Timestamp>,
}

/// Counts of transmissions in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Transmissions {
    /// Packets with data that entered the router.
    pub sent_packets: u64,
    /// Of those, repeated ones.
    pub retransmitted: u64,
    /// Of those, repeated although the data had arrived or was still to arrive.
    pub spurious: u64,
    /// Of those, repetitions of the last segment sent: tail loss probes, which TCP sends if no acknowledgement arrives for a
    /// while (RFC 8985, section 7).
    pub spurious_probes: u64,
    /// Packets that never arrived.
    pub lost: u64,
    /// Packets that overtook another one of the flow.
    pub overtaking: u64,
    /// Acknowledgements that report a segment that arrived twice.
    pub dsacks: u64,
}

/// Returns the packet of a connection to or from the server that a frame contains.
pub fn segment(parser: &Parser, frame: &Frame<'_>) -> Option<Segment> {
    let packet = parser.parse(frame).ok()?;
    let (from, to) = (packet.key.src_port, packet.key.dst_port);
    if packet.key.protocol != Protocol::TCP || (from != PORT && to != PORT) {
        return None;
    }
    let is_forward = to == PORT;
    Some(Segment {
        time: packet.time,
        client_port: if is_forward { from } else { to },
        is_forward,
        sequence: packet.tcp_sequence,
        payload: packet.payload_length,
        ip_length: packet.ip_length,
        identification: packet.identification,
        has_dsack: !is_forward && has_dsack(frame.bytes).unwrap_or(false),
    })
}

/// Whether the first SACK block of a segment lies below its acknowledgement, or within the second block (RFC 2883,
/// section 4). `None` if it has no such option.
fn has_dsack(frame: &[u8]) -> Option<bool> {
    let word = |at: usize| Some(u32::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let end = TCP + usize::from(frame.get(TCP + 12)? >> 4) * 4;
    let mut at = OPTIONS;
    while at < end.min(frame.len()) {
        let length = match frame[at] {
            0 => return None,
            1 => 1,
            _ => usize::from(*frame.get(at + 1)?).max(2),
        };
        if frame[at] == SACK && length >= 10 {
            let (left, right) = (word(at + 2)?, word(at + 6)?);
            let is_acknowledged = !is_after(right, word(ACKNOWLEDGEMENT)?);
            let is_in_second =
                length >= 18 && !is_after(word(at + 10)?, left) && !is_after(right, word(at + 14)?);
            return Some(is_acknowledged || is_in_second);
        }
        at += length;
    }
    None
}

/// Whether a sequence number is after another one (RFC 9293, section 3.4).
fn is_after(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) > 0
}

impl Flow {
    /// Finds the connection that sent most, in the records at the router's ingress and at the receiver; `None` if none
    /// sent data.
    pub fn find(ingress: &[Segment], receiver: &[Segment]) -> Option<Flow> {
        let mut sent: HashMap<u16, u64> = HashMap::new();
        for segment in ingress.iter().filter(|segment| segment.is_forward) {
            *sent.entry(segment.client_port).or_default() += u64::from(segment.payload);
        }
        let (client_port, _) =
            sent.into_iter().filter(|(_, bytes)| *bytes > 0).max_by_key(|(_, bytes)| *bytes)?;
        let of_flow = |segment: &&Segment| segment.client_port == client_port;
        let forward = || ingress.iter().filter(of_flow).filter(|segment| segment.is_forward);
        let data: Vec<Segment> = forward().filter(|segment| segment.payload > 0).copied().collect();
        let arrived: Vec<Segment> =
            receiver.iter().filter(of_flow).filter(|it| it.is_forward && it.payload > 0).copied().collect();
        let dsacks = ingress.iter().filter(of_flow).filter(|segment| segment.has_dsack);
        Some(Flow {
            client_port,
            start: data.first()?.time,
            end: data.last()?.time,
            arrived_bytes: arrived.iter().map(|segment| u64::from(segment.payload)).sum(),
            packets: forward().map(|segment| (segment.time, segment.ip_length)).collect(),
            transmissions: transmissions(&data, &arrived),
            dsacks: dsacks.map(|segment| segment.time).collect(),
        })
    }

    /// Returns the time of the packet by which more than `volume` bytes have entered the router within `window`; `None` if
    /// there is none.
    pub fn crossing(&self, window: Nanos, volume: Bytes) -> Option<Timestamp> {
        let (mut recent, mut sum) = (VecDeque::new(), 0);
        self.packets.iter().find_map(|&(time, length)| {
            recent.push_back((time, u64::from(length)));
            sum += u64::from(length);
            while let Some(&(first, bytes)) = recent.front()
                && time.since(first) >= window
            {
                recent.pop_front();
                sum -= bytes;
            }
            (sum > volume.0).then_some(time)
        })
    }

    /// Counts the transmissions from `from` on and before `until`.
    pub fn count(&self, from: Timestamp, until: Timestamp) -> Transmissions {
        let period = from..until;
        let within = || self.transmissions.iter().filter(|it| period.contains(&it.time));
        let count = |holds: fn(&Transmission) -> bool| within().filter(|it| holds(it)).count() as u64;
        Transmissions {
            sent_packets: count(|_| true),
            retransmitted: count(|it| it.is_repeated),
            spurious: count(|it| it.is_spurious),
            spurious_probes: count(|it| it.is_spurious && it.is_last_repeated),
            lost: count(|it| !it.has_arrived),
            overtaking: count(|it| it.has_overtaken),
            dsacks: self.dsacks.iter().filter(|time| period.contains(time)).count() as u64,
        }
    }

    /// Counts the transmissions that arrived after one that entered the router later, and from `from` on and before `until`: those
    /// that its packets have overtaken.
    pub fn overtaken(&self, from: Timestamp, until: Timestamp) -> u64 {
        let is_overtaken = |it: &&Transmission| {
            it.latest_before.is_some_and(|latest| latest > it.time && (from..until).contains(&latest))
        };
        self.transmissions.iter().filter(is_overtaken).count() as u64
    }

    /// Counts all transmissions.
    pub fn count_all(&self) -> Transmissions {
        self.count(Timestamp(0), Timestamp(u64::MAX))
    }
}

/// Finds out what became of each packet with data.
fn transmissions(data: &[Segment], arrived: &[Segment]) -> Vec<Transmission> {
    let mut all = Vec::with_capacity(data.len());
    let mut places: HashMap<(u32, u16), usize> = HashMap::with_capacity(data.len());
    let mut highest = data.first().map_or(0, |segment| segment.sequence);
    for (place, segment) in data.iter().enumerate() {
        let end = segment.sequence.wrapping_add(segment.payload);
        let is_repeated = is_after(highest, segment.sequence);
        let is_last_repeated = is_repeated && end == highest;
        if is_after(end, highest) {
            highest = end;
        }
        places.insert((segment.sequence, segment.identification), place);
        all.push(Transmission {
            time: segment.time,
            is_repeated,
            is_last_repeated,
            is_spurious: false,
            has_arrived: false,
            has_overtaken: false,
            latest_before: None,
        });
    }
    let order: Vec<usize> = arrived
        .iter()
        .filter_map(|segment| places.get(&(segment.sequence, segment.identification)).copied())
        .collect();
    let mut earliest_later = usize::MAX;
    for &place in order.iter().rev() {
        (all[place].has_arrived, all[place].has_overtaken) = (true, earliest_later < place);
        earliest_later = earliest_later.min(place);
    }
    let mut latest: Option<usize> = None;
    for &place in &order {
        all[place].latest_before = latest.map(|latest| data[latest].time);
        latest = latest.max(Some(place));
    }
    let mut has_arrived: HashMap<u32, bool> = HashMap::with_capacity(data.len());
    for (segment, transmission) in data.iter().zip(&mut all) {
        let earlier = has_arrived.entry(segment.sequence).or_default();
        transmission.is_spurious = transmission.is_repeated && *earlier;
        *earlier |= transmission.has_arrived;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(time: u64, number: u32, identification: u16) -> Segment {
        Segment {
            time: Timestamp(time),
            client_port: 40_000,
            is_forward: true,
            sequence: (u32::MAX - 1_500).wrapping_add(number * 1_000),
            payload: 1_000,
            ip_length: 1_040,
            identification,
            has_dsack: false,
        }
    }

    #[test]
    fn a_retransmission_is_spurious_if_the_first_transmission_arrives() {
        // 1 is lost and sent again; 3 is overtaken by 4 and 5 and sent again for nothing. Sequence numbers wrap.
        let sent = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (1, 6), (3, 7)];
        let ingress: Vec<Segment> =
            (10..).zip(sent).map(|(time, (number, id))| segment(time, number, id)).collect();
        let arrived = [(0, 0), (2, 2), (4, 4), (5, 5), (3, 3), (1, 6), (3, 7)];
        let receiver: Vec<Segment> =
            (100..).zip(arrived).map(|(time, (number, id))| segment(time, number, id)).collect();
        let flow = Flow::find(&ingress, &receiver).unwrap();
        let expected = Transmissions {
            sent_packets: 8,
            retransmitted: 2,
            spurious: 1,
            spurious_probes: 0,
            lost: 1,
            overtaking: 2,
            dsacks: 0,
        };
        assert_eq!(flow.count_all(), expected);
        assert_eq!((flow.start, flow.end, flow.arrived_bytes), (Timestamp(10), Timestamp(17), 7_000));
        assert_eq!(flow.count(Timestamp(16), Timestamp(17)).retransmitted, 1);
        let probe = Flow::find(&ingress[..6], &receiver[..5]).unwrap();
        assert_eq!(probe.count_all().spurious_probes, 0);
        let [again, twice] = [segment(16, 5, 8), segment(17, 4, 9)];
        let probed =
            Flow::find(&[&ingress[..6], &[again, twice]].concat(), &receiver[..5]).unwrap().count_all();
        assert_eq!((probed.spurious, probed.spurious_probes), (2, 1), "5 was the last, 4 was not");
        // 3 entered at 13. Those that entered at 14 and 15 arrived before it.
        let overtaken = |from, until| flow.overtaken(Timestamp(from), Timestamp(until));
        assert_eq!([13, 15, 16].map(|from| overtaken(from, 18)), [1, 1, 0]);
        assert_eq!(overtaken(0, 15), 0);
    }

    #[test]
    fn the_threshold_is_crossed_by_the_packet_that_exceeds_it_within_a_window() {
        let ingress: Vec<Segment> = [10, 20, 30, 31, 32].map(|time| segment(time, time as u32, 0)).to_vec();
        let flow = Flow::find(&ingress, &[]).unwrap();
        let crossing = |window, volume| flow.crossing(Nanos(window), Bytes(volume)).map(|time| time.0);
        assert_eq!(crossing(3, 3 * 1_040 - 1), Some(32));
        assert_eq!(crossing(2, 3 * 1_040 - 1), None, "a window of 2 holds packets at 31 and 32");
        assert_eq!(crossing(11, 2 * 1_040 - 1), Some(20));
        assert_eq!(crossing(10, 2 * 1_040 - 1), Some(31));
        assert_eq!(crossing(100, 5 * 1_040), None, "exactly the volume is not more");
    }

    #[test]
    fn a_dsack_is_below_the_acknowledgement_or_within_the_second_block() {
        let frame = |acknowledgement: u32, blocks: &[(u32, u32)]| {
            let mut frame = vec![0; OPTIONS];
            frame[ACKNOWLEDGEMENT..ACKNOWLEDGEMENT + 4].copy_from_slice(&acknowledgement.to_be_bytes());
            frame.extend([1, 1, SACK, 2 + 8 * blocks.len() as u8]);
            frame.extend(blocks.iter().flat_map(|&(left, right)| [left, right]).flat_map(u32::to_be_bytes));
            frame[TCP + 12] = ((frame.len() - TCP) as u8 / 4) << 4;
            has_dsack(&frame)
        };
        assert_eq!(frame(500, &[(100, 200)]), Some(true));
        assert_eq!(frame(100, &[(200, 300)]), Some(false));
        assert_eq!(frame(100, &[(250, 260), (200, 300)]), Some(true));
        assert_eq!(frame(100, &[(200, 300), (400, 500)]), Some(false));
        assert_eq!(frame(5, &[(u32::MAX - 9, u32::MAX)]), Some(true), "sequence numbers wrap");
        assert_eq!(has_dsack(&[0; OPTIONS]), None);
    }
}
