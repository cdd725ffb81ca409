//! Work on the active redirections in parts, so that none of it takes long, however many there are.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use super::message::RedirectionId;
use super::redirection::Redirection;

/// Where the next part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn(RedirectionId);

impl Turn {
    pub(super) fn new() -> Turn {
        Turn(RedirectionId(0))
    }

    /// Visits the next `count` redirections by number, each at most once. After the last comes the first.
    pub(super) fn visit(
        &mut self,
        active: &mut BTreeMap<RedirectionId, Redirection>,
        count: usize,
        mut visit: impl FnMut(RedirectionId, &mut Redirection),
    ) {
        // A part that contains all of them is in the order of their numbers.
        let start = if active.len() <= count { RedirectionId(0) } else { self.0 };
        let mut left = count;
        for range in [(Included(start), Unbounded), (Unbounded, Excluded(start))] {
            for (id, it) in active.range_mut(range).take(left) {
                visit(*id, it);
                left -= 1;
                self.0 = RedirectionId(id.0 + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_wire::Timestamp;

    use super::super::message::Reason;
    use super::super::redirection::RedirectionReport;
    use super::*;

    #[test]
    fn parts_follow_each_other_and_begin_again() {
        let key = "tcp 10.0.0.1:1 > 10.0.0.2:2".parse().unwrap();
        let redirection = |id| {
            let report = RedirectionReport::new(RedirectionId(id), key, Reason::Pinned, Timestamp(0));
            (RedirectionId(id), Redirection::new(report, Timestamp(0)))
        };
        let mut active: BTreeMap<_, _> = [1, 2, 5, 7].map(redirection).into();
        let mut turn = Turn::new();
        let mut part = |active: &mut BTreeMap<_, _>, count| {
            let mut ids = Vec::new();
            turn.visit(active, count, |id, _| ids.push(id.0));
            ids
        };
        assert_eq!(part(&mut active, 3), [1, 2, 5]);
        assert_eq!(part(&mut active, 3), [7, 1, 2]);
        active.remove(&RedirectionId(5));
        assert_eq!(part(&mut active, 1), [7], "the next one is gone");
        assert_eq!(part(&mut active, 2), [1, 2]);
        assert_eq!(part(&mut active, 3), [1, 2, 7], "all of them");
        assert_eq!(part(&mut active, 9), [1, 2, 7]);
        assert_eq!(part(&mut BTreeMap::new(), 9), [0; 0]);
    }
}
