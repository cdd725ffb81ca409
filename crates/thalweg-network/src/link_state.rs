//! Which links of a topology are up at the moment. A link fails and is repaired in both directions at once.

use thiserror::Error;

use crate::identity::LinkId;
use crate::topology::Topology;

/// One bit a link. All are up at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Bit `i % 64` of word `i / 64` is set if link `i` is down.
    down: Box<[u64]>,
    links: usize,
    failed: usize,
}

/// There is no such link.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("there is no link {link}: there are {links}, counted from l0")]
pub struct UnknownLink {
    /// The number given.
    pub link: LinkId,
    /// Number of links.
    pub links: usize,
}

impl LinkState {
    /// All links of a topology, up.
    pub fn new(topology: &Topology) -> Self {
        let links = topology.links().len();
        LinkState { down: vec![0; links.div_ceil(64)].into(), links, failed: 0 }
    }

    /// Number of links, up or down.
    pub fn links(&self) -> usize {
        self.links
    }

    /// Whether a link is up. One that does not exist is not.
    #[inline]
    pub fn is_up(&self, link: LinkId) -> bool {
        link.index() < self.links && self.down[link.index() / 64] >> (link.index() % 64) & 1 == 0
    }

    /// Whether all links are.
    #[inline]
    pub fn all_up(&self) -> bool {
        self.failed == 0
    }

    /// Takes a link down; `true` if it was up.
    ///
    /// # Errors
    /// If there is no such link.
    pub fn fail(&mut self, link: LinkId) -> Result<bool, UnknownLink> {
        let was_up = self.flip(link, true)?;
        self.failed += usize::from(was_up);
        Ok(was_up)
    }

    /// Brings a link up; `true` if it was down.
    ///
    /// # Errors
    /// If there is no such link.
    pub fn repair(&mut self, link: LinkId) -> Result<bool, UnknownLink> {
        let was_down = self.flip(link, false)?;
        self.failed -= usize::from(was_down);
        Ok(was_down)
    }

    /// The links that are down, in order.
    pub fn failed(&self) -> impl Iterator<Item = LinkId> + '_ {
        self.down.iter().zip(0u32..).flat_map(|(&word, index)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| LinkId(64 * index + bit))
        })
    }

    /// Sets whether a link is down; `true` if that is news.
    fn flip(&mut self, link: LinkId, down: bool) -> Result<bool, UnknownLink> {
        if link.index() >= self.links {
            return Err(UnknownLink { link, links: self.links });
        }
        let is_news = self.is_up(link) == down;
        self.down[link.index() / 64] ^= u64::from(is_news) << (link.index() % 64);
        Ok(is_news)
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
        fn it_is_the_set_of_links_that_failed_and_were_not_repaired(
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
    fn a_link_that_does_not_exist_is_not_up_and_cannot_fail() {
        let topology = fat_tree(2, Tiers::default()).unwrap();
        let mut state = LinkState::new(&topology);
        let beyond = LinkId(topology.links().len() as u32);
        assert!(!state.is_up(beyond));
        let error = state.fail(beyond).unwrap_err();
        assert_eq!(error.to_string(), "there is no link l6: there are 6, counted from l0");
        assert_eq!(state.repair(beyond), Err(error));
        assert!(state.all_up());
    }
}
