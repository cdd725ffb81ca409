//! Which flows are on which link: a list for each link, threaded through an array that has room for every flow.

use bytemuck::{Pod, Zeroable};

use crate::memory::{LargeArray, MemoryError};

/// The neighbours of an element in its list, each one more than its number; zero for none.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
struct Thread {
    previous: u32,
    next: u32,
}

/// The lists of all links. A track is in two at most, that of its input and that of its output.
#[derive(Debug)]
pub(super) struct Members {
    /// By track, and within it by side: 0 for the input, 1 for the output.
    threads: LargeArray<Thread>,
    /// By link, the first element, one more than its number.
    heads: Vec<u32>,
    counts: Vec<u32>,
}

impl Members {
    /// Empty lists for so many tracks.
    pub(super) fn new(tracks: usize) -> Result<Members, MemoryError> {
        Ok(Members { threads: LargeArray::zeroed(2 * tracks)?, heads: Vec::new(), counts: Vec::new() })
    }

    /// Empty lists for so many links; nothing is in any list.
    pub(super) fn lay(&mut self, links: usize) {
        (self.heads, self.counts) = (vec![0; links], vec![0; links]);
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.threads.bytes().0
    }

    /// How many tracks are in a link's list.
    pub(super) fn count(&self, link: usize) -> u32 {
        self.counts[link]
    }

    /// The tracks in a link's list, the newest first.
    pub(super) fn of(&self, link: usize) -> impl Iterator<Item = u32> + '_ {
        let element = |number: u32| number.checked_sub(1);
        std::iter::successors(element(self.heads[link]), move |&at| element(self.threads[at as usize].next))
            .map(|at| at / 2)
    }

    /// Puts a side of a track, which is in no list, into a link's.
    pub(super) fn join(&mut self, link: usize, track: u32, side: usize) {
        let element = 2 * track + side as u32;
        let next = std::mem::replace(&mut self.heads[link], element + 1);
        self.threads[element as usize] = Thread { previous: 0, next };
        if let Some(next) = next.checked_sub(1) {
            self.threads[next as usize].previous = element + 1;
        }
        self.counts[link] += 1;
    }

    /// Takes a side of a track out of a link's list.
    pub(super) fn leave(&mut self, link: usize, track: u32, side: usize) {
        let Thread { previous, next } = self.threads[(2 * track) as usize + side];
        match previous.checked_sub(1) {
            Some(previous) => self.threads[previous as usize].next = next,
            None => self.heads[link] = next,
        }
        if let Some(next) = next.checked_sub(1) {
            self.threads[next as usize].previous = previous;
        }
        self.counts[link] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_are_sets(steps in prop::collection::vec((0usize..3, 0u32..8, 0usize..2), 0..200)) {
            let mut members = Members::new(8).unwrap();
            members.lay(3);
            let mut sets = [(); 3].map(|()| BTreeSet::new());
            for (link, track, side) in steps {
                let held = (0..3).find(|&link| sets[link].contains(&(track, side)));
                match held {
                    Some(link) => {
                        members.leave(link, track, side);
                        sets[link].remove(&(track, side));
                    }
                    None => {
                        members.join(link, track, side);
                        sets[link].insert((track, side));
                    }
                }
                for (link, set) in sets.iter().enumerate() {
                    let mut listed: Vec<u32> = members.of(link).collect();
                    listed.sort_unstable();
                    prop_assert_eq!(listed, set.iter().map(|&(track, _)| track).collect::<Vec<_>>());
                    prop_assert_eq!(members.count(link) as usize, set.len());
                }
            }
        }
    }
}
