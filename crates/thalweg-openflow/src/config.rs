//! Settings of OpenFlow connections.

use thalweg_wire::Nanos;

/// Settings of OpenFlow connections. All values are valid; a limit of zero allows none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum bytes of an unmatched packet that a switch sends to the controller (`miss_send_len`). Default 128: the
    /// headers.
    pub miss_send_length: u16,
    /// Whether the controller only reads: it leaves the configuration of the switch alone, reads back no flows and groups, and
    /// asks the switch to send no packets and removed flows. Without a role request its role is that of an equal, so the
    /// master keeps its role. Default false.
    pub reads_only: bool,
    /// Flows to read back when a switch connects. Default: all cookies.
    pub read_back: ReadBack,
    /// Maximum time for a TCP connection to be established, and from there to [`Up`](crate::Event::Up). Default 5 s.
    pub handshake_timeout: Nanos,
    /// Interval at which the entries of a connected switch are compared with those that were sent. Default 500 ms.
    pub audit_interval: Nanos,
    /// Priority of this daemon among those that control the same switches: the highest becomes master first. Default 255.
    pub priority: u8,
    /// Distinguishes daemons of the same priority: a random number. Default 0.
    pub instance: u16,
    /// Time without a heartbeat of the master after which a standby takes over. Default 2 s.
    pub master_timeout: Nanos,
    /// Silence after which an echo request is sent. Default 2 s.
    pub echo_interval: Nanos,
    /// Further silence after which the connection is closed. Default 4 s.
    pub echo_timeout: Nanos,
    /// Maximum time that a write waits for a switch that does not read. Default 1 s.
    pub write_timeout: Nanos,
    /// Delays between attempts to connect to a switch.
    pub back_off: BackOff,
    /// Maximum number of connections; further ones are closed and counted. Default 1,024.
    pub max_connections: usize,
    /// Maximum number of unanswered batches and requests per switch; further ones are refused. Default 4,096.
    pub max_unanswered: usize,
    /// Maximum number of messages in one answer. Each has up to 64 KiB: 100 flows take 10 KB or more. Default 1,024.
    pub max_answer_parts: usize,
    /// Maximum number of queued events. Default 4,096.
    pub max_events: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            miss_send_length: 128,
            reads_only: false,
            read_back: ReadBack::default(),
            handshake_timeout: Nanos::from_secs(5),
            audit_interval: Nanos::from_millis(500),
            priority: u8::MAX,
            instance: 0,
            master_timeout: Nanos::from_secs(2),
            echo_interval: Nanos::from_secs(2),
            echo_timeout: Nanos::from_secs(4),
            write_timeout: Nanos::from_secs(1),
            back_off: BackOff::default(),
            max_connections: 1_024,
            max_unanswered: 4_096,
            max_answer_parts: 1_024,
            max_events: 4_096,
        }
    }
}

/// Selects flows whose cookie equals this one in the bits of the mask; a mask of zero selects all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadBack {
    /// The cookie.
    pub cookie: u64,
    /// The bits to compare.
    pub mask: u64,
}

/// Delays between connection attempts, each twice the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// The first delay. Default 100 ms.
    pub first: Nanos,
    /// The longest delay. Default 5 s.
    pub longest: Nanos,
}

impl Default for BackOff {
    fn default() -> BackOff {
        BackOff { first: Nanos::from_millis(100), longest: Nanos::from_secs(5) }
    }
}
