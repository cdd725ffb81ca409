//! How exporters say what share of packets they count: options records, before or after the flows.

use std::collections::BTreeMap;

use super::field::Field;
use super::matrix::big_endian;

/// Selectors, and interfaces, of one domain that are remembered; those beyond are not. Routers have fewer.
const REMEMBERED: usize = 4096;

/// What is known of the sampling of one observation domain.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampling {
    /// Of the whole domain.
    domain: Option<u32>,
    by_selector: BTreeMap<u64, u32>,
    by_interface: BTreeMap<u32, u32>,
}

/// What one options record says of sampling and of the exporter's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Options {
    /// `samplingInterval` (34), `samplerRandomInterval` (50).
    interval: Option<u64>,
    /// `samplingPacketInterval` (305): packets taken in a row.
    packet_interval: Option<u64>,
    /// `samplingPacketSpace` (306): packets left out after them.
    packet_space: Option<u64>,
    /// `samplingSize` (309) out of `samplingPopulation` (310).
    size: Option<u64>,
    population: Option<u64>,
    /// `samplingProbability` (311).
    probability: Option<f64>,
    /// `selectorId` (302), `samplerId` (48).
    selector: Option<u64>,
    /// The interface that the record is about.
    interface: Option<u32>,
    /// `systemInitTimeMilliseconds` (160).
    pub(super) system_init_ms: Option<i64>,
}

impl Options {
    /// Takes note of one field of the record.
    pub(super) fn field(&mut self, field: Field, bytes: &[u8]) {
        if field.enterprise != 0 || bytes.is_empty() || bytes.len() > 8 {
            return;
        }
        let number = big_endian(bytes);
        match field.id {
            34 | 50 => self.interval = Some(number).filter(|&n| n > 0).or(self.interval),
            305 => self.packet_interval = Some(number),
            306 => self.packet_space = Some(number),
            309 => self.size = Some(number),
            310 => self.population = Some(number),
            311 => {
                self.probability = match bytes.len() {
                    4 => Some(f64::from(f32::from_bits(number as u32))),
                    8 => Some(f64::from_bits(number)),
                    _ => None,
                }
            }
            48 | 302 => self.selector = Some(number),
            10 | 14 => self.interface = u32::try_from(number).ok().or(self.interface),
            160 => self.system_init_ms = i64::try_from(number).ok().filter(|&ms| ms > 0),
            _ => {}
        }
    }

    /// One packet in so many is counted, to the nearest whole number.
    fn sampling_interval(&self) -> Option<u32> {
        let whole = |ratio: f64| {
            (ratio.is_finite() && ratio >= 1.0).then(|| ratio.round().min(f64::from(u32::MAX)) as u32)
        };
        let ratio = |all: u64, taken: u64| (taken > 0).then(|| all as f64 / taken as f64).and_then(whole);
        match *self {
            Options { interval: Some(interval), .. } => ratio(interval, 1),
            Options { packet_interval: Some(taken), packet_space: Some(left), .. } => {
                ratio(taken.saturating_add(left), taken)
            }
            // Exporters that kept the meaning of element 34, which this one replaces in IANA's registry.
            Options { packet_interval: Some(interval), .. } => ratio(interval, 1),
            Options { size: Some(taken), population: Some(all), .. } => ratio(all, taken),
            Options { probability: Some(probability), .. } => whole(1.0 / probability),
            _ => None,
        }
    }
}

impl Sampling {
    /// Takes note of an options record.
    pub(super) fn learn(&mut self, options: &Options) {
        let Some(interval) = options.sampling_interval() else { return };
        match (options.selector, options.interface) {
            (_, Some(interface)) => remember(&mut self.by_interface, interface, interval),
            (Some(selector), None) => remember(&mut self.by_selector, selector, interval),
            (None, None) => self.domain = Some(interval),
        }
    }

    /// What holds for records that name neither selector nor interface; `otherwise` where nothing is known.
    pub(super) fn interval(&self, otherwise: u32) -> u32 {
        let only = || (self.by_selector.len() == 1).then(|| *self.by_selector.values().next().expect("one"));
        self.domain.or_else(only).unwrap_or(otherwise)
    }

    /// Whether anything is known of single selectors or interfaces.
    pub(super) fn is_divided(&self) -> bool {
        !self.by_selector.is_empty() || !self.by_interface.is_empty()
    }

    /// What is known of a record's selector, or else of its interfaces, the first of them that something is known of.
    pub(super) fn of(&self, selector: Option<u64>, interfaces: [u32; 2]) -> Option<u32> {
        let by_interface = || interfaces.iter().find_map(|interface| self.by_interface.get(interface));
        selector.and_then(|selector| self.by_selector.get(&selector)).or_else(by_interface).copied()
    }
}

fn remember<K: Ord>(known: &mut BTreeMap<K, u32>, key: K, interval: u32) {
    if known.len() < REMEMBERED || known.contains_key(&key) {
        known.insert(key, interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(fields: &[(u16, &[u8])]) -> Options {
        let mut options = Options::default();
        for &(id, bytes) in fields {
            options.field(Field { enterprise: 0, id, length: bytes.len() as u16 }, bytes);
        }
        options
    }

    #[test]
    fn every_way_to_say_one_in_so_many_is_understood() {
        type Said<'a> = &'a [(u16, &'a [u8])];
        let cases: [(Said<'_>, Option<u32>); 10] = [
            (&[(34, &[0, 0, 3, 232])], Some(1000)),
            (&[(34, &[0]), (50, &[100])], Some(100)),
            (&[(305, &[1]), (306, &[0x03, 0xE7])], Some(1000)),
            (&[(305, &[3]), (306, &[7])], Some(3)),
            (&[(305, &[64])], Some(64)),
            (&[(309, &[2]), (310, &[200])], Some(100)),
            (&[(311, &0.01f64.to_be_bytes())], Some(100)),
            (&[(311, &0.0f64.to_be_bytes())], None),
            (&[(305, &[0]), (306, &[9])], None),
            (&[(40, &[1])], None),
        ];
        for (fields, expected) in cases {
            assert_eq!(options(fields).sampling_interval(), expected, "{fields:?}");
        }
    }

    #[test]
    fn a_record_has_the_interval_of_its_selector_then_of_its_interface_then_of_the_domain() {
        let mut sampling = Sampling::default();
        assert_eq!(sampling.interval(7), 7);
        sampling.learn(&options(&[(302, &[5]), (34, &[50])]));
        assert_eq!(sampling.interval(7), 50, "the only selector there is");
        sampling.learn(&options(&[(302, &[6]), (34, &[60])]));
        assert_eq!(sampling.interval(7), 7, "which one, nobody says");
        sampling.learn(&options(&[(10, &[3]), (34, &[30])]));
        sampling.learn(&options(&[(34, &[20])]));
        assert_eq!(sampling.interval(7), 20);
        assert_eq!(sampling.of(Some(5), [3, 0]), Some(50));
        assert_eq!(sampling.of(Some(9), [3, 0]), Some(30));
        assert_eq!(sampling.of(None, [1, 3]), Some(30));
        assert_eq!(sampling.of(None, [1, 2]), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut sampling = Sampling::default();
        for selector in 0u32..10_000 {
            sampling.learn(&options(&[(302, &selector.to_be_bytes()), (34, &[50])]));
        }
        assert_eq!(sampling.by_selector.len(), REMEMBERED);
    }
}
