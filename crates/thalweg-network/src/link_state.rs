//! The state of links: up or down. A link fails and is repaired in both directions at once.

use thiserror::Error;

use crate::identity::LinkId;
use crate::topology::Topology;

/// One bit per link. Initially all links are up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Bit `i % 64` of word `i / 64` is set if link `i` is down.
    down: Box<[u64]>,
    links: usize,
    failed: usize,
}

/// The link does not exist.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown link {link}: the topology has {links} links, numbered from l0")]
pub struct UnknownLink {
    /// The unknown link.
    pub link: LinkId,
    /// The number of links in the topology.
    pub links: usize,
}

impl LinkState {
    /// Creates a state in which all links of a topology are up.
    pub fn new(topology: &Topology) -> Self {
        let links = topology.links().len();
        LinkState { down: vec![0; links.div_ceil(64)].into(), links, failed: 0 }
    }

    /// The number of links, up or down.
    pub fn links(&self) -> usize {
        self.links
    }

    /// Whether a link is up; `false` if it does not exist.
    #[inline]
    pub fn is_up(&self, link: LinkId) -> bool {
        link.index() < self.links && self.down[link.index() / 64] >> (link.index() % 64) & 1 == 0
    }

    /// Whether all links are up.
    #[inline]
    pub fn all_up(&self) -> bool {
        self.failed == 0
    }

    /// Takes a link down. Returns `true` if it was up.
    ///
    /// # Errors
    /// If the link does not exist.
    pub fn fail(&mut self, link: LinkId) -> Result<bool, UnknownLink> {
        let was_up = self.flip(link, true)?;
        self.failed += usize::from(was_up);
        Ok(was_up)
    }

    /// Brings a link up. Returns `true` if it was down.
    ///
    /// # Errors
    /// If the link does not exist.
    pub fn repair(&mut self, link: LinkId) -> Result<bool, UnknownLink> {
        let was_down = self.flip(link, false)?;
        self.failed -= usize::from(was_down);
        Ok(was_down)
    }

    /// Returns the links that are down, in ascending order.
    pub fn failed(&self) -> impl Iterator<Item = LinkId> + '_ {
        self.down.iter().zip(0u32..).flat_map(|(&word, index)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| LinkId(64 * index + bit))
        })
    }

    /// Sets whether a link is down. Returns `true` if that changed.
    fn flip(&mut self, link: LinkId, down: bool) -> Result<bool, UnknownLink> {
        if link.index() >= self.links {
            return Err(UnknownLink { link, links: self.links });
        }
        let has_changed = self.is_up(link) == down;
        self.down[link.index() / 64] ^= u64::from(has_changed) << (link.index() % 64);
        Ok(has_changed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::topology::shapes::{Tiers, fat_tree};

    proptest! {
        #[test]
        fn failed_links_stay_down_until_they_are_repaired(
            events in prop::collection::vec((0u32..110, any::<bool>()), 0..200),
        ) {
            let topology = fat_tree(6, Tiers::default()).unwrap();
            let mut state = LinkState::new(&topology);
            let mut down = BTreeSet::new();
            for (link, fails) in events {
                let link = LinkId(link);
                prop_assert_eq!(state.is_up(link), !down.contains(&link));
                match fails {
                    true => prop_assert_eq!(state.fail(link), Ok(down.insert(link))),
                    false => prop_assert_eq!(state.repair(link), Ok(down.remove(&link))),
                }
                prop_assert_eq!(state.all_up(), down.is_empty());
                prop_assert_eq!(state.failed().collect::<Vec<_>>(), down.iter().copied().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn an_unknown_link_is_down_and_cannot_fail() {
        let topology = fat_tree(2, Tiers::default()).unwrap();
        let mut state = LinkState::new(&topology);
        let beyond = LinkId(topology.links().len() as u32);
        assert!(!state.is_up(beyond));
        let error = state.fail(beyond).unwrap_err();
        assert_eq!(error.to_string(), "unknown link l6: the topology has 6 links, numbered from l0");
        assert_eq!(state.repair(beyond), Err(error));
        assert!(state.all_up());
    }
}
