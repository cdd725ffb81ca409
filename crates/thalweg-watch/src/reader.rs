//! The reading half of a worker: parses batches of frames into packets, optionally at replay pace.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg_measure::meter::intake::{Intake, Taken};
use thalweg_wire::{Batch, Nanos, Packet, Source, Timestamp};

use crate::clock::Clock;
use crate::inputs::{Input, InputError};

/// Maximum sleep of a replay between checks of the stop flag.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Packet time of an idle interface lags the clock by this much: its ring may still hold packets in an open block.
const SILENCE_MARGIN: Nanos = Nanos::from_millis(200);

/// A consumer of packets.
pub(crate) trait Consumer {
    /// Processes frames, before their packets.
    fn frames(&mut self, batch: &Batch<'_>);

    /// Processes packets in capture order, which are those of `taken`.
    fn packets(&mut self, packets: &[Packet], taken: Taken);

    /// Called after each batch and occasionally without one. No packet earlier than `now` will follow; `now` is zero if the
    /// time is unknown.
    fn pause(&mut self, input: &mut Input, intake: &Intake, now: Timestamp);

    /// Called during replay while the next packet is not due.
    fn tick(&mut self, intake: &Intake, now: Timestamp);
}

/// Conditions that end reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits<'a> {
    /// Set to stop.
    pub(crate) stop: &'a AtomicBool,
    /// Maximum time after the start on interfaces, after the first packet in files.
    pub(crate) duration: Option<Nanos>,
}

/// The pace of a replay: maps packet time to the clock.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    speed: f64,
    started: Option<(Timestamp, Instant)>,
}

impl Pace {
    /// Creates a pace of `speed` times real time.
    pub fn new(speed: f64) -> Pace {
        Pace { speed, started: None }
    }

    /// Returns the packet time at `now`; `None` before the first packet.
    fn time(&self, now: Instant) -> Option<Timestamp> {
        let (first, started) = self.started?;
        let passed = now.saturating_duration_since(started).as_secs_f64() * self.speed;
        Some(Timestamp(first.0.saturating_add((passed * 1e9) as u64)))
    }

    /// Returns the time from `now` until a packet with this timestamp is due.
    pub fn wait(&mut self, time: Timestamp, now: Instant) -> Duration {
        let (first, started) = *self.started.get_or_insert((time, now));
        let due = (time - first).as_secs_f64() / self.speed;
        let due = Duration::try_from_secs_f64(due).unwrap_or(Duration::MAX);
        due.saturating_sub(now.saturating_duration_since(started))
    }
}

/// Reads `input` to its end or until a limit is reached. `end` is the time at which the configured duration is over. The
/// start sets it on an interface, which may stay silent, else the first packet of the first input.
///
/// # Errors
/// If reading fails. All packets before the error have been consumed.
pub(crate) fn read(
    input: &mut Input,
    intake: &mut Intake,
    mut pace: Option<&mut Pace>,
    limits: Limits<'_>,
    clock: Clock,
    end: &mut Option<Timestamp>,
    consumer: &mut impl Consumer,
) -> Result<(), InputError> {
    let mut packets = Vec::new();
    if input.is_live() && end.is_none() {
        *end = limits.duration.map(|duration| clock.time() + duration);
    }
    while !limits.stop.load(Ordering::Relaxed) {
        let live = input.is_live();
        let Some(batch) = input.next_batch()? else { break };
        let silent = batch.frames.is_empty();
        if let (Some(duration), Some(first), None) = (limits.duration, batch.frames.first(), *end) {
            *end = Some(first.time + duration);
        }
        let (batch, ended) = before(batch, *end);
        let last = match pace.as_deref_mut() {
            None => consume(&batch, intake, &mut packets, consumer),
            Some(pace) => replay(&batch, pace, clock, intake, &mut packets, limits.stop, consumer),
        };
        let now = match silent && live {
            true => clock.time().saturating_sub(SILENCE_MARGIN),
            false => last,
        };
        consumer.pause(input, intake, now);
        if ended || end.is_some_and(|end| live && clock.time() > end + SILENCE_MARGIN) {
            limits.stop.store(true, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Consumes a batch. Returns the time of its last frame, or zero if it is empty.
fn consume(
    batch: &Batch<'_>,
    intake: &mut Intake,
    packets: &mut Vec<Packet>,
    consumer: &mut impl Consumer,
) -> Timestamp {
    packets.clear();
    consumer.frames(batch);
    let taken = intake.take(batch, packets);
    consumer.packets(packets, taken);
    batch.frames.last().map(|frame| frame.time).unwrap_or_default()
}

/// Consumes each frame when it is due. Returns the time of the last one.
fn replay(
    batch: &Batch<'_>,
    pace: &mut Pace,
    clock: Clock,
    intake: &mut Intake,
    packets: &mut Vec<Packet>,
    stop: &AtomicBool,
    consumer: &mut impl Consumer,
) -> Timestamp {
    let mut now = Timestamp::default();
    let mut frames = batch.frames;
    while let Some(first) = frames.first() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let wait = pace.wait(first.time, clock.now());
        if wait > Duration::ZERO {
            // Packet time passes while the next packet is not due.
            let paced = pace.time(clock.now()).unwrap_or_default().min(first.time);
            now = now.max(paced);
            consumer.tick(intake, now);
            std::thread::sleep(wait.min(STOP_CHECK_INTERVAL));
            continue;
        }
        let due = frames.iter().position(|frame| pace.wait(frame.time, clock.now()) > Duration::ZERO);
        let (due_now, later) = frames.split_at(due.unwrap_or(frames.len()));
        now = now.max(consume(&Batch { frames: due_now, ..*batch }, intake, packets, consumer));
        frames = later;
    }
    now
}

/// Returns the frames up to `end`, and whether later ones were removed.
fn before(batch: Batch<'_>, end: Option<Timestamp>) -> (Batch<'_>, bool) {
    let count = end.and_then(|end| batch.frames.iter().position(|frame| frame.time > end));
    match count {
        None => (batch, false),
        Some(count) => (Batch { frames: &batch.frames[..count], ..batch }, true),
    }
}

#[cfg(test)]
mod tests {
    use thalweg_wire::parse::Parser;
    use thalweg_wire::{FrameRef, HashSeed, Interface, LinkType};

    use super::*;

    /// Records the packet times of ticks.
    #[derive(Default)]
    struct Ticks(Vec<Timestamp>);

    impl Consumer for Ticks {
        fn frames(&mut self, _: &Batch<'_>) {}

        fn packets(&mut self, _: &[Packet], _: Taken) {}

        fn pause(&mut self, _: &mut Input, _: &Intake, _: Timestamp) {}

        fn tick(&mut self, _: &Intake, now: Timestamp) {
            self.0.push(now);
        }
    }

    #[test]
    fn packet_time_passes_in_a_pause_of_a_replay() {
        let frame = |time| FrameRef {
            time: Timestamp(time),
            offset: 0,
            captured_length: 14,
            original_length: 14,
            interface: 0,
        };
        let frames = [frame(1_000_000_000), frame(2_000_000_000)];
        let interfaces = [Interface { name: None, link_type: LinkType::Ethernet, snap_length: 0 }];
        let batch = Batch { bytes: &[0; 14], frames: &frames, interfaces: &interfaces };
        let clock = Clock { wall: Timestamp::default, steady: Instant::now };
        let (mut intake, mut ticks) = (Intake::new(Parser::default(), HashSeed::new(1)), Ticks::default());
        let stop = AtomicBool::new(false);
        let mut pace = Pace::new(10.0);
        let last = replay(&batch, &mut pace, clock, &mut intake, &mut Vec::new(), &stop, &mut ticks);
        assert_eq!(last, frames[1].time);
        assert!(ticks.0.iter().any(|now| *now > frames[0].time), "{:?}", ticks.0);
        assert!(ticks.0.is_sorted() && ticks.0.iter().all(|now| *now <= frames[1].time));
    }
}
