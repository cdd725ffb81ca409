//! The reading half of a worker: batches of frames from a source become packets, at the pace asked for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use thalweg_measure::meter::intake::Intake;
use thalweg_wire::{Batch, Nanos, Packet, Source, Timestamp};

use super::inputs::{Input, InputError};

/// How long a replay sleeps at most before it looks whether it is to stop.
const NAP: Duration = Duration::from_millis(20);

/// An interface that is silent is as late as this against the clock: what its ring still holds open.
const SILENCE_MARGIN: Nanos = Nanos::from_millis(200);

/// What is done with packets.
pub(super) trait Consumer {
    /// Takes some packets, in the order of their capture.
    fn packets(&mut self, packets: &[Packet]);

    /// Called after each batch and now and then without any. No packet before `now` is to be expected; zero if
    /// nothing is known of the time.
    fn pause(&mut self, input: &mut Input, intake: &Intake, now: Timestamp);
}

/// When reading ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    /// Set when everything is to stop.
    pub(super) stop: &'a AtomicBool,
    /// Most packet time after the first packet.
    pub(super) duration: Option<Nanos>,
}

/// The pace of a replay: packet time against the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    speed: f64,
    begun: Option<(Timestamp, Instant)>,
}

impl Pace {
    /// `speed` times the recorded pace.
    pub(super) fn new(speed: f64) -> Pace {
        Pace { speed, begun: None }
    }

    /// How long a packet of this time has yet to wait.
    fn wait(&mut self, time: Timestamp) -> Duration {
        let (first, started) = *self.begun.get_or_insert_with(|| (time, Instant::now()));
        let due = Duration::from_secs_f64((time - first).as_secs_f64() / self.speed);
        due.saturating_sub(started.elapsed())
    }
}

/// Reads `input` to its end, or until a limit is reached.
///
/// # Errors
/// If the input cannot go on; everything before has been consumed.
pub(super) fn read(
    input: &mut Input,
    intake: &mut Intake,
    mut pace: Option<&mut Pace>,
    limits: Limits<'_>,
    consumer: &mut impl Consumer,
) -> Result<(), InputError> {
    let mut packets = Vec::new();
    let mut end = None;
    while !limits.stop.load(Ordering::Relaxed) {
        let live = input.is_live();
        let Some(batch) = input.next_batch()? else { break };
        let silent = batch.frames.is_empty();
        let last = batch.frames.last().map(|frame| frame.time);
        if let (Some(duration), Some(first), None) = (limits.duration, batch.frames.first(), end) {
            end = Some(first.time + duration);
        }
        let (batch, ended) = before(batch, end);
        match pace.as_deref_mut() {
            None => consume(&batch, intake, &mut packets, consumer),
            Some(pace) => replay(&batch, pace, intake, &mut packets, limits.stop, consumer),
        }
        let now = match silent && live {
            true => wall_clock().saturating_sub(SILENCE_MARGIN),
            false => last.unwrap_or_default(),
        };
        consumer.pause(input, intake, now);
        if ended || end.is_some_and(|end| live && wall_clock() > end + SILENCE_MARGIN) {
            limits.stop.store(true, Ordering::Relaxed);
        }
    }
    Ok(())
}

fn consume(batch: &Batch<'_>, intake: &mut Intake, packets: &mut Vec<Packet>, consumer: &mut impl Consumer) {
    packets.clear();
    intake.take(batch, packets);
    consumer.packets(packets);
}

/// Hands on each frame when it is due, and those due together at once.
fn replay(
    batch: &Batch<'_>,
    pace: &mut Pace,
    intake: &mut Intake,
    packets: &mut Vec<Packet>,
    stop: &AtomicBool,
    consumer: &mut impl Consumer,
) {
    let mut frames = batch.frames;
    while let Some(first) = frames.first() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let wait = pace.wait(first.time);
        if wait > Duration::ZERO {
            std::thread::sleep(wait.min(NAP));
            continue;
        }
        let due = frames.iter().position(|frame| pace.wait(frame.time) > Duration::ZERO);
        let (now, later) = frames.split_at(due.unwrap_or(frames.len()));
        consume(&Batch { frames: now, ..*batch }, intake, packets, consumer);
        frames = later;
    }
}

/// The frames before `end`, and whether there were others.
fn before(batch: Batch<'_>, end: Option<Timestamp>) -> (Batch<'_>, bool) {
    let count = end.and_then(|end| batch.frames.iter().position(|frame| frame.time > end));
    match count {
        None => (batch, false),
        Some(count) => (Batch { frames: &batch.frames[..count], ..batch }, true),
    }
}

fn wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::new(since_epoch.as_secs(), since_epoch.subsec_nanos())
}
