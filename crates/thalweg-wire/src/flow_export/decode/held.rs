//! Data sets that arrived before their template, held for a limited time within a memory limit.

use std::collections::VecDeque;

use super::domain::DomainKey;
use super::plan::Header;
use crate::time::{Nanos, Timestamp};

/// The memory that a held set takes beside its bytes, rounded. It bounds the number of small sets.
const OVERHEAD: usize = 256;

/// A held data set.
#[derive(Debug)]
pub(super) struct HeldSet {
    pub(super) domain: DomainKey,
    pub(super) template_id: u16,
    pub(super) received: Timestamp,
    pub(super) header: Header,
    /// The offset in its message.
    pub(super) offset: usize,
    pub(super) bytes: Box<[u8]>,
}

impl HeldSet {
    /// The bytes that it counts for the limits.
    fn size(&self) -> usize {
        self.bytes.len() + OVERHEAD
    }
}

/// The held sets of a session.
#[derive(Debug, Default)]
pub(super) struct HeldSets {
    sets: VecDeque<HeldSet>,
    bytes: usize,
}

/// The memory limit of all sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) used: usize,
    pub(super) limit: usize,
}

impl HeldSets {
    /// Returns the bytes held for one domain.
    pub(super) fn bytes_of(&self, domain: DomainKey) -> usize {
        self.sets.iter().filter(|set| set.domain == domain).map(HeldSet::size).sum()
    }

    /// Holds a set. Drops older sets of the session if the set exceeds the session's limit, and drops the set itself if
    /// it exceeds the limit of all sessions. Dropped sets are passed to `dropped`.
    pub(super) fn hold(
        &mut self,
        set: HeldSet,
        max_bytes: usize,
        budget: &mut Budget,
        mut dropped: impl FnMut(HeldSet),
    ) {
        let size = set.size();
        while self.bytes + size > max_bytes
            && let Some(oldest) = self.sets.pop_front()
        {
            self.bytes -= oldest.size();
            budget.used -= oldest.size();
            dropped(oldest);
        }
        if size > max_bytes || budget.used + size > budget.limit {
            return dropped(set);
        }
        self.bytes += size;
        budget.used += size;
        self.sets.push_back(set);
    }

    /// Removes the sets for a template, oldest first.
    pub(super) fn release(
        &mut self,
        domain: DomainKey,
        template_id: u16,
        budget: &mut Budget,
    ) -> Vec<HeldSet> {
        self.remove(budget, |set| set.domain == domain && set.template_id == template_id)
    }

    /// Removes the sets that were held for longer than `timeout`.
    pub(super) fn expire(&mut self, now: Timestamp, timeout: Nanos, budget: &mut Budget) -> Vec<HeldSet> {
        self.remove(budget, |set| now.since(set.received) > timeout)
    }

    /// Removes all sets.
    pub(super) fn clear(&mut self, budget: &mut Budget) -> Vec<HeldSet> {
        self.remove(budget, |_| true)
    }

    fn remove(&mut self, budget: &mut Budget, is_removed: impl Fn(&HeldSet) -> bool) -> Vec<HeldSet> {
        if !self.sets.iter().any(&is_removed) {
            return Vec::new();
        }
        let (removed, kept): (Vec<HeldSet>, Vec<HeldSet>) =
            std::mem::take(&mut self.sets).into_iter().partition(is_removed);
        self.sets = kept.into();
        let size: usize = removed.iter().map(HeldSet::size).sum();
        self.bytes -= size;
        budget.used -= size;
        removed
    }
}
