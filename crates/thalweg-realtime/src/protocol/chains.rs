//! Doubly linked lists over the items of a table, in one allocation.

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
    /// The chain of an item, or `NONE`.
    chain: u32,
}

/// A fixed number of chains over the items 0 to n - 1. An item is in at most one chain. Every operation takes
/// constant time.
///
/// Each chain is a ring through a link of its own behind those of the items, so that an item can leave its chain
/// without knowing which.
pub(super) struct Chains {
    links: Box<[Link]>,
    lengths: Box<[u32]>,
    items: u32,
}

impl Chains {
    /// `chains` empty chains over `items` items.
    pub(super) fn new(items: u32, chains: u32) -> Chains {
        let link = |at: u32| match at < items {
            true => Link { previous: NONE, next: NONE, chain: NONE },
            false => Link { previous: at, next: at, chain: at - items },
        };
        let links = (0..items + chains).map(link).collect();
        Chains { links, lengths: vec![0; chains as usize].into(), items }
    }

    /// `chains` chains, of which the first has all items in order.
    pub(super) fn full(items: u32, chains: u32) -> Chains {
        let mut full = Chains::new(items, chains);
        (0..items).for_each(|item| full.push_back(0, item));
        full
    }

    pub(super) fn length(&self, chain: u32) -> u32 {
        self.lengths[chain as usize]
    }

    pub(super) fn is_empty(&self, chain: u32) -> bool {
        self.length(chain) == 0
    }

    /// The chain of an item.
    pub(super) fn chain_of(&self, item: u32) -> Option<u32> {
        Some(self.links[item as usize].chain).filter(|chain| *chain != NONE)
    }

    pub(super) fn first(&self, chain: u32) -> Option<u32> {
        self.item(self.links[(self.items + chain) as usize].next)
    }

    pub(super) fn last(&self, chain: u32) -> Option<u32> {
        self.item(self.links[(self.items + chain) as usize].previous)
    }

    /// The item after `item` in its chain.
    pub(super) fn after(&self, item: u32) -> Option<u32> {
        self.item(self.links[item as usize].next)
    }

    fn item(&self, at: u32) -> Option<u32> {
        Some(at).filter(|at| *at < self.items)
    }

    /// Moves an item from its chain, if any, to the end of `chain`.
    pub(super) fn push_back(&mut self, chain: u32, item: u32) {
        self.remove(item);
        let end = self.items + chain;
        self.link(chain, item, self.links[end as usize].previous, end);
    }

    /// Moves an item from its chain, if any, to the start of `chain`.
    pub(super) fn push_front(&mut self, chain: u32, item: u32) {
        self.remove(item);
        let start = self.items + chain;
        self.link(chain, item, start, self.links[start as usize].next);
    }

    fn link(&mut self, chain: u32, item: u32, previous: u32, next: u32) {
        self.links[item as usize] = Link { previous, next, chain };
        self.links[previous as usize].next = item;
        self.links[next as usize].previous = item;
        self.lengths[chain as usize] += 1;
    }

    /// Takes an item out of its chain, if it is in one.
    pub(super) fn remove(&mut self, item: u32) {
        let Link { previous, next, chain } = self.links[item as usize];
        if chain == NONE {
            return;
        }
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
        self.links[item as usize] = Link { previous: NONE, next: NONE, chain: NONE };
        self.lengths[chain as usize] -= 1;
    }

    /// Takes out the first item of a chain.
    pub(super) fn pop_front(&mut self, chain: u32) -> Option<u32> {
        let item = self.first(chain)?;
        self.remove(item);
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(chains: &Chains, chain: u32) -> Vec<u32> {
        std::iter::successors(chains.first(chain), |item| chains.after(*item)).collect()
    }

    #[test]
    fn items_move_between_chains() {
        let mut chains = Chains::full(4, 2);
        chains.push_back(1, 2);
        chains.push_front(1, 0);
        chains.push_back(1, 0);
        assert_eq!((items(&chains, 0), items(&chains, 1)), (vec![1, 3], vec![2, 0]));
        chains.push_front(0, 3);
        assert_eq!((chains.pop_front(0), chains.last(1), chains.chain_of(3)), (Some(3), Some(0), None));
        chains.remove(3);
        chains.remove(2);
        assert_eq!((chains.length(0), chains.length(1), items(&chains, 1)), (1, 1, vec![0]));
        chains.remove(0);
        assert!(chains.is_empty(1) && chains.first(1).is_none() && chains.last(1).is_none());
    }
}
