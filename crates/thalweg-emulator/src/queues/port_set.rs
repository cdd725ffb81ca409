//! A set of ports as a bitmap. Iteration costs as much as there are members.

use thalweg_network::PortIndex;

/// Some ports of a router, or endpoints of a rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSet {
    words: Box<[u64]>,
}

impl PortSet {
    /// The empty set of ports below `ports`.
    pub fn new(ports: usize) -> Self {
        PortSet { words: vec![0; ports.div_ceil(64)].into_boxed_slice() }
    }

    /// Adds a port.
    #[inline(always)]
    pub fn insert(&mut self, port: PortIndex) {
        self.words[port.index() / 64] |= 1 << (port.index() % 64);
    }

    /// Removes a port if `condition` holds, without a branch, because it is unpredictable.
    #[inline(always)]
    pub fn remove_if(&mut self, port: PortIndex, condition: bool) {
        self.words[port.index() / 64] &= !(u64::from(condition) << (port.index() % 64));
    }

    /// Whether the set contains a port.
    #[inline(always)]
    pub fn contains(&self, port: PortIndex) -> bool {
        self.words[port.index() / 64] >> (port.index() % 64) & 1 != 0
    }

    /// A word of the bitmap: bit b of word w is port 64 w + b. To iterate over a set that changes meanwhile, take a
    /// word at a time.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        self.words[index]
    }

    /// The number of words.
    #[inline(always)]
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// The members, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = PortIndex> {
        self.words.iter().enumerate().flat_map(|(index, &word)| Members { word, base: index * 64 })
    }
}

/// The members of one word of a [`PortSet`].
pub struct Members {
    word: u64,
    base: usize,
}

impl Members {
    /// The members in `word`, whose bit 0 is port `base`.
    #[inline(always)]
    pub fn of(word: u64, base: usize) -> Self {
        Members { word, base }
    }
}

impl Iterator for Members {
    type Item = PortIndex;

    #[inline(always)]
    fn next(&mut self) -> Option<PortIndex> {
        if self.word == 0 {
            return None;
        }
        let bit = self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        Some(PortIndex((self.base + bit) as u16))
    }
}
