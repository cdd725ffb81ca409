//! Numbers observation points: (exporter, observation domain, direction).

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use thalweg_wire::flow_export::Address;

/// Maximum number of points; more indicate an attack or a damaged file. A table of this size takes 100 MB.
pub(crate) const MAX_POINTS: usize = 1 << 20;

/// An observation point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Point {
    pub(crate) exporter: Address,
    pub(crate) observation_domain_id: u32,
    pub(crate) flow_direction: u8,
}

/// Returns the sort key of a point that saw a flow for `seen_us`. The point with the smallest one counts the flow: the one that
/// saw it longest, then the one with the smallest sampling interval, then the first in the order of points.
#[inline]
pub(crate) fn preference(seen_us: i64, sampling_interval: u32, rank: u32) -> (Reverse<i64>, u32, u32) {
    (Reverse(seen_us), sampling_interval, rank)
}

/// All observation points, numbered by first occurrence.
#[derive(Debug, Default)]
pub(crate) struct Points {
    numbers: HashMap<Point, u32>,
    points: Vec<Point>,
}

impl Points {
    /// Returns the number of a point; `None` if there are too many points.
    pub(crate) fn number(&mut self, point: Point) -> Option<u32> {
        if let Some(&number) = self.numbers.get(&point) {
            return Some(number);
        }
        if self.points.len() == MAX_POINTS {
            return None;
        }
        let number = self.points.len() as u32;
        self.numbers.insert(point, number);
        self.points.push(point);
        Some(number)
    }

    /// Returns the number of a point that was numbered before.
    pub(crate) fn find(&self, point: Point) -> Option<u32> {
        self.numbers.get(&point).copied()
    }

    /// Returns the number of points.
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// Returns the number of exporters.
    pub(crate) fn exporters(&self) -> usize {
        self.points.iter().map(|point| point.exporter).collect::<HashSet<_>>().len()
    }

    /// Returns the rank of each number in the order of points: by exporter as text, domain, direction.
    pub(crate) fn ranks(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..self.points.len() as u32).collect();
        numbers.sort_by_cached_key(|&number| {
            let point = self.points[number as usize];
            (point.exporter.to_string(), point.observation_domain_id, point.flow_direction)
        });
        let mut ranks = vec![0; numbers.len()];
        for (rank, &number) in numbers.iter().enumerate() {
            ranks[number as usize] = rank as u32;
        }
        ranks
    }
}

/// Number of slots of a [`PointCache`].
const SLOTS: usize = 1 << 10;

/// A direct-mapped cache of recent points, so that most records need no access to the shared table.
#[derive(Debug)]
pub(crate) struct PointCache(Vec<Option<(Point, u32)>>);

impl PointCache {
    /// Creates an empty cache.
    pub(crate) fn new() -> PointCache {
        PointCache(vec![None; SLOTS])
    }

    /// Returns the number of a point; calls `number` on a miss.
    #[inline]
    pub(crate) fn number<E>(
        &mut self,
        point: Point,
        number: impl FnOnce() -> Result<u32, E>,
    ) -> Result<u32, E> {
        let address = point.exporter.0 as u64 ^ (point.exporter.0 >> 64) as u64;
        let rest = u64::from(point.observation_domain_id) << 8 | u64::from(point.flow_direction);
        let hash = (address ^ rest.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let slot = &mut self.0[hash as usize >> (64 - SLOTS.trailing_zeros())];
        match slot {
            Some((there, number)) if *there == point => Ok(*number),
            _ => {
                let number = number()?;
                *slot = Some((point, number));
                Ok(number)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(exporter: u32, observation_domain_id: u32, flow_direction: u8) -> Point {
        Point { exporter: Address::v4(exporter), observation_domain_id, flow_direction }
    }

    #[test]
    fn observation_points_rank_by_exporter_as_text_then_domain_then_direction() {
        let mut points = Points::default();
        // As text, 10.0.0.10 precedes 10.0.0.9.
        let order = [
            point(0x0A00_0009, 0, 0),
            point(0x0A00_000A, 7, 1),
            point(0x0A00_000A, 7, 0),
            point(0x0A00_000A, 3, 1),
        ];
        for (number, &point) in order.iter().enumerate() {
            assert_eq!(points.number(point), Some(number as u32));
        }
        assert_eq!(points.number(order[2]), Some(2));
        assert_eq!(points.ranks(), [3, 2, 1, 0]);
    }

    #[test]
    fn observation_points_with_the_same_cache_slot_keep_their_numbers() {
        let (mut recent, mut points) = (PointCache::new(), Points::default());
        for round in 0..2 {
            for domain in 0..3000 {
                let number =
                    recent.number(point(1, domain, 0), || points.number(point(1, domain, 0)).ok_or(()));
                assert_eq!(number, Ok(domain), "{round}");
            }
        }
        assert_eq!(points.len(), 3000);
    }
}
