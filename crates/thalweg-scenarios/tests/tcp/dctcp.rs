//! DCTCP of the lab, an eBPF program: the sender against that of the emulator, the receiver against RFC 8257, section 3.2.

use thalweg_emulator::hosts::tcp::congestion::{AckSample, CongestionControl as _, Dctcp, Signal, Window};
use thalweg_lab::Algorithm;
use thalweg_wire::{Nanos, Timestamp};

use crate::machine::{Called, Kernel, Machine, Memory, SOCKET};

/// Offsets in `struct tcp_sock` of the object file: the flags of acknowledgements come first, then the private memory.
const ACK_PENDING: u64 = SOCKET;
const ALPHA: u64 = SOCKET + 8;
const RCV_NXT: u64 = SOCKET + 112;
const SND_UNA: u64 = SOCKET + 116;
const SND_NXT: u64 = SOCKET + 120;
const SND_CWND: u64 = SOCKET + 124;
const SND_SSTHRESH: u64 = SOCKET + 128;
const PRIOR_CWND: u64 = SOCKET + 132;
const DELIVERED: u64 = SOCKET + 136;
const DELIVERED_CE: u64 = SOCKET + 140;
const ECN_FLAGS: u64 = SOCKET + 144;

/// BPF_FUNC_tcp_send_ack.
const SEND_ACK: i32 = 116;

/// Values of the kernel: `TCP_ECN_DEMAND_CWR`, `ICSK_ACK_TIMER`, `ICSK_ACK_NOW`, `CA_EVENT_ECN_NO_CE`, `CA_EVENT_ECN_IS_CE`,
/// `TCP_CA_Recovery`.
const ECHO: u64 = 4;
const ACK_TIMER: u64 = 2;
const ACK_NOW: u64 = 16;
const NOT_MARKED: u64 = 4;
const MARKED: u64 = 5;
const RECOVERY: u64 = 3;

const MSS: u64 = 1_000;

/// The acknowledgements that the program sends at once: up to which byte, and whether with ECN-Echo.
#[derive(Clone, Default)]
struct Sent(Vec<(u64, bool)>);

impl Kernel for Sent {
    fn call(&mut self, memory: &mut Memory, called: Called<'_>, arguments: [u64; 3]) -> u64 {
        match called {
            Called::Helper(SEND_ACK) => {
                self.0.push((arguments[1], memory.read(ECN_FLAGS, 1) & ECHO != 0));
                0
            }
            Called::Function(name) => panic!("kernel function {name}"),
            Called::Helper(number) => panic!("helper {number}"),
        }
    }
}

fn start(window: u64) -> Machine<Sent> {
    let mut program = Machine::load(Algorithm::Dctcp, Sent::default());
    program.memory.write(SND_CWND, 4, window);
    program.call("init", &[SOCKET]);
    program
}

fn sample(acked: u64, marked: bool, una: u64, next: u64) -> AckSample {
    AckSample { now: Timestamp(0), acked, marked, rtt: None, srtt: Nanos(1), una, next, may_grow: false }
}

#[test]
fn the_window_shrinks_by_the_share_of_marks_as_in_the_emulator() {
    const WINDOW: u64 = 400;
    let mut program = start(WINDOW);
    let mut model = Dctcp::default();
    let mut window = Window { cwnd: WINDOW * MSS, ssthresh: MSS, mss: MSS };
    model.on_ack(&mut window, &sample(0, false, 1, WINDOW * MSS));
    let (mut una, mut marked_before) = (0, 0);
    for round in 0..400_u64 {
        // Shares of 10 %, 60 %, 0 and 30 %, each for 100 round trips.
        let marked = WINDOW * [1, 6, 0, 3][round as usize / 100] / 10;
        una += WINDOW;
        marked_before += marked;
        for (place, value) in
            [(SND_UNA, una), (SND_NXT, una + WINDOW), (DELIVERED, una), (DELIVERED_CE, marked_before)]
        {
            program.memory.write(place, 4, value);
        }
        program.call("in_ack_event", &[SOCKET, 0]);
        // Only the second acknowledgement ends the round trip.
        for (acked, is_marked) in [(marked, true), (WINDOW - marked, false)] {
            let (una, next) = (una * MSS + u64::from(!is_marked), (una + WINDOW) * MSS);
            model.on_ack(&mut window, &sample(acked * MSS, is_marked, una, next));
        }
        let alpha = program.memory.read(ALPHA, 4) as f64 / 1024.0;
        assert!((alpha - model.alpha()).abs() < 0.02, "round {round}: {alpha}, model {}", model.alpha());
        let threshold = program.call("ssthresh", &[SOCKET]);
        let cwnd = WINDOW * MSS;
        let window = Window { cwnd, ssthresh: MSS, mss: MSS };
        let of_model = model.on_congestion(&window, Signal::Mark, cwnd, Timestamp(round)) / MSS;
        assert!(threshold.abs_diff(of_model) <= 4, "round {round}: {threshold}, model {of_model}");
    }
    assert_eq!(program.kernel.0, []);
}

#[test]
fn without_marks_the_estimate_ends_at_zero() {
    let mut program = start(10);
    for round in 1..=400 {
        program.memory.write(SND_UNA, 4, 10 * round);
        program.memory.write(SND_NXT, 4, 10 * round + 10);
        program.memory.write(DELIVERED, 4, 10 * round);
        program.call("in_ack_event", &[SOCKET, 0]);
    }
    assert_eq!(program.memory.read(ALPHA, 4), 0);
    assert_eq!(program.call("ssthresh", &[SOCKET]), 10);
}

#[test]
fn a_loss_halves_the_window_and_a_false_alarm_restores_it() {
    let mut program = start(100);
    program.call("set_state", &[SOCKET, RECOVERY]);
    assert_eq!(program.memory.read(SND_SSTHRESH, 4), 50);
    program.memory.write(PRIOR_CWND, 4, 100);
    program.memory.write(SND_CWND, 4, 50);
    assert_eq!(program.call("undo_cwnd", &[SOCKET]), 100);
}

#[test]
fn the_echo_tells_marked_segments_from_others() {
    let mut program = start(10);
    let segment = |program: &mut Machine<Sent>, received: u64, event: u64, is_delayed: bool| {
        program.memory.write(ACK_PENDING, 1, if is_delayed { ACK_TIMER } else { 0 });
        program.memory.write(RCV_NXT, 4, received);
        program.call("cwnd_event", &[SOCKET, event]);
        let (pending, flags) = (program.memory.read(ACK_PENDING, 1), program.memory.read(ECN_FLAGS, 1));
        (pending & ACK_NOW != 0, flags & ECHO != 0)
    };
    assert_eq!(segment(&mut program, 1_000, NOT_MARKED, false), (false, false));
    assert_eq!(segment(&mut program, 2_000, NOT_MARKED, true), (false, false));
    // The first marked one: what came before is acknowledged without the echo.
    assert_eq!(segment(&mut program, 3_000, MARKED, true), (true, true));
    assert_eq!(program.kernel.0, [(2_000, false)]);
    assert_eq!(segment(&mut program, 4_000, MARKED, false), (false, true));
    // The next one is not marked, and nothing waits to be acknowledged.
    assert_eq!(segment(&mut program, 5_000, NOT_MARKED, false), (true, false));
    assert_eq!(program.kernel.0.len(), 1);
    assert_eq!(segment(&mut program, 6_000, MARKED, true), (true, true));
    assert_eq!(program.kernel.0[1], (5_000, false));
}
