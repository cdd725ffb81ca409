//! Which of several daemons is the master of the switches.
//!
//! **Heartbeats are in the switches.** The master requests the role of master from every switch again and again, each time
//! with a newer [`Generation`]. A standby asks every switch for the latest one. While it advances anywhere, the master
//! lives. So daemons need no connection to each other, and a master that lost all switches cannot hold its role.
//!
//! **A standby claims the role** once the generation has not advanced for [`ElectionOptions::timeout`], plus a part of
//! it that is larger the lower its priority. It claims earlier if the master has released its role, or if no switch ever
//! had a master and all switches say so. Time without answers of switches does not count: a standby that was stopped or
//! cut off observes anew.
//!
//! **A master loses the role** when a switch knows a newer generation than its own, or when no switch has confirmed its
//! heartbeat for the timeout. Then it is a standby like any other: it does not claim the role back while another
//! master lives. A switch refuses its writes from the moment of the other's claim.
//!
//! Values only: the caller sends and passes the time.

use thalweg_wire::{Nanos, Timestamp};

use super::generation::{Generation, Identity};

/// Heartbeats per timeout.
const BEATS_PER_TIMEOUT: u64 = 8;

/// Options of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElectionOptions {
    pub(crate) identity: Identity,
    /// Time without a heartbeat after which the master counts as dead.
    pub(crate) timeout: Nanos,
}

/// The state of a daemon in the election.
#[derive(Debug)]
pub(crate) struct Election {
    options: ElectionOptions,
    standing: Standing,
    /// The latest generation at any switch.
    latest: Option<Generation>,
    /// Whether the latest generation has advanced during the observation: another master lives.
    sees_master: bool,
    /// When the latest generation last advanced, or when the observation began; `None` before.
    advanced: Option<Timestamp>,
    /// When a switch last answered.
    heard: Timestamp,
    /// The latest generation that this daemon used as master.
    last_own: Option<Generation>,
    next_beat: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Standby,
    /// With this generation, which a switch last confirmed at this time.
    Master {
        own: Generation,
        confirmed: Timestamp,
    },
}

/// What to send to every switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// Ask for the latest generation.
    Ask,
    /// Request the role of master.
    Claim(Generation),
}

/// A change of the standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// This daemon claims the role.
    Claimed {
        /// Whether another daemon may have been master since this one was.
        after_other: bool,
    },
    /// This daemon has lost the role to another.
    LostToOther,
    /// No switch has confirmed the role in time.
    LostTouch,
}

impl Election {
    pub(crate) fn new(options: ElectionOptions) -> Election {
        Election {
            options,
            standing: Standing::Standby,
            latest: None,
            sees_master: false,
            advanced: None,
            heard: Timestamp(0),
            last_own: None,
            next_beat: Timestamp(0),
        }
    }

    /// Returns whether this daemon is the master, as far as it knows.
    pub(crate) fn is_master(&self) -> bool {
        matches!(self.standing, Standing::Master { .. })
    }

    /// Returns whether another master has lived since this daemon began to observe.
    pub(crate) fn sees_master(&self) -> bool {
        !self.is_master() && self.sees_master
    }

    /// Returns what to send to a switch that has just connected.
    pub(crate) fn greeting(&self) -> Beat {
        match self.standing {
            Standing::Standby => Beat::Ask,
            Standing::Master { own, .. } => Beat::Claim(own),
        }
    }

    /// Returns whether a switch that reports this generation, and the role of master, has accepted the present claim.
    pub(crate) fn is_granted_by(&self, reported: Option<Generation>) -> bool {
        match self.standing {
            Standing::Master { own, .. } => reported.is_some_and(|reported| own.is_same_claim(reported)),
            Standing::Standby => false,
        }
    }

    /// Takes the generation that a switch reports. Returns a change of the standing.
    pub(crate) fn reported(&mut self, reported: Option<Generation>, now: Timestamp) -> Option<Change> {
        self.advanced.get_or_insert(now);
        self.heard = now;
        let reported = reported?;
        if self.latest.is_none_or(|latest| reported.is_newer_than(latest)) {
            self.sees_master = self.latest.is_some() && !reported.is_released();
            (self.latest, self.advanced) = (Some(reported), Some(now));
        }
        match self.standing {
            Standing::Master { own, .. } if own.is_same_claim(reported) => {
                self.standing = Standing::Master { own, confirmed: now };
                None
            }
            Standing::Master { own, .. } if reported.is_newer_than(own) => self.lose(now),
            _ => None,
        }
    }

    /// A switch without roles has answered.
    pub(crate) fn confirmed(&mut self, now: Timestamp) {
        self.advanced.get_or_insert(now);
        self.heard = now;
        if let Standing::Master { confirmed, .. } = &mut self.standing {
            *confirmed = now;
        }
    }

    /// A switch refused the role or a write, because another daemon is master there. Returns a change of the standing.
    pub(crate) fn refused(&mut self, now: Timestamp) -> Option<Change> {
        match self.standing {
            Standing::Master { .. } => self.lose(now),
            Standing::Standby => None,
        }
    }

    fn lose(&mut self, now: Timestamp) -> Option<Change> {
        (self.standing, self.advanced, self.sees_master) = (Standing::Standby, Some(now), true);
        Some(Change::LostToOther)
    }

    /// Advances time. `all_without_master`: whether all switches are connected, and no one has ever had a master.
    /// Returns what to send to every switch, and a change of the standing.
    pub(crate) fn step(
        &mut self,
        all_without_master: bool,
        now: Timestamp,
    ) -> (Option<Beat>, Option<Change>) {
        let change = match self.standing {
            Standing::Standby => self.claim_if_due(all_without_master, now),
            Standing::Master { confirmed, .. } if now.since(confirmed) >= self.options.timeout => {
                (self.standing, self.advanced, self.sees_master) = (Standing::Standby, None, false);
                Some(Change::LostTouch)
            }
            Standing::Master { .. } => None,
        };
        if change.is_none() && now < self.next_beat {
            return (None, None);
        }
        self.next_beat = now + Nanos(self.options.timeout.0 / BEATS_PER_TIMEOUT);
        (Some(self.beat(change.is_some())), change)
    }

    fn claim_if_due(&mut self, all_without_master: bool, now: Timestamp) -> Option<Change> {
        if now.since(self.heard).0 > self.options.timeout.0 / 2 {
            (self.advanced, self.sees_master) = (None, false);
        }
        let silence = now.since(self.advanced?);
        let is_due = match self.latest {
            None if all_without_master => silence >= self.skew(),
            Some(latest) if latest.is_released() => silence >= self.skew(),
            _ => silence >= self.options.timeout.saturating_add(self.skew()),
        };
        is_due.then(|| {
            let is_other = |latest| self.last_own.is_none_or(|own| !own.is_same_claim(latest));
            let after_other = self.latest.is_some_and(is_other);
            let own = Generation::claim(self.latest, self.options.identity);
            (self.standing, self.last_own) = (Standing::Master { own, confirmed: now }, Some(own));
            Change::Claimed { after_other }
        })
    }

    /// Returns the additional wait of lower priorities.
    fn skew(&self) -> Nanos {
        let missing = u64::from(u8::MAX - self.options.identity.priority);
        Nanos(self.options.timeout.0 / u64::from(u8::MAX) * missing)
    }

    /// Returns what to send now.
    fn beat(&mut self, is_new: bool) -> Beat {
        match &mut self.standing {
            Standing::Standby => Beat::Ask,
            Standing::Master { own, .. } => {
                if !is_new {
                    *own = own.next();
                    self.last_own = Some(*own);
                }
                Beat::Claim(*own)
            }
        }
    }

    /// Returns the generation that releases the role, if this daemon has it.
    pub(crate) fn release(&mut self) -> Option<Generation> {
        match std::mem::replace(&mut self.standing, Standing::Standby) {
            Standing::Master { own, .. } => Some(own.released()),
            Standing::Standby => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const TIMEOUT: Nanos = Nanos(2_000 * MS);
    const BEAT: u64 = 250;

    fn at(ms: u64) -> Timestamp {
        Timestamp(ms * MS)
    }

    fn daemon(priority: u8) -> Election {
        let identity = Identity { priority, instance: u16::from(priority) };
        Election::new(ElectionOptions { identity, timeout: TIMEOUT })
    }

    /// A switch that several daemons control.
    #[derive(Default)]
    struct Switch(Option<Generation>);

    impl Switch {
        /// Lets a daemon take its next step with this switch only. Returns the changes of its standing.
        fn step(&mut self, daemon: &mut Election, now: Timestamp) -> Vec<Change> {
            let all_without_master = self.0.is_none() && daemon.advanced.is_some();
            let (beat, change) = daemon.step(all_without_master, now);
            let answer = beat.and_then(|beat| self.answer(daemon, beat, now));
            [change, answer].into_iter().flatten().collect()
        }

        fn answer(&mut self, daemon: &mut Election, beat: Beat, now: Timestamp) -> Option<Change> {
            match (beat, self.0) {
                (Beat::Claim(claim), Some(latest)) if latest.is_newer_than(claim) => daemon.refused(now),
                (Beat::Claim(claim), _) => {
                    self.0 = Some(claim);
                    daemon.reported(Some(claim), now)
                }
                (Beat::Ask, latest) => daemon.reported(latest, now),
            }
        }

        /// Runs daemons from one time to another. Returns who was master at the end of each step.
        fn run(&mut self, daemons: &mut [&mut Election], from: u64, until: u64) -> Vec<Vec<usize>> {
            let step = |now: u64| {
                for daemon in daemons.iter_mut() {
                    self.step(daemon, at(now));
                }
                let masters = daemons.iter().enumerate().filter(|(_, daemon)| daemon.is_master());
                masters.map(|(index, _)| index).collect()
            };
            (from..until).step_by(5).map(step).collect()
        }
    }

    #[test]
    fn a_single_daemon_is_master_at_once() {
        let (mut switch, mut only) = (Switch::default(), daemon(255));
        assert!(switch.step(&mut only, at(0)).is_empty());
        assert_eq!(switch.step(&mut only, at(5)), [Change::Claimed { after_other: false }]);
        assert!(switch.run(&mut [&mut only], 10, 20_000).iter().all(|masters| masters == &[0]));
    }

    #[test]
    fn the_higher_priority_becomes_master_and_stays_it() {
        let (mut switch, mut low, mut high) = (Switch::default(), daemon(100), daemon(200));
        let masters = switch.run(&mut [&mut low, &mut high], 0, 20_000);
        assert!(masters.iter().all(|masters| masters.is_empty() || masters == &[1]));
        assert!(high.is_master());
        // A daemon of higher priority that comes later does not take over from one that lives.
        let mut highest = daemon(255);
        let masters = switch.run(&mut [&mut low, &mut high, &mut highest], 20_000, 60_000);
        assert!(masters.iter().all(|masters| masters == &[1]));
    }

    #[test]
    fn a_standby_takes_over_from_a_silent_master_and_keeps_the_role() {
        let (mut switch, mut one, mut two) = (Switch::default(), daemon(255), daemon(254));
        switch.run(&mut [&mut one, &mut two], 0, 5_000);
        assert!(one.is_master() && !two.is_master());
        assert!(two.sees_master() && !one.sees_master());
        // The first is stopped for 10 s.
        let masters = switch.run(&mut [&mut two], 5_000, 15_000);
        let taken = masters.iter().position(|masters| !masters.is_empty()).unwrap() as u64 * 5;
        assert!((TIMEOUT.0 / MS - BEAT..TIMEOUT.0 / MS + 2 * BEAT).contains(&taken), "{taken} ms");
        // It returns, and loses the role with its first step.
        assert!(one.is_master());
        let masters = switch.run(&mut [&mut one, &mut two], 15_000, 60_000);
        assert!(masters.iter().all(|masters| masters == &[1]));
    }

    #[test]
    fn a_master_that_returns_just_after_the_claim_is_refused() {
        let (mut switch, mut one, mut two) = (Switch::default(), daemon(255), daemon(254));
        switch.run(&mut [&mut one, &mut two], 0, 5_000);
        // Its clock has not advanced, and its next heartbeat is due.
        let mut now = 5_000;
        while !two.is_master() {
            switch.step(&mut two, at(now));
            now += 5;
        }
        let frozen = Beat::Claim(one.last_own.unwrap().next());
        assert_eq!(switch.answer(&mut one, frozen, at(5_000)), Some(Change::LostToOther));
        assert!(two.is_master() && !one.is_master());
    }

    #[test]
    fn a_generation_that_does_not_advance_is_no_master() {
        let (mut switch, mut one, mut two) = (Switch::default(), daemon(255), daemon(254));
        switch.run(&mut [&mut one], 0, 5_000);
        switch.run(&mut [&mut two], 5_000, 6_000);
        assert!(!two.is_master() && !two.sees_master());
    }

    #[test]
    fn a_stopped_standby_observes_anew() {
        let (mut switch, mut one, mut two) = (Switch::default(), daemon(255), daemon(254));
        switch.run(&mut [&mut one, &mut two], 0, 5_000);
        switch.run(&mut [&mut one], 5_000, 15_000);
        let masters = switch.run(&mut [&mut two, &mut one], 15_000, 30_000);
        assert!(masters.iter().all(|masters| masters == &[1]));
    }

    #[test]
    fn a_released_role_is_taken_without_waiting() {
        let (mut switch, mut one, mut two) = (Switch::default(), daemon(255), daemon(254));
        switch.run(&mut [&mut one, &mut two], 0, 5_000);
        switch.0 = one.release();
        assert_eq!(one.release(), None);
        let masters = switch.run(&mut [&mut two], 5_000, 5_600);
        assert_eq!(masters.last(), Some(&vec![0]));
    }

    #[test]
    fn a_master_without_answers_loses_the_role_and_claims_it_again_later() {
        let (mut switch, mut only) = (Switch::default(), daemon(255));
        switch.run(&mut [&mut only], 0, 1_000);
        let mut changes = Vec::new();
        for now in (1_000..4_000).step_by(5) {
            changes.extend(only.step(false, at(now)).1);
        }
        assert_eq!(changes, [Change::LostTouch]);
        let changes: Vec<Change> =
            (4_000..8_000).step_by(5).flat_map(|now| switch.step(&mut only, at(now))).collect();
        assert_eq!(changes, [Change::Claimed { after_other: false }]);
    }

    #[test]
    fn of_two_simultaneous_claims_one_survives() {
        let (mut switch, mut low, mut high) = (Switch::default(), daemon(200), daemon(201));
        for daemon in [&mut low, &mut high] {
            daemon.reported(None, at(0));
            assert!(daemon.step(true, at(500)).1.is_some());
        }
        let masters = switch.run(&mut [&mut low, &mut high], 505, 20_000);
        assert!(masters[100..].iter().all(|masters| masters == &[1]), "{:?}", masters.last());
    }
}
