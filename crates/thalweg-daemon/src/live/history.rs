//! The past ten minutes of links and flows, one entry per second.
//!
//! Entries are in the time of this machine's clock, also if the network is emulated, because that is what a viewer waits for.

use std::collections::{BTreeMap, VecDeque};

use thalweg_wire::{FlowKey, Timestamp};

/// Number of seconds that are kept.
const SECONDS: usize = 600;

/// Maximum number of link directions in the history.
pub const MAX_LINKS: usize = 16_384;

/// Maximum number of flows in the history: the fastest, as long as they are.
pub const MAX_FLOWS: usize = 1_024;

/// The past ten minutes.
#[derive(Debug, Default)]
pub struct History {
    links: BTreeMap<String, LinkSeries>,
    flows: BTreeMap<FlowKey, Series<f32>>,
    /// The current second since 1970.
    second: u64,
}

/// The mean and the greatest load of a link direction in each second, in thousandths.
#[derive(Debug)]
struct LinkSeries {
    mean: Series<i16>,
    max: Series<i16>,
    /// Sum, number and greatest of the readings in the current second.
    current: (u32, u16, i16),
}

/// Values of the latest seconds, the latest last.
#[derive(Debug)]
struct Series<T> {
    values: VecDeque<T>,
    /// The second after that of the last value.
    end: u64,
}

impl<T: Copy> Series<T> {
    fn new() -> Series<T> {
        Series { values: VecDeque::new(), end: 0 }
    }

    /// Adds the value of a second. Seconds without one since the last are `unknown`.
    fn push(&mut self, second: u64, value: T, unknown: T) {
        let gap =
            if self.values.is_empty() { 0 } else { second.saturating_sub(self.end).min(SECONDS as u64) };
        for value in (0..gap).map(|_| unknown).chain([value]) {
            if self.values.len() == SECONDS {
                self.values.pop_front();
            }
            self.values.push_back(value);
        }
        self.end = second + 1;
    }

    /// Returns the values up to `end`, exclusive; those without one are `None`.
    fn until(&self, end: u64, known: impl Fn(T) -> Option<f32>) -> Vec<Option<f32>> {
        let missing = end.saturating_sub(self.end).min(SECONDS as u64) as usize;
        let values = self.values.iter().map(|&value| known(value)).chain((0..missing).map(|_| None));
        let count = self.values.len() + missing;
        values.skip(count.saturating_sub(SECONDS)).collect()
    }
}

impl History {
    /// Notes the loads of links at a time, in thousandths; negative ones are unknown.
    pub fn note_links<'a>(&mut self, now: Timestamp, loads: impl Iterator<Item = (&'a str, i16)>) {
        self.advance(now);
        for (link, load) in loads.filter(|&(_, load)| load >= 0) {
            if !self.links.contains_key(link) && self.links.len() < MAX_LINKS {
                self.links.insert(link.to_owned(), LinkSeries::new());
            }
            if let Some(LinkSeries { current: (sum, count, max), .. }) = self.links.get_mut(link) {
                (*sum, *count, *max) = (*sum + u32::from(load.unsigned_abs()), *count + 1, load.max(*max));
            }
        }
    }

    /// Notes the rates of flows in bits per second at a time, the fastest first.
    pub fn note_flows(&mut self, now: Timestamp, rates: impl Iterator<Item = (FlowKey, f32)>) {
        let second = second_of(now);
        // Flows that have not been among the fastest for the longest make room.
        let oldest = second.saturating_sub(SECONDS as u64);
        self.flows.retain(|_, series| series.end > oldest);
        for (key, rate) in rates {
            if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&key) {
                let idle = self.flows.iter().filter(|(_, series)| series.end + 2 < second);
                let Some(idlest) = idle.min_by_key(|(_, series)| series.end).map(|(key, _)| *key) else {
                    break;
                };
                self.flows.remove(&idlest);
            }
            self.flows.entry(key).or_insert_with(Series::new).push(second, rate, f32::NAN);
        }
    }

    /// Returns the end of the last complete second.
    pub fn end(&self) -> Timestamp {
        Timestamp(self.second * 1_000_000_000)
    }

    /// Returns the mean and the greatest utilisation of a link direction in each second, and the end of the last one; `None` if it has none.
    pub fn link(&self, link: &str) -> Option<(Timestamp, [Vec<Option<f32>>; 2])> {
        let LinkSeries { mean, max, .. } = self.links.get(link)?;
        let known = |load: i16| (load >= 0).then(|| f32::from(load) / 1_000.0);
        Some((
            Timestamp(self.second * 1_000_000_000),
            [mean, max].map(|series| series.until(self.second, known)),
        ))
    }

    /// Returns the rate of a flow at each second, and the end of the last one; `None` if it has none.
    pub fn flow(&self, key: &FlowKey) -> Option<(Timestamp, Vec<Option<f32>>)> {
        let series = self.flows.get(key)?;
        let end = self.second.max(series.end);
        Some((Timestamp(end * 1_000_000_000), series.until(end, |rate| (!rate.is_nan()).then_some(rate))))
    }

    /// Completes the current second if `now` is in another.
    fn advance(&mut self, now: Timestamp) {
        let second = second_of(now);
        if second == self.second {
            return;
        }
        let ended = std::mem::replace(&mut self.second, second);
        let oldest = second.saturating_sub(SECONDS as u64);
        self.links.retain(|_, LinkSeries { mean, max, current }| {
            let (sum, count, greatest) = std::mem::take(current);
            if count > 0 {
                // A mean of loads is a load.
                mean.push(ended, (sum / u32::from(count)) as i16, -1);
                max.push(ended, greatest, -1);
            }
            // Links that were removed.
            mean.end > oldest
        });
    }
}

impl LinkSeries {
    fn new() -> LinkSeries {
        LinkSeries { mean: Series::new(), max: Series::new(), current: (0, 0, 0) }
    }
}

const fn second_of(time: Timestamp) -> u64 {
    time.0 / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(tenths: u64) -> Timestamp {
        Timestamp(1_000 * SECOND + tenths * SECOND / 10)
    }

    #[test]
    fn a_second_has_the_mean_and_the_greatest_of_its_readings() {
        let mut history = History::default();
        for (tenths, load) in [(0, 100), (3, 300), (9, 200), (10, 900)] {
            history.note_links(at(tenths), [("a:p0:out", load)].into_iter());
        }
        let (end, [mean, max]) = history.link("a:p0:out").unwrap();
        assert_eq!((end, mean, max), (at(10), vec![Some(0.2)], vec![Some(0.3)]));
        assert!(history.link("b:p0:out").is_none());
    }

    #[test]
    fn seconds_without_a_reading_are_unknown() {
        let mut history = History::default();
        for (tenths, load) in [(0, 100), (10, -1), (20, 300), (30, -1), (40, -1)] {
            history.note_links(at(tenths), [("a:p0:out", load)].into_iter());
        }
        let (_, [mean, _]) = history.link("a:p0:out").unwrap();
        assert_eq!(mean, [Some(0.1), None, Some(0.3), None]);
    }

    #[test]
    fn ten_minutes_are_kept_and_removed_links_are_forgotten() {
        let mut history = History::default();
        history.note_links(at(0), [("gone", 5)].into_iter());
        for tenths in (0..7_000).step_by(10) {
            history.note_links(at(tenths), [("a", (tenths / 10) as i16)].into_iter());
        }
        let (_, [mean, _]) = history.link("a").unwrap();
        assert_eq!(mean.len(), SECONDS);
        assert_eq!(mean.last(), Some(&Some(0.698)));
        assert!(history.link("gone").is_none());
    }

    #[test]
    fn a_new_flow_takes_the_place_of_one_that_is_no_longer_fast() {
        let key = |port: usize| format!("tcp 10.0.0.1:{port} > 10.0.0.2:80").parse::<FlowKey>().unwrap();
        let mut history = History::default();
        let flows = |from: usize| (from..from + MAX_FLOWS).map(|port| (key(port + 1), 1e9_f32));
        history.note_flows(at(0), flows(0));
        history.note_flows(at(10), flows(10));
        assert!(history.flow(&key(MAX_FLOWS + 5)).is_none(), "all others were fast a second ago");
        for tenths in [20, 30, 40, 50] {
            history.note_flows(at(tenths), flows(10));
        }
        assert!(history.flow(&key(5)).is_none());
        let (_, rates) = history.flow(&key(MAX_FLOWS + 5)).unwrap();
        assert_eq!(rates.last(), Some(&Some(1e9)));
    }
}
