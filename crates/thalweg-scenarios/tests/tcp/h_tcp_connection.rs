//! A connection that uses the programs of H-TCP.

use thalweg_lab::Algorithm;
use thalweg_wire::Nanos;

use crate::machine::{Called, Kernel, Machine, Memory, SAMPLE, SOCKET};

/// Offsets in `struct tcp_sock` of the object file: the private memory of the congestion control comes first.
const SND_UNA: u64 = SOCKET + 104;
const SND_NXT: u64 = SOCKET + 108;
const SND_CWND: u64 = SOCKET + 112;
const SND_SSTHRESH: u64 = SOCKET + 116;
const PRIOR_CWND: u64 = SOCKET + 120;
const MAX_PACKETS_OUT: u64 = SOCKET + 124;

/// BPF_FUNC_ktime_get_ns.
const KTIME: i32 = 5;

/// A connection that uses the programs.
pub(crate) struct Connection {
    machine: Machine<Growth>,
}

/// What the kernel knows.
#[derive(Clone)]
struct Growth {
    now: u64,
    /// Acknowledged segments that have not made the window grow yet.
    credit: u32,
}

impl Connection {
    /// Starts a connection at a time.
    pub(crate) fn start(now: u64) -> Connection {
        let mut it = Connection { machine: Machine::load(Algorithm::HTcp, Growth { now, credit: 0 }) };
        it.set_window(10, u32::MAX >> 1);
        it.machine.call("init", &[SOCKET]);
        it
    }

    pub(crate) fn window(&self) -> u32 {
        self.machine.memory.read(SND_CWND, 4) as u32
    }

    pub(crate) fn set_window(&mut self, window: u32, threshold: u32) {
        self.machine.memory.write(SND_CWND, 4, u64::from(window));
        self.machine.memory.write(SND_SSTHRESH, 4, u64::from(threshold));
    }

    pub(crate) fn set_prior_window(&mut self, window: u32) {
        self.machine.memory.write(PRIOR_CWND, 4, u64::from(window));
    }

    /// Sets the first segments not acknowledged and not sent, and the most in flight in the last round.
    pub(crate) fn set_sent(&mut self, una: u32, next: u32, flight: u32) {
        for (place, value) in [(SND_UNA, una), (SND_NXT, next), (MAX_PACKETS_OUT, flight)] {
            self.machine.memory.write(place, 4, u64::from(value));
        }
    }

    /// An acknowledgement arrives.
    pub(crate) fn acknowledge(&mut self, now: u64, segments: u32, rtt: Nanos) {
        self.machine.kernel.now = now;
        self.machine.memory.write(SAMPLE, 4, u64::from(segments));
        self.machine.memory.write(SAMPLE + 4, 4, (rtt.0 / 1_000).max(1));
        self.machine.call("pkts_acked", &[SOCKET, SAMPLE]);
        self.machine.call("cong_avoid", &[SOCKET, 0, u64::from(segments)]);
    }

    /// A segment is lost. Returns the new threshold.
    pub(crate) fn lose(&mut self, now: u64) -> u32 {
        self.machine.kernel = Growth { now, credit: 0 };
        self.machine.call("ssthresh", &[SOCKET]) as u32
    }

    /// The loss was a false alarm. Returns the new window.
    pub(crate) fn undo(&mut self) -> u32 {
        self.machine.call("undo_cwnd", &[SOCKET]) as u32
    }

    /// Returns the increase in segments per round trip, measured with a large window at a time. The last congestion event
    /// was at `since`, which must be the program's.
    pub(crate) fn alpha_at(&self, since: u64, now: u64) -> f64 {
        assert!(since <= now);
        let window = 1_000_000;
        let mut probe = Connection { machine: self.machine.clone() };
        probe.machine.kernel = Growth { now, credit: 0 };
        probe.set_window(window, 2);
        probe.machine.memory.write(MAX_PACKETS_OUT, 4, u64::from(window));
        probe.machine.call("cong_avoid", &[SOCKET, 0, u64::from(window)]);
        f64::from(probe.window() - window)
    }
}

impl Kernel for Growth {
    fn call(&mut self, memory: &mut Memory, called: Called<'_>, arguments: [u64; 3]) -> u64 {
        let window = memory.read(SND_CWND, 4) as u32;
        match called {
            Called::Helper(KTIME) => self.now,
            Called::Function("tcp_slow_start") => {
                let acked = arguments[1] as u32;
                let grown = (window + acked).min(memory.read(SND_SSTHRESH, 4) as u32);
                memory.write(SND_CWND, 4, u64::from(grown));
                u64::from(acked - (grown - window))
            }
            Called::Function("tcp_cong_avoid_ai") => {
                let (per_segment, acked) = (arguments[1] as u32, arguments[2] as u32);
                self.credit += acked;
                let growth = self.credit / per_segment;
                self.credit -= growth * per_segment;
                memory.write(SND_CWND, 4, u64::from(window + growth));
                0
            }
            Called::Function(name) => panic!("kernel function {name}"),
            Called::Helper(number) => panic!("helper {number}"),
        }
    }
}
