//! What is counted.

/// Datagrams of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounters {
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of them, without IP and UDP headers.
    pub sent_bytes: u64,
    /// Datagrams accepted.
    pub received: u64,
    /// Refused: invalid or damaged.
    pub malformed: u64,
    /// Refused: of the wrong direction or for another endpoint.
    pub misdirected: u64,
    /// Refused: of an earlier session, or of an arbiter that is not in use.
    pub stale: u64,
    /// Refused: arrived before, or more than 32 datagrams late.
    pub duplicate: u64,
    /// Datagrams that were not acknowledged in time.
    pub timed_out: u64,
    /// Times that this side took a later session because its peer knew a later one: its clock was set back.
    pub sessions_renewed: u64,
}

/// What an endpoint counts. Every packet submitted is refused, or ends in one of `sent`, `dropped` and `expired`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounters {
    /// Datagrams.
    pub datagrams: DatagramCounters,
    /// Packets accepted.
    pub submitted: u64,
    /// Packets refused: as many are held as allowed.
    pub refused_packets: u64,
    /// Packets refused: as many flows have held packets as allowed.
    pub refused_flows: u64,
    /// Packets refused: the flow has an undecided packet 4,096 indices earlier.
    pub refused_window: u64,
    /// Decisions to send.
    pub sent: u64,
    /// Decisions to drop, by the arbiter.
    pub dropped: u64,
    /// Packets dropped because no answer came before the deadline.
    pub expired: u64,
    /// Answers for packets that are not held: repeated, or after the deadline.
    pub unmatched_answers: u64,
    /// Requests sent again, because a datagram was lost or the arbiter is another one.
    pub requests_repeated: u64,
    /// Idle flows that gave way to new ones.
    pub flows_evicted: u64,
    /// Sessions of arbiters that replaced an earlier one at the same address.
    pub arbiter_restarts: u64,
    /// Switches to the other arbiter.
    pub switches: u64,
}

/// What an arbiter counts in its session with one endpoint. Every request accepted ends in one of `acknowledged`,
/// `abandoned` and `forgotten`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArbiterCounters {
    /// Datagrams.
    pub datagrams: DatagramCounters,
    /// Datagrams refused because there was no room for their requests.
    pub no_room: u64,
    /// Requests accepted, for emulation.
    pub requests: u64,
    /// Requests received before.
    pub repeated_requests: u64,
    /// Answers given by the emulation.
    pub answers: u64,
    /// Answers given by the emulation to requests of an earlier session of the endpoint.
    pub obsolete_answers: u64,
    /// Answers that the endpoint has acknowledged.
    pub acknowledged: u64,
    /// Answers sent again, because a datagram was lost.
    pub answers_repeated: u64,
    /// Answers that were not sent again because their lifetime had passed.
    pub abandoned: u64,
    /// Requests forgotten because the endpoint has restarted.
    pub forgotten: u64,
    /// Idle flows that gave way to new ones.
    pub flows_evicted: u64,
    /// Sessions of the endpoint that replaced an earlier one.
    pub endpoint_restarts: u64,
}
