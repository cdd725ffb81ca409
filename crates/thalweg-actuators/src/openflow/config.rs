//! What can be set.

use thalweg_wire::Nanos;

/// How switches are spoken to. Any values make sense; a bound of zero means that there can be none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most bytes of a packet that no flow entry takes which a switch sends along (`miss_send_len`). 128: the headers.
    pub miss_send_length: u16,
    /// Flows that are read back when a switch connects. Those of every cookie.
    pub read_back: ReadBack,
    /// Longest time from a TCP connection to [`Up`](super::Event::Up), and to connect in the first place. 5 s.
    pub handshake_timeout: Nanos,
    /// Silence after which a switch is asked whether it is still there. 2 s.
    pub echo_interval: Nanos,
    /// Silence after that until the connection is given up. 4 s.
    pub echo_timeout: Nanos,
    /// Longest that a write may wait for a switch that does not read. 1 s.
    pub write_timeout: Nanos,
    /// How soon a switch that cannot be reached is tried again.
    pub back_off: BackOff,
    /// Most connections at once; another one is closed at once, and counted. 1,024.
    pub max_connections: usize,
    /// Most batches and questions without an answer, for each switch; another one is refused. 4,096.
    pub max_unanswered: usize,
    /// Most messages of the answer to one question: of 64 KiB each, so with 100 flows in 10 KB or more. 1,024.
    pub max_answer_parts: usize,
    /// Most events that wait to be taken. 4,096.
    pub max_events: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            miss_send_length: 128,
            read_back: ReadBack::default(),
            handshake_timeout: Nanos::from_secs(5),
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

/// Flows whose cookie agrees with this one in the bits of the mask; with a mask of zero, all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadBack {
    /// The cookie.
    pub cookie: u64,
    /// Bits of it that count.
    pub mask: u64,
}

/// Times between attempts to connect, each twice the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// The first. 100 ms.
    pub first: Nanos,
    /// The longest. 5 s.
    pub longest: Nanos,
}

impl Default for BackOff {
    fn default() -> BackOff {
        BackOff { first: Nanos::from_millis(100), longest: Nanos::from_secs(5) }
    }
}
