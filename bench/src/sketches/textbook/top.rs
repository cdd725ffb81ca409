//! The largest flows of a sketch, in a heap.

use super::Sketch;
use crate::sketches::keys::Key;
use crate::sketches::truth::KeyMap;

/// At most `capacity` flows with the largest estimates: a binary heap, smallest first, and a map from keys to indices.
#[derive(Clone, Debug)]
pub struct Top {
    capacity: usize,
    heap: Vec<(f64, Key)>,
    places: KeyMap<usize>,
}

impl Top {
    /// Creates an empty heap.
    pub fn new(capacity: usize) -> Top {
        Top { capacity, heap: Vec::with_capacity(capacity), places: KeyMap::default() }
    }

    /// Updates the estimate of a flow. A new flow enters if there is room, or if it is larger than the smallest, which
    /// it replaces.
    pub fn offer(&mut self, key: &Key, estimate: f64) {
        let place = match self.places.get(key) {
            Some(&place) => {
                self.heap[place].0 = estimate;
                place
            }
            None => match self.admit(key, estimate) {
                Some(place) => place,
                None => return,
            },
        };
        let place = self.rise(place);
        self.sink(place);
    }

    /// Returns the index of a new flow, if it enters the heap.
    fn admit(&mut self, key: &Key, estimate: f64) -> Option<usize> {
        let place = if self.heap.len() < self.capacity {
            self.heap.push((estimate, *key));
            self.heap.len() - 1
        } else {
            let smallest = self.heap.first_mut().filter(|(smallest, _)| estimate > *smallest)?;
            let (_, gone) = std::mem::replace(smallest, (estimate, *key));
            self.places.remove(&gone);
            0
        };
        self.places.insert(*key, place);
        Some(place)
    }

    /// Returns the last estimate of a flow, if it is in the heap.
    pub fn get(&self, key: &Key) -> Option<f64> {
        self.places.get(key).map(|place| self.heap[*place].0)
    }

    /// Returns the flows and their estimates, in no particular order.
    pub fn flows(&self) -> impl Iterator<Item = (Key, f64)> {
        self.heap.iter().map(|(estimate, key)| (*key, *estimate))
    }

    /// Moves an entry up until its parent is not larger; returns its index.
    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 && self.heap[place].0 < self.heap[(place - 1) / 2].0 {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        place
    }

    /// Moves an entry down until no child is smaller.
    fn sink(&mut self, mut place: usize) {
        loop {
            let children = (2 * place + 1..2 * place + 3).take_while(|child| *child < self.heap.len());
            let smallest = children.min_by(|a, b| self.heap[*a].0.total_cmp(&self.heap[*b].0));
            let Some(child) = smallest.filter(|child| self.heap[*child].0 < self.heap[place].0) else {
                return;
            };
            self.swap(place, child);
            place = child;
        }
    }

    /// Panics if an entry is smaller than its parent, or the map has a wrong index.
    #[cfg(test)]
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.places.len(), self.heap.len());
        for (place, (estimate, key)) in self.heap.iter().enumerate() {
            assert_eq!(self.places.get(key), Some(&place));
            assert!(place == 0 || self.heap[(place - 1) / 2].0 <= *estimate, "place {place}");
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for place in [one, other] {
            self.places.insert(self.heap[place].1, place);
        }
    }
}

/// A sketch that offers each packet it counts to a [`Top`].
#[derive(Clone, Debug)]
pub struct WithTop<S> {
    sketch: S,
    top: Top,
}

impl<S: Sketch> WithTop<S> {
    /// Wraps an empty sketch.
    pub fn new(sketch: S, capacity: usize) -> WithTop<S> {
        WithTop { sketch, top: Top::new(capacity) }
    }
}

impl<S: Sketch> Sketch for WithTop<S> {
    fn update(&mut self, key: &Key) -> bool {
        let counted = self.sketch.update(key);
        if counted {
            self.top.offer(key, self.sketch.estimate(key));
        }
        counted
    }

    fn estimate(&self, key: &Key) -> f64 {
        self.top.get(key).unwrap_or_else(|| self.sketch.estimate(key))
    }

    fn top(&self) -> Option<Vec<(Key, f64)>> {
        Some(self.top.flows().collect())
    }
}
