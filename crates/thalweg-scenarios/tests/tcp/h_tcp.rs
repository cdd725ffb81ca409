//! H-TCP of the lab, an eBPF program, against that of the emulator: the same acknowledgements give the same windows.

use thalweg_emulator::hosts::tcp::congestion::{AckSample, CongestionControl as _, HTcp, Signal, Window};
use thalweg_wire::{Nanos, Timestamp};

use crate::h_tcp_connection::Connection;

const MSS: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A sender with both: the program counts segments, the emulator bytes.
struct Both {
    program: Connection,
    model: HTcp,
    window: Window,
    now: u64,
    /// Segments acknowledged so far; those of the program.
    acked: [u64; 2],
}

impl Both {
    /// Starts at `now` in congestion avoidance with a window of this many segments.
    fn start(segments: u64, now: u64) -> Both {
        let mut program = Connection::start(now);
        program.set_window(segments as u32, segments as u32);
        let window = Window { cwnd: segments * MSS, ssthresh: segments * MSS, mss: MSS };
        // The model's time without congestion starts with the first acknowledgement, a few milliseconds later.
        Both { program, model: HTcp::default(), window, now, acked: [0; 2] }
    }

    /// A window of segments is acknowledged within a round trip, two by two, or in at most 40 steps.
    fn round(&mut self, rtt: Nanos) {
        let (own, model) = (u64::from(self.program.window()), self.window.cwnd / MSS);
        let steps = own.max(model).div_ceil(2).min(40);
        let start = self.now;
        for step in 1..=steps {
            self.now = start + rtt.0 * step / steps;
            let due = |segments: u64| segments * step / steps - segments * (step - 1) / steps;
            let (acked, of_model) = (due(own), due(model));
            if acked > 0 {
                self.acked[0] += acked;
                let window = self.program.window();
                self.program.set_sent(self.acked[0] as u32, self.acked[0] as u32 + window, window);
                self.program.acknowledge(self.now, acked as u32, rtt);
            }
            if of_model > 0 {
                self.acked[1] += of_model;
                let una = self.acked[1] * MSS;
                let sample = AckSample {
                    now: Timestamp(self.now),
                    acked: of_model * MSS,
                    marked: false,
                    rtt: Some(rtt),
                    srtt: rtt,
                    una,
                    next: una + self.window.cwnd,
                    may_grow: true,
                };
                self.model.on_ack(&mut self.window, &sample);
            }
        }
    }

    /// Runs rounds until `until`.
    fn run(&mut self, rtt: Nanos, until: u64) {
        while self.now < until {
            self.round(rtt);
        }
    }

    /// Both find a loss. Sets the windows to the thresholds, and returns these in segments.
    fn lose(&mut self) -> (f64, f64) {
        let threshold = self.program.lose(self.now);
        self.program.set_window(threshold, threshold);
        let flight = self.window.cwnd;
        let of_model = self.model.on_congestion(&self.window, Signal::Loss, flight, Timestamp(self.now));
        (self.window.cwnd, self.window.ssthresh) = (of_model, of_model);
        (f64::from(threshold), of_model as f64 / MSS as f64)
    }

    fn windows(&self) -> (f64, f64) {
        (f64::from(self.program.window()), self.window.segments())
    }
}

/// Asserts that both differ by at most a share, or a few segments.
fn assert_close((program, model): (f64, f64), share: f64, what: &str) {
    let tolerance = (share * model).max(3.0);
    assert!((program - model).abs() <= tolerance, "{what}: program {program}, model {model}");
}

#[test]
fn windows_grow_as_in_the_emulator_at_low_and_at_high_speed() {
    for rtt in [Nanos(10 * MS), Nanos(40 * MS), Nanos(100 * MS)] {
        let mut both = Both::start(100, MS);
        let mut before = both.windows().0;
        for tenth in 1..=60 {
            both.run(rtt, tenth * 100 * MS);
            let what = format!("{rtt} at {} ms", tenth * 100);
            assert_close(both.windows(), 0.02, &what);
            assert!(both.windows().0 >= before, "{what}");
            before = both.windows().0;
        }
        // alpha: at 1 s from one segment per round trip, at 6 s to 1 + 50 + 6.25.
        let low = both.program.alpha_at(MS, 900 * MS);
        let high = both.program.alpha_at(MS, 6_000 * MS);
        assert!((0.99..=1.01).contains(&low) && (56.0..=58.5).contains(&high), "{low} {high}");
    }
}

#[test]
fn the_decrease_adapts_to_the_queue_as_in_the_emulator() {
    let mut both = Both::start(200, MS);
    let mut seen = Vec::new();
    // The longest round trip of each epoch. All begin with the same window, so throughput is steady from the second on.
    for (epoch, longest) in [12, 14, 14, 18, 30, 11].into_iter().enumerate() {
        both.program.set_window(200, 200);
        (both.window.cwnd, both.window.ssthresh) = (200 * MSS, 200 * MSS);
        let until = both.now + 400 * MS;
        both.run(Nanos(10 * MS), until);
        both.round(Nanos(longest * MS));
        let before = both.windows();
        let (program, model) = both.lose();
        assert_close((program, model), 0.03, &format!("epoch {epoch}"));
        seen.push(program / before.0);
    }
    // Both bounds and a value between them occur.
    let near = |value: f64| seen.iter().any(|factor| (factor - value).abs() < 0.02);
    assert!(near(0.5) && near(10.0 / 14.0) && near(10.0 / 18.0) && near(0.8), "{seen:?}");
    assert!(seen.iter().all(|factor| (0.49..=0.81).contains(factor)), "{seen:?}");
}

#[test]
fn a_false_alarm_is_undone() {
    let mut both = Both::start(100, MS);
    both.run(Nanos(20 * MS), 3_000 * MS);
    let before = both.program.window();
    let alpha = both.program.alpha_at(MS, both.now);
    let threshold = both.program.lose(both.now);
    assert!(threshold < before);
    assert_eq!(both.program.alpha_at(both.now, both.now), 1.0);
    both.program.set_prior_window(before);
    assert_eq!(both.program.undo(), before);
    // It grows again as before.
    let at = both.now;
    assert!((both.program.alpha_at(MS, at) - alpha).abs() < 0.01 * alpha);
}

#[test]
fn slow_start_ends_at_the_threshold_and_an_idle_sender_does_not_grow() {
    let mut program = Connection::start(MS);
    program.set_window(10, 25);
    program.set_sent(10, 20, 10);
    program.acknowledge(2 * MS, 10, Nanos(MS));
    assert_eq!(program.window(), 20, "doubles");
    program.set_sent(30, 50, 20);
    program.acknowledge(3 * MS, 20, Nanos(MS));
    assert!((25..=26).contains(&program.window()), "{}", program.window());
    let window = program.window();
    program.set_sent(50, 55, 5);
    program.acknowledge(4 * MS, 5, Nanos(MS));
    assert_eq!(program.window(), window, "it was not limited by its window");
}
