//! Starts slots by a real clock, and measures how well that succeeds.
//!
//! **Late slots.** A slot that starts later than [`PaceOptions::late_after`] after its time is late. A run with more
//! than [`PaceOptions::max_late_share`] of late slots is invalid.
//!
//! **Catching up.** Slots are never left out silently. A shard that is behind runs one slot after the other without
//! waiting, until it is on time again. If it is behind by more than [`PaceOptions::max_catch_up`], because the process was
//! stopped for example, the emulation does not run all missed slots in a burst: it pauses. The time of all later
//! slots moves by the delay, on all cores, and the slots that would have started meanwhile count as skipped. Packets in
//! the network are delayed by the pause; none is lost.
//!
//! **Clock.** The caller passes the time since the start of slot 0 from a monotonic clock. If it goes back
//! nevertheless, slots wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

use crate::slot::{Slot, SlotClock};

/// How slots follow a real clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaceOptions {
    /// A slot that starts later than this after its time is late. Default: 50 us.
    pub late_after: Nanos,
    /// The largest share of late and skipped slots of a valid run, 0 to 1. Default: 0.001.
    pub max_late_share: f64,
    /// A longer delay is not caught up: its slots are skipped. At least `late_after`. Default: 10 ms.
    pub max_catch_up: Nanos,
}

impl Default for PaceOptions {
    fn default() -> PaceOptions {
        PaceOptions {
            late_after: Nanos::from_micros(50),
            max_late_share: 0.001,
            max_catch_up: Nanos::from_millis(10),
        }
    }
}

/// An option is out of range.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum PaceOptionsError {
    /// The share is not one.
    #[error("the share of late slots is {0}: expected 0 to 1")]
    Share(f64),
    /// Slots would be skipped before they are late.
    #[error(
        "slots are skipped after {max_catch_up}: expected at least {late_after}, after which they are late"
    )]
    CatchUp {
        /// [`PaceOptions::max_catch_up`].
        max_catch_up: Nanos,
        /// [`PaceOptions::late_after`].
        late_after: Nanos,
    },
}

impl PaceOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// The first option that is out of range.
    pub fn check(&self) -> Result<(), PaceOptionsError> {
        let &PaceOptions { late_after, max_late_share, max_catch_up } = self;
        match () {
            () if !(0.0..=1.0).contains(&max_late_share) => Err(PaceOptionsError::Share(max_late_share)),
            () if max_catch_up < late_after => Err(PaceOptionsError::CatchUp { max_catch_up, late_after }),
            () => Ok(()),
        }
    }
}

/// How well slots kept time; all zero in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Punctuality {
    /// Slots that were due: run, or skipped while the network was empty.
    pub slots: u64,
    /// Slots that started late.
    pub late_slots: u64,
    /// Slots whose time passed in pauses. They never ran. All shards of a network share their pauses.
    pub skipped_slots: u64,
    /// Pauses that this shard began.
    pub pauses: u64,
    /// The longest delay of the start of a slot.
    pub worst: Nanos,
    /// Packets from other cores that arrived after their slot.
    pub late_packets: u64,
}

impl Punctuality {
    /// The share of late and skipped slots, 0 to 1.
    pub fn late_share(&self) -> f64 {
        let bad = self.late_slots + self.skipped_slots;
        bad as f64 / (self.slots + self.skipped_slots).max(1) as f64
    }

    /// Whether so few slots were late that the emulation represents its network.
    pub fn is_valid(&self, options: &PaceOptions) -> bool {
        self.late_share() <= options.max_late_share
    }

    /// Both together: of several shards of one network.
    #[must_use]
    pub fn with(self, other: Punctuality) -> Punctuality {
        Punctuality {
            slots: self.slots + other.slots,
            late_slots: self.late_slots + other.late_slots,
            skipped_slots: self.skipped_slots + other.skipped_slots,
            pauses: self.pauses + other.pauses,
            worst: self.worst.max(other.worst),
            late_packets: self.late_packets + other.late_packets,
        }
    }
}

/// The punctuality of a shard that runs, for other threads. It has cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Progress([AtomicU64; 6]);

impl Progress {
    pub(crate) fn store(&self, punctuality: &Punctuality) {
        let Punctuality { slots, late_slots, skipped_slots, pauses, worst, late_packets } = *punctuality;
        let values = [slots, late_slots, skipped_slots, pauses, worst.0, late_packets];
        self.0.iter().zip(values).for_each(|(number, value)| number.store(value, Ordering::Relaxed));
    }

    /// What the shard stored last. The numbers may be of two moments.
    pub fn load(&self) -> Punctuality {
        let [slots, late_slots, skipped_slots, pauses, worst, late_packets] =
            [0, 1, 2, 3, 4, 5].map(|place| self.0[place].load(Ordering::Relaxed));
        Punctuality { slots, late_slots, skipped_slots, pauses, worst: Nanos(worst), late_packets }
    }
}

/// The pauses of a network so far, in nanoseconds. All its shards share them, so that their slots stay aligned.
#[derive(Clone, Debug, Default)]
pub struct Pauses(Arc<AtomicU64>);

impl Pauses {
    /// The time that the network has paused.
    pub fn total(&self) -> Nanos {
        Nanos(self.0.load(Ordering::Relaxed))
    }
}

/// Tells a shard when its slots start.
#[derive(Clone, Debug)]
pub struct Pacer {
    clock: SlotClock,
    options: PaceOptions,
    pauses: Pauses,
    punctuality: Punctuality,
}

impl Pacer {
    /// A pacer of one shard of the network that has `pauses`.
    pub fn new(clock: SlotClock, options: PaceOptions, pauses: Pauses) -> Pacer {
        Pacer { clock, options, pauses, punctuality: Punctuality::default() }
    }

    /// The time at which `slot` is due.
    #[inline]
    pub fn due(&self, slot: Slot) -> Nanos {
        Nanos(self.clock.start_of(slot).0 + self.pauses.total().0)
    }

    /// Counts the start of `slot` at time `now`, which is not before it is [due](Pacer::due). Begins a pause if the delay is too
    /// long to catch up.
    pub fn start(&mut self, slot: Slot, now: Nanos) {
        let delay = Nanos(now.0.saturating_sub(self.due(slot).0));
        let punctuality = &mut self.punctuality;
        punctuality.slots += 1;
        punctuality.worst = punctuality.worst.max(delay);
        punctuality.late_slots += u64::from(delay > self.options.late_after);
        if delay > self.options.max_catch_up {
            punctuality.pauses += 1;
            // Another shard may have begun the same pause, and may have been further behind.
            self.pauses.0.fetch_max(now.0 - self.clock.start_of(slot).0, Ordering::Relaxed);
        }
    }

    /// The first slot that starts at `now` or later, not before `slot`: the next one to run after the network was empty. Counts the
    /// slots before it, in which nothing could happen. If the thread was to look for packets at `expected`, but looks now, slots after that are
    /// late, since a packet may have been waiting.
    pub fn resume(&mut self, slot: Slot, expected: Nanos, now: Nanos) -> Slot {
        let emulated = |time: Nanos| Timestamp(time.0.saturating_sub(self.pauses.total().0));
        let next = self.clock.slot_at(emulated(now)).max(slot);
        let delay = Nanos(now.0.saturating_sub(expected.0));
        let late = match delay > self.options.late_after {
            true => next.0 - self.clock.slot_at(emulated(expected)).clamp(slot, next).0,
            false => 0,
        };
        let punctuality = &mut self.punctuality;
        punctuality.slots += next.0 - slot.0;
        punctuality.late_slots += late;
        if late > 0 {
            punctuality.worst = punctuality.worst.max(delay);
        }
        next
    }

    /// Counts a packet from another core that arrived after its slot.
    #[inline]
    pub(crate) fn late_packets(&mut self, count: u64) {
        self.punctuality.late_packets += count;
    }

    /// How well the shard kept time so far.
    pub fn punctuality(&self) -> Punctuality {
        Punctuality { skipped_slots: self.clock.slots_in(self.pauses.total()), ..self.punctuality }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_wire::BitRate;

    /// Slots of 1 us.
    const CLOCK: SlotClock = SlotClock { slot_bytes: 1_250, rate: BitRate(10_000_000_000) };

    /// Runs slots from `first` on, each as soon as it is due, until `end` in us. The clock advances by 100 ns per look, and
    /// `stop` is the time and the length of an interruption.
    fn run(pacer: &mut Pacer, end: u64, stop: (u64, u64)) -> Slot {
        let (mut time, mut slot, mut stop) = (0, Slot(0), Some(stop));
        while time < end * 1_000 {
            if let Some((at, length)) = stop.filter(|(at, _)| time >= at * 1_000) {
                (time, stop) = (time + length * 1_000, None);
                debug_assert!(at < end);
            }
            if time >= pacer.due(slot).0 {
                pacer.start(slot, Nanos(time));
                slot = slot + 1;
            }
            time += 100;
        }
        slot
    }

    #[test]
    fn a_short_delay_is_caught_up_slot_by_slot() {
        let mut pacer = Pacer::new(CLOCK, PaceOptions::default(), Pauses::default());
        let slot = run(&mut pacer, 20_000, (1_000, 5_000));
        let punctuality = pacer.punctuality();
        assert_eq!(slot, Slot(20_000), "all slots run");
        assert_eq!((punctuality.slots, punctuality.skipped_slots, punctuality.pauses), (20_000, 0, 0));
        // 10 slots run in 1 us, in which one becomes due: the delay of 5,000 us falls below 50 us after 5,500 slots.
        assert!((5_490..=5_510).contains(&punctuality.late_slots), "{punctuality:?}");
        assert!((4_990_000..=5_000_000).contains(&punctuality.worst.0), "{punctuality:?}");
        assert!(!punctuality.is_valid(&PaceOptions::default()));
    }

    #[test]
    fn a_stopped_process_skips_slots_and_counts_them() {
        for (stopped, name) in [(100_000, "100 ms"), (10_000_000, "10 s")] {
            let mut pacer = Pacer::new(CLOCK, PaceOptions::default(), Pauses::default());
            let slot = run(&mut pacer, stopped + 20_000, (1_000, stopped));
            let punctuality = pacer.punctuality();
            assert_eq!(punctuality.pauses, 1, "{name}");
            assert_eq!(punctuality.late_slots, 1, "{name}: the slots after the pause are on time");
            assert!(punctuality.skipped_slots.abs_diff(stopped) <= 1, "{name}: {punctuality:?}");
            assert_eq!(
                slot.0 + punctuality.skipped_slots,
                stopped + 20_000,
                "{name}: nothing is silently left out"
            );
            assert!(!punctuality.is_valid(&PaceOptions::default()), "{name}");
        }
    }

    #[test]
    fn shards_share_a_pause_and_stay_aligned() {
        let pauses = Pauses::default();
        let [mut one, mut two] = [(); 2].map(|()| Pacer::new(CLOCK, PaceOptions::default(), pauses.clone()));
        // Both were stopped at 100 us; one had run slot 99, the other was three slots behind.
        one.start(Slot(100), Nanos::from_micros(50_100));
        assert_eq!(two.due(Slot(100)), Nanos::from_micros(50_100));
        two.start(Slot(97), Nanos::from_micros(50_101));
        assert_eq!(pauses.total(), Nanos::from_micros(50_000), "the second shard catches up");
        assert_eq!((one.punctuality().pauses, two.punctuality().pauses), (1, 0));
    }

    #[test]
    fn an_empty_network_is_late_only_if_nobody_looks_for_packets() {
        let mut pacer = Pacer::new(CLOCK, PaceOptions::default(), Pauses::default());
        let micros = Nanos::from_micros;
        assert_eq!(pacer.resume(Slot(10), micros(1_010), micros(1_030)), Slot(1_030));
        assert_eq!((pacer.punctuality().slots, pacer.punctuality().late_slots), (1_020, 0));
        assert_eq!(pacer.resume(Slot(1_030), micros(2_000), micros(2_300)), Slot(2_300));
        assert_eq!((pacer.punctuality().late_slots, pacer.punctuality().worst), (300, micros(300)));
    }

    #[test]
    fn invalid_options_are_named() {
        let share = PaceOptions { max_late_share: 1.5, ..PaceOptions::default() };
        assert_eq!(share.check().unwrap_err().to_string(), "the share of late slots is 1.5: expected 0 to 1");
        let catch_up = PaceOptions { max_catch_up: Nanos(1), ..PaceOptions::default() };
        assert!(catch_up.check().unwrap_err().to_string().contains("expected at least 50"));
        assert_eq!(PaceOptions::default().check(), Ok(()));
    }
}
