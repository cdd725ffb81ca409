//! Records the background traffic of each period: a file of packets, and the tag.
//!
//! A period is of use only if it was recorded from its beginning to its end, without a packet dropped or lost, and without a step
//! of the clock. Files that become too large stop growing; then the tag is still that of the whole period, and the packets are
//! those of its first part.

use std::io;
use std::path::{Path, PathBuf};

use thalweg_control::threshold::period::Period;
use thalweg_control::threshold::tag::Tag;
use thalweg_control::threshold::{Input, Unusable};
use thalweg_emulator::workloads::burstiness::Burstiness;
use thalweg_records::recording::{RecordedPacket, RecordingWriter};
use thalweg_wire::{BitRate, Nanos, Timestamp};

use crate::collectors::background::Block;
use crate::config::RecorderOptions;

/// A period may begin or end without packets for this part of it, or for [`MIN_SLACK`] if that is longer.
const SLACK_PART: u64 = 1_000;

/// The slack of short periods.
const MIN_SLACK: Nanos = Nanos::from_secs(1);

/// Windows with fewer of them give no burstiness.
const MIN_WINDOWS: u64 = 10;

/// Picoseconds per nanosecond.
const NANO_PS: u64 = 1_000;

/// Returns for how long a period may be silent at its beginning and end.
fn slack(period: Nanos) -> Nanos {
    Nanos(period.0 / SLACK_PART).max(MIN_SLACK)
}

/// Records periods.
#[derive(Debug)]
pub(super) struct Recorder {
    options: RecorderOptions,
    current: Option<Current>,
    now: Timestamp,
}

/// The period that is being recorded.
#[derive(Debug)]
struct Current {
    period: Period,
    /// `None` if it could not be created.
    file: Option<RecordingWriter>,
    burstiness: Burstiness,
    packets: u64,
    /// The time of the last packet in the file, which is in order.
    last: Timestamp,
    is_full: bool,
    trouble: Option<Unusable>,
}

impl Recorder {
    pub(super) fn new(options: RecorderOptions) -> Recorder {
        Recorder { options, current: None, now: Timestamp::default() }
    }

    /// Returns the file of a period.
    pub(super) fn path(folder: &Path, period: Period) -> PathBuf {
        folder.join(format!("{}.parquet", period.0))
    }

    /// Returns the packet time; zero before the first block.
    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the period, the packets so far and whether it can still be of use; `None` before the first block.
    pub(super) fn progress(&self) -> Option<(Period, u64, Option<Unusable>)> {
        self.current.as_ref().map(|current| (current.period, current.packets, current.trouble))
    }

    /// Adds a block. Appends what is known of the periods that have ended.
    pub(super) fn add(&mut self, block: &Block, ended: &mut Vec<Input>) {
        let first = block.packets.first().map_or(block.now, |packet| packet.time.min(block.now));
        // What came before the first block is missing in any case.
        let is_reopened = block.is_reopened && self.current.is_some();
        self.check_clock(first, block.now, ended);
        self.reach(first, ended);
        if let Some(current) = &mut self.current {
            let trouble = match () {
                () if block.dropped > 0 || is_reopened => Some(Unusable::Dropped),
                () if block.lost > 0 => Some(Unusable::Lost),
                () => None,
            };
            current.trouble = current.trouble.or(trouble);
        }
        let mut rest = &block.packets[..];
        while let (Some(next), Some(current)) = (rest.first(), &mut self.current) {
            let end = current.period.next().start(self.options.period);
            let count = rest.iter().position(|packet| packet.time >= end).unwrap_or(rest.len());
            current.record(&rest[..count], &self.options);
            rest = &rest[count..];
            if count == 0 {
                self.reach(next.time, ended);
            }
        }
        self.reach(block.now, ended);
        self.now = block.now;
    }

    /// Notes a step of the clock.
    fn check_clock(&mut self, first: Timestamp, now: Timestamp, ended: &mut Vec<Input>) {
        let Some(current) = &mut self.current else { return };
        let slack = slack(self.options.period);
        let is_back = now + slack < self.now;
        let is_ahead = self.options.is_live && first > self.now + slack;
        if is_back || is_ahead {
            current.trouble.get_or_insert(Unusable::ClockStepped);
        }
        if is_back {
            self.end(ended);
        }
    }

    /// Ends all periods before the one of `time`, and begins that.
    fn reach(&mut self, time: Timestamp, ended: &mut Vec<Input>) {
        let period = Period::at(time, self.options.period);
        match &self.current {
            Some(current) if period <= current.period => return,
            // The source was silent for more than a period.
            Some(current) if period > current.period.next() && self.options.is_live => {
                self.current.as_mut().map(|current| current.trouble.get_or_insert(Unusable::ClockStepped));
            }
            _ => {}
        }
        let is_next = self.current.as_ref().is_some_and(|current| period == current.period.next());
        self.end(ended);
        let is_late = time - period.start(self.options.period) > slack(self.options.period);
        let trouble = (!is_next && is_late).then_some(Unusable::Incomplete);
        let file = RecordingWriter::create(&Recorder::path(&self.options.folder, period));
        let file = file.map_err(|error| self.report(period, &error)).ok();
        self.current = Some(Current {
            period,
            trouble: trouble.or(file.is_none().then_some(Unusable::NotWritten)),
            file,
            burstiness: Burstiness::new(self.options.window.0 * NANO_PS),
            packets: 0,
            last: period.start(self.options.period),
            is_full: false,
        });
    }

    /// Ends the current period.
    fn end(&mut self, ended: &mut Vec<Input>) {
        let Some(mut current) = self.current.take() else { return };
        let period = current.period;
        current.burstiness.finish(self.options.period.0 * NANO_PS);
        let tag = Tag {
            mean_rate: BitRate(current.burstiness.mean_bps().max(0.0) as u64),
            burstiness: current.burstiness.value(),
        };
        let has_windows = self.options.period.0 / self.options.window.0.max(1) >= MIN_WINDOWS;
        if !(has_windows && tag.burstiness.is_finite() && tag.mean_rate.0 > 0) {
            current.trouble.get_or_insert(Unusable::Idle);
        }
        ended.push(match (current.trouble, current.file) {
            (None, Some(file)) => match file.finish() {
                Ok(()) => Input::Recorded(period, tag),
                Err(error) => {
                    self.report(period, &error);
                    Input::Unusable(period, Unusable::NotWritten)
                }
            },
            (trouble, file) => {
                if let Some(file) = file {
                    file.discard();
                }
                Input::Unusable(period, trouble.unwrap_or(Unusable::NotWritten))
            }
        });
    }

    /// Discards the current period, which cannot be completed.
    pub(super) fn stop(&mut self) {
        if let Some(file) = self.current.take().and_then(|current| current.file) {
            file.discard();
        }
    }

    fn report(&self, period: Period, error: &io::Error) {
        let path = Recorder::path(&self.options.folder, period);
        tracing::error!(%error, file = %path.display(), "traffic not recorded");
    }
}

impl Current {
    /// Records packets of this period.
    fn record(&mut self, packets: &[RecordedPacket], options: &RecorderOptions) {
        let start = self.period.start(options.period);
        self.packets += packets.len() as u64;
        let is_ordered = packets.is_sorted_by_key(|packet| packet.time)
            && packets.first().is_none_or(|packet| packet.time >= self.last);
        let ordered: Vec<RecordedPacket>;
        let packets = match is_ordered {
            true => packets,
            false => {
                // Captures of several queues interleave within microseconds.
                let mut last = self.last;
                let order = packets.iter().map(|packet| {
                    last = last.max(packet.time);
                    RecordedPacket { time: last, ..*packet }
                });
                ordered = order.collect();
                &ordered
            }
        };
        for packet in packets {
            self.burstiness.add((packet.time - start).0 * NANO_PS, packet.length);
        }
        self.last = packets.last().map_or(self.last, |packet| packet.time);
        let Some(file) = self.file.as_mut().filter(|_| !self.is_full && self.trouble.is_none()) else {
            return;
        };
        match file.add(packets) {
            Ok(()) => self.is_full = file.bytes() >= options.max_bytes.0,
            Err(error) => {
                tracing::error!(%error, folder = %options.folder.display(), "traffic not recorded");
                self.trouble.get_or_insert(Unusable::NotWritten);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_records::recording::RecordingReader;
    use thalweg_wire::Bytes;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn recorder(folder: &Path) -> Recorder {
        Recorder::new(RecorderOptions {
            folder: folder.to_owned(),
            period: Nanos::from_secs(60),
            window: Nanos::from_millis(100),
            max_bytes: Bytes(1 << 30),
            is_live: true,
        })
    }

    /// A block of 100 ms before `end_ms`, with a packet every 10 ms of which every other one is long.
    fn block(end_ms: u64) -> Block {
        let packet = |n: u64| RecordedPacket {
            time: Timestamp(1_000_000 * (end_ms - 100 + 10 * n)),
            length: if end_ms.is_multiple_of(200) { 1_500 } else { 500 },
        };
        Block {
            packets: (0..10).map(packet).collect(),
            now: Timestamp(1_000_000 * end_ms),
            ..Block::default()
        }
    }

    /// Adds blocks from one time to another, in seconds.
    fn run(recorder: &mut Recorder, from: u64, to: u64, change: impl Fn(u64, &mut Block)) -> Vec<Input> {
        let mut ended = Vec::new();
        for end_ms in (1_000 * from + 100..=1_000 * to).step_by(100) {
            let mut block = block(end_ms);
            change(end_ms, &mut block);
            recorder.add(&block, &mut ended);
        }
        ended
    }

    #[test]
    fn complete_periods_have_a_tag_and_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = recorder(folder.path());
        let ended = run(&mut recorder, 50, 190, |_, _| ());
        assert_eq!(ended[0], Input::Unusable(Period(0), Unusable::Incomplete));
        assert_eq!(ended.len(), 3);
        for (input, period) in ended[1..].iter().zip([1, 2]) {
            let Input::Recorded(Period(recorded), tag) = input else { panic!("{input:?}") };
            assert_eq!(*recorded, period);
            // Windows of 5,000 and 15,000 bytes in turn: 10,000 in 100 ms, and half of that as deviation.
            assert_eq!((tag.mean_rate, tag.burstiness), (BitRate(800_000), 0.5));
            let path = Recorder::path(folder.path(), Period(period));
            let mut reader = RecordingReader::open(&path).unwrap();
            let mut packets = Vec::new();
            assert!(reader.next(&mut packets).unwrap());
            assert_eq!(packets.len(), 6_000);
            assert_eq!(packets[0].time, Timestamp(60 * SECOND * period));
        }
        recorder.stop();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "the unfinished one is discarded");
    }

    #[test]
    fn a_period_with_drops_losses_gaps_or_steps_is_of_no_use() {
        type Change = fn(u64, &mut Block);
        let cases: [(Change, Unusable); 5] = [
            (|ms, block| block.dropped = u64::from(ms == 70_000), Unusable::Dropped),
            (|ms, block| block.is_reopened = ms == 70_000, Unusable::Dropped),
            (|ms, block| block.lost = u64::from(ms == 119_900), Unusable::Lost),
            (|ms, block| shift(block, if ms > 70_000 { 1_200 } else { 0 }), Unusable::ClockStepped),
            (|_, block| block.packets.clear(), Unusable::Idle),
        ];
        for (change, reason) in cases {
            let folder = tempfile::tempdir().unwrap();
            let mut recorder = recorder(folder.path());
            let ended = run(&mut recorder, 60, 125, change);
            assert_eq!(ended, [Input::Unusable(Period(1), reason)]);
            recorder.stop();
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    fn shift(block: &mut Block, by_ms: u64) {
        block.now = block.now + Nanos::from_millis(by_ms);
        block.packets.iter_mut().for_each(|packet| packet.time = packet.time + Nanos::from_millis(by_ms));
    }

    #[test]
    fn a_clock_that_steps_back_begins_an_earlier_period() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = recorder(folder.path());
        let mut ended = run(&mut recorder, 120, 150, |_, _| ());
        ended.extend(run(&mut recorder, 70, 125, |_, _| ()));
        let unusable = |period, reason| Input::Unusable(Period(period), reason);
        assert_eq!(ended, [unusable(2, Unusable::ClockStepped), unusable(1, Unusable::Incomplete)]);
    }

    #[test]
    fn a_full_file_keeps_the_first_part_and_the_tag_is_of_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = recorder(folder.path());
        recorder.options.max_bytes = Bytes(1_000);
        // Full after the first group of a million packets: 1,200 per ms here.
        let dense = |ms: u64, block: &mut Block| {
            if ms.is_multiple_of(1_000) {
                block.packets = vec![block.packets[0]; 120_000];
            }
        };
        let ended = run(&mut recorder, 60, 121, dense);
        assert!(matches!(ended[0], Input::Recorded(..)), "{ended:?}");
        let reader = RecordingReader::open(&Recorder::path(folder.path(), Period(1))).unwrap();
        assert!((1 << 20..3_000_000).contains(&reader.packets()), "{}", reader.packets());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_reported_as_such() {
        let mut recorder = recorder(Path::new("/nonexistent"));
        let ended = run(&mut recorder, 60, 121, |_, _| ());
        assert_eq!(ended, [Input::Unusable(Period(1), Unusable::NotWritten)]);
    }
}
