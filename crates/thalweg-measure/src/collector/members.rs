//! The flows on each link: for each link a list of chunks, a cache line each, from a pool with room for every flow.
//!
//! Only the first chunk of a list may be partly filled: new elements go there, and its last element replaces a
//! removed one. So a list is read a cache line at a time, and the tracks in a line can be prefetched together.

use bytemuck::{Pod, Zeroable};

use crate::memory::{LargeArray, MemoryError};

/// Elements per chunk.
const CHUNK: usize = 15;

/// The maximum number of link directions: two for each port number.
const MAX_LINKS: usize = 2 << 16;

/// Sides of tracks: twice the number of the track, plus 1 for the output.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Chunk {
    elements: [u32; CHUNK],
    /// One more than the number of the next chunk in the list or in the free list; zero for none.
    next: u32,
}

/// The lists of all links. A track is in at most two, that of its input and that of its output.
#[derive(Debug)]
pub(super) struct Members {
    chunks: LargeArray<Chunk>,
    /// The position of each element: the chunk times 16, plus the index in it.
    positions: LargeArray<u32>,
    /// One more than the number of the first chunk, by link.
    heads: Vec<u32>,
    counts: Vec<u32>,
    /// One more than the number of the first free chunk; chunks from `fresh` on have never been used.
    free: u32,
    fresh: u32,
}

impl Members {
    /// Creates empty lists for this many tracks.
    pub(super) fn new(tracks: usize) -> Result<Members, MemoryError> {
        let elements = 2 * tracks;
        // A partly filled chunk belongs to a link that has an element.
        let chunks = elements / CHUNK + elements.min(MAX_LINKS);
        Ok(Members {
            chunks: LargeArray::zeroed(chunks)?,
            positions: LargeArray::zeroed(elements)?,
            heads: Vec::new(),
            counts: Vec::new(),
            free: 0,
            fresh: 0,
        })
    }

    /// Creates empty lists for this many links; no track may be in a list.
    pub(super) fn set_up(&mut self, links: usize) {
        (self.heads, self.counts) = (vec![0; links], vec![0; links]);
        (self.free, self.fresh) = (0, 0);
    }

    /// Returns the memory if every track is in two lists.
    pub(super) fn bytes(&self) -> u64 {
        let chunks = self.chunks.len().min(self.positions.len() / CHUNK + self.heads.len());
        self.positions.bytes().0 + (chunks * size_of::<Chunk>()) as u64
    }

    /// Returns the number of tracks in a link's list.
    pub(super) fn count(&self, link: usize) -> u32 {
        self.counts[link]
    }

    /// Visits the tracks in a link's list, a few at a time.
    pub(super) fn of(
        &self,
        link: usize,
    ) -> impl Iterator<Item = impl Iterator<Item = u32> + Clone + '_> + '_ {
        let mut left = self.counts[link] as usize;
        let mut at = self.heads[link];
        std::iter::from_fn(move || {
            let chunk = &self.chunks[at.checked_sub(1)? as usize];
            let filled = filled(left);
            (at, left) = (chunk.next, left - filled);
            Some(chunk.elements[..filled].iter().map(|element| element / 2))
        })
    }

    /// Adds a side of a track, which is in no list, to a link's list.
    pub(super) fn join(&mut self, link: usize, track: u32, side: usize) {
        let count = self.counts[link] as usize;
        self.counts[link] += 1;
        if count.is_multiple_of(CHUNK) {
            let taken = self.take();
            self.chunks[taken as usize].next = std::mem::replace(&mut self.heads[link], taken + 1);
        }
        self.put(self.heads[link] - 1, count % CHUNK, 2 * track + side as u32);
    }

    /// Removes a side of a track from a link's list.
    pub(super) fn leave(&mut self, link: usize, track: u32, side: usize) {
        let position = self.positions[2 * track as usize + side];
        let head = self.heads[link] - 1;
        let last = filled(self.counts[link] as usize) - 1;
        self.put(position / 16, position as usize % 16, self.chunks[head as usize].elements[last]);
        self.counts[link] -= 1;
        if last == 0 {
            let first = &mut self.chunks[head as usize];
            self.heads[link] = std::mem::replace(&mut first.next, self.free);
            self.free = head + 1;
        }
    }

    fn put(&mut self, chunk: u32, position: usize, element: u32) {
        self.chunks[chunk as usize].elements[position] = element;
        self.positions[element as usize] = 16 * chunk + position as u32;
    }

    /// Returns a chunk that is in no list.
    fn take(&mut self) -> u32 {
        match self.free.checked_sub(1) {
            Some(chunk) => {
                self.free = self.chunks[chunk as usize].next;
                chunk
            }
            None => {
                self.fresh += 1;
                self.fresh - 1
            }
        }
    }
}

/// The number of elements in the first chunk of a list of `count`.
fn filled(count: usize) -> usize {
    if count == 0 { 0 } else { (count - 1) % CHUNK + 1 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn flow_lists_of_links_match_a_model_of_sets(steps in prop::collection::vec((0usize..3, 0u32..40, 0usize..2), 0..400)) {
            let mut members = Members::new(40).unwrap();
            members.set_up(3);
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
                    let mut listed: Vec<u32> = members.of(link).flatten().collect();
                    listed.sort_unstable();
                    prop_assert_eq!(listed, set.iter().map(|&(track, _)| track).collect::<Vec<_>>());
                    prop_assert_eq!(members.count(link) as usize, set.len());
                }
            }
            // Freed chunks are reused: as many are in use as the lists need.
            let used: usize = sets.iter().map(|set| set.len().div_ceil(CHUNK)).sum();
            let free = std::iter::successors(members.free.checked_sub(1), |&at| {
                members.chunks[at as usize].next.checked_sub(1)
            });
            prop_assert_eq!(members.fresh as usize, used + free.count());
        }
    }
}
