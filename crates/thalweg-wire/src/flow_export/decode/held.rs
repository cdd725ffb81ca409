//! Data that came before their template: kept for a while, within a bound, in order of arrival.

use std::collections::VecDeque;

use super::domain::DomainKey;
use super::plan::Header;
use crate::time::{Nanos, Timestamp};

/// What a held set takes beside its bytes, to the nearest round number: many small sets are bounded too.
const OVERHEAD: usize = 256;

/// One set of data.
#[derive(Debug)]
pub(super) struct HeldSet {
    pub(super) domain: DomainKey,
    pub(super) template_id: u16,
    pub(super) received: Timestamp,
    pub(super) header: Header,
    /// Where it lay in its message.
    pub(super) offset: usize,
    pub(super) bytes: Box<[u8]>,
}

impl HeldSet {
    /// Bytes that it counts for.
    fn size(&self) -> usize {
        self.bytes.len() + OVERHEAD
    }
}

/// The sets that one session has waiting.
#[derive(Debug, Default)]
pub(super) struct Held {
    sets: VecDeque<HeldSet>,
    bytes: usize,
}

/// What all sessions may hold together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) used: usize,
    pub(super) limit: usize,
}

impl Held {
    /// Bytes held for one domain.
    pub(super) fn bytes_of(&self, domain: DomainKey) -> usize {
        self.sets.iter().filter(|set| set.domain == domain).map(HeldSet::size).sum()
    }

    /// Keeps a set. What does not fit within the session's bound makes older sets go, which are handed to `dropped`;
    /// what does not fit within that of all sessions goes itself.
    pub(super) fn hold(
        &mut self,
        set: HeldSet,
        most: usize,
        budget: &mut Budget,
        mut dropped: impl FnMut(HeldSet),
    ) {
        let size = set.size();
        while self.bytes + size > most
            && let Some(oldest) = self.sets.pop_front()
        {
            self.bytes -= oldest.size();
            budget.used -= oldest.size();
            dropped(oldest);
        }
        if size > most || budget.used + size > budget.limit {
            return dropped(set);
        }
        self.bytes += size;
        budget.used += size;
        self.sets.push_back(set);
    }

    /// Takes out the sets that waited for a template, oldest first.
    pub(super) fn release(
        &mut self,
        domain: DomainKey,
        template_id: u16,
        budget: &mut Budget,
    ) -> Vec<HeldSet> {
        self.take(budget, |set| set.domain == domain && set.template_id == template_id)
    }

    /// Takes out the sets that have waited for longer than `patience`.
    pub(super) fn expire(&mut self, now: Timestamp, patience: Nanos, budget: &mut Budget) -> Vec<HeldSet> {
        self.take(budget, |set| now.since(set.received) > patience)
    }

    /// Takes out all sets.
    pub(super) fn clear(&mut self, budget: &mut Budget) -> Vec<HeldSet> {
        self.take(budget, |_| true)
    }

    fn take(&mut self, budget: &mut Budget, which: impl Fn(&HeldSet) -> bool) -> Vec<HeldSet> {
        if !self.sets.iter().any(&which) {
            return Vec::new();
        }
        let (taken, kept): (Vec<HeldSet>, Vec<HeldSet>) =
            std::mem::take(&mut self.sets).into_iter().partition(which);
        self.sets = kept.into();
        let size: usize = taken.iter().map(HeldSet::size).sum();
        self.bytes -= size;
        budget.used -= size;
        taken
    }
}
