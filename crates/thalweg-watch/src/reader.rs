//! The reading half of a worker: batches of frames from a source become packets, at the pace asked for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg_measure::meter::intake::{Intake, Tally};
use thalweg_wire::{Batch, Nanos, Packet, Source, Timestamp};

use crate::clock::Clock;
use crate::inputs::{Input, InputError};

/// How long a replay sleeps at most before it looks whether it is to stop.
const NAP: Duration = Duration::from_millis(20);

/// An interface that is silent is as late as this against the clock: what its ring still holds open.
const SILENCE_MARGIN: Nanos = Nanos::from_millis(200);

/// What is done with packets.
pub(crate) trait Consumer {
    /// Takes some packets, in the order of their capture; `tally` is their number and bytes.
    fn packets(&mut self, packets: &[Packet], tally: Tally);

    /// Called after each batch and now and then without any. No packet before `now` is to be expected; zero if
    /// nothing is known of the time.
    fn pause(&mut self, input: &mut Input, intake: &Intake, now: Timestamp);

    /// Called within a batch that is replayed, while the next packet is not due yet.
    fn tick(&mut self, intake: &Intake, now: Timestamp);
}

/// When reading ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits<'a> {
    /// Set when everything is to stop.
    pub(crate) stop: &'a AtomicBool,
    /// Most packet time after the first packet.
    pub(crate) duration: Option<Nanos>,
}

/// The pace of a replay: packet time against the clock.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    speed: f64,
    begun: Option<(Timestamp, Instant)>,
}

impl Pace {
    /// `speed` times the recorded pace.
    pub fn new(speed: f64) -> Pace {
        Pace { speed, begun: None }
    }

    /// How long a packet of this time has yet to wait, as of `now`.
    pub fn wait(&mut self, time: Timestamp, now: Instant) -> Duration {
        let (first, started) = *self.begun.get_or_insert((time, now));
        let due = (time - first).as_secs_f64() / self.speed;
        let due = Duration::try_from_secs_f64(due).unwrap_or(Duration::MAX);
        due.saturating_sub(now.saturating_duration_since(started))
    }
}

/// Reads `input` to its end, or until a limit is reached. `end` is the time at which the duration asked for is over;
/// the first packet of the first input sets it.
///
/// # Errors
/// If the input cannot go on; everything before has been consumed.
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

/// Gives the time of the last frame, zero if there is none.
fn consume(
    batch: &Batch<'_>,
    intake: &mut Intake,
    packets: &mut Vec<Packet>,
    consumer: &mut impl Consumer,
) -> Timestamp {
    packets.clear();
    let tally = intake.take(batch, packets);
    consumer.packets(packets, tally);
    batch.frames.last().map(|frame| frame.time).unwrap_or_default()
}

/// Hands on each frame when it is due, and those due together at once. Gives the time of the last one.
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
            consumer.tick(intake, now);
            std::thread::sleep(wait.min(NAP));
            continue;
        }
        let due = frames.iter().position(|frame| pace.wait(frame.time, clock.now()) > Duration::ZERO);
        let (these, later) = frames.split_at(due.unwrap_or(frames.len()));
        now = consume(&Batch { frames: these, ..*batch }, intake, packets, consumer);
        frames = later;
    }
    now
}

/// The frames before `end`, and whether there were others.
fn before(batch: Batch<'_>, end: Option<Timestamp>) -> (Batch<'_>, bool) {
    let count = end.and_then(|end| batch.frames.iter().position(|frame| frame.time > end));
    match count {
        None => (batch, false),
        Some(count) => (Batch { frames: &batch.frames[..count], ..batch }, true),
    }
}
