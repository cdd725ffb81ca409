//! Sampling intervals that exporters report in options records, before or after the flows.

use std::collections::BTreeMap;

use super::error::DecodeErrorKind;
use super::field::Field;
use super::matrix::big_endian;
use super::reader::Reader;

/// The maximum number of selectors, and of interfaces, per domain; further ones are ignored. Routers have fewer.
const MAX_ENTRIES: usize = 4096;

/// The maximum number of selectors in a sequence; further ones are ignored. Devices have one or two.
const MAX_SELECTORS: usize = 4;

/// The sampling intervals of an observation domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sampling {
    /// The interval of the whole domain.
    domain: Option<u32>,
    by_selector: BTreeMap<u64, u32>,
    by_interface: BTreeMap<u32, u32>,
    /// The selectors of a selection sequence (RFC 5476 section 6.5.1), in order.
    sequences: BTreeMap<u64, Selectors>,
}

/// The selectors that a record names for its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SelectedBy {
    /// `selectorId`.
    pub(super) selector: Option<u64>,
    /// `selectionSequenceId`.
    pub(super) sequence: Option<u64>,
}

/// The selectors of a sequence, up to [`MAX_SELECTORS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Selectors {
    ids: [u64; MAX_SELECTORS],
    count: usize,
}

/// The sampling and clock values of an options record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Options {
    /// `selectorAlgorithm` (304).
    algorithm: Option<u64>,
    /// `samplingInterval` (34), `samplerRandomInterval` (50).
    interval: Option<u64>,
    /// `samplingPacketInterval` (305): the number of consecutive sampled packets.
    packet_interval: Option<u64>,
    /// `samplingPacketSpace` (306): the number of skipped packets after them.
    packet_space: Option<u64>,
    /// `samplingTimeInterval` (307) and `samplingTimeSpace` (308): sampled and skipped time.
    time_interval: Option<u64>,
    time_space: Option<u64>,
    /// `samplingSize` (309) out of `samplingPopulation` (310).
    size: Option<u64>,
    population: Option<u64>,
    /// `samplingProbability` (311).
    probability: Option<f64>,
    /// `hashOutputRangeMin` (329), `hashOutputRangeMax` (330).
    hash_output: [Option<u64>; 2],
    /// `hashSelectedRangeMin` (331), `hashSelectedRangeMax` (332).
    hash_selected: [Option<u64>; 2],
    /// `selectorId` (302), `samplerId` (48); the last of several.
    selector: Option<u64>,
    /// All selectors of the record.
    selectors: Selectors,
    /// `selectionSequenceId` (301).
    sequence: Option<u64>,
    /// The interface that the record describes.
    interface: Option<u32>,
    /// `systemInitTimeMilliseconds` (160).
    pub(super) system_init_ms: Option<i64>,
}

/// The selection methods of the PSAMP registry of selector algorithms (RFC 5477, section 8.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    /// 1: elements 305 and 306.
    SystematicCount,
    /// 2: elements 307 and 308.
    SystematicTime,
    /// 3: elements 309 and 310.
    RandomOfPopulation,
    /// 4: element 311.
    Probabilistic,
    /// 6 to 8: the share of the hash range that is selected, elements 329 to 332.
    Hash,
}

impl Algorithm {
    /// All of them. Exporters that do not name the algorithm fill the elements of one.
    const ALL: [Algorithm; 5] = [
        Algorithm::RandomOfPopulation,
        Algorithm::SystematicCount,
        Algorithm::Probabilistic,
        Algorithm::SystematicTime,
        Algorithm::Hash,
    ];

    /// Returns the algorithm of a number in the registry; `None` for 5, a filter without an interval, and unknown numbers.
    const fn of(number: u64) -> Option<Algorithm> {
        match number {
            1 => Some(Algorithm::SystematicCount),
            2 => Some(Algorithm::SystematicTime),
            3 => Some(Algorithm::RandomOfPopulation),
            4 => Some(Algorithm::Probabilistic),
            6..=8 => Some(Algorithm::Hash),
            _ => None,
        }
    }

    /// Returns all packets over selected packets, if the record has this algorithm's elements.
    fn ratio(self, options: &Options) -> Option<f64> {
        let cycle = |taken: u64, left: u64| (taken.saturating_add(left) as f64, taken as f64);
        let width = |[from, to]: [Option<u64>; 2]| Some(to?.checked_sub(from?)? as f64 + 1.0);
        let (all, selected) = match self {
            Algorithm::SystematicCount => cycle(options.packet_interval?, options.packet_space?),
            Algorithm::SystematicTime => cycle(options.time_interval?, options.time_space?),
            Algorithm::RandomOfPopulation => (options.population? as f64, options.size? as f64),
            Algorithm::Probabilistic => (1.0, options.probability?),
            Algorithm::Hash => (width(options.hash_output)?, width(options.hash_selected)?),
        };
        (selected > 0.0).then_some(all / selected)
    }
}

impl Options {
    /// Adds a field of the record.
    pub(super) fn field(&mut self, field: Field, bytes: &[u8]) {
        if field.enterprise != 0 || bytes.is_empty() || bytes.len() > 8 {
            return;
        }
        let number = big_endian(bytes);
        match field.id {
            34 | 50 => self.interval = Some(number).filter(|&n| n > 0).or(self.interval),
            304 => self.algorithm = Some(number),
            305 => self.packet_interval = Some(number),
            306 => self.packet_space = Some(number),
            307 => self.time_interval = Some(number),
            308 => self.time_space = Some(number),
            309 => self.size = Some(number),
            310 => self.population = Some(number),
            311 => {
                self.probability = match bytes.len() {
                    4 => Some(f64::from(f32::from_bits(number as u32))),
                    8 => Some(f64::from_bits(number)),
                    _ => None,
                }
            }
            329 | 330 => self.hash_output[usize::from(field.id == 330)] = Some(number),
            331 | 332 => self.hash_selected[usize::from(field.id == 332)] = Some(number),
            48 | 302 => {
                self.selector = Some(number);
                self.selectors.push(number);
            }
            301 => self.sequence = Some(number),
            10 | 14 => self.interface = u32::try_from(number).ok().or(self.interface),
            160 => self.system_init_ms = i64::try_from(number).ok().filter(|&ms| ms > 0),
            _ => {}
        }
    }

    /// Returns N of 1-in-N sampling, rounded to an integer: by the algorithm that the record names, else by the elements
    /// that it has.
    fn sampling_interval(&self) -> Option<u32> {
        let named = self.algorithm.and_then(Algorithm::of).and_then(|algorithm| algorithm.ratio(self));
        let interval = || self.interval.map(|interval| interval as f64);
        let by_elements = || Algorithm::ALL.into_iter().find_map(|algorithm| algorithm.ratio(self));
        // Some exporters use element 305, which replaces element 34, with the meaning of 34.
        let replacement = || self.packet_interval.filter(|_| self.packet_space.is_none()).map(|n| n as f64);
        let ratio = named.or_else(interval).or_else(by_elements).or_else(replacement)?;
        (ratio.is_finite() && ratio >= 1.0).then(|| ratio.round().min(f64::from(u32::MAX)) as u32)
    }
}

impl Sampling {
    /// Stores the interval of an options record, or the selectors of a selection sequence. Returns whether it is new.
    pub(super) fn learn(&mut self, options: &Options) -> bool {
        let Some(interval) = options.sampling_interval() else {
            let Some(sequence) = options.sequence.filter(|_| options.selectors.count > 0) else {
                return false;
            };
            return insert_bounded(&mut self.sequences, sequence, options.selectors);
        };
        match (options.selector, options.interface) {
            (_, Some(interface)) => insert_bounded(&mut self.by_interface, interface, interval),
            (Some(selector), None) => insert_bounded(&mut self.by_selector, selector, interval),
            (None, None) => self.domain.replace(interval) != Some(interval),
        }
    }

    /// Returns the interval for records without selector and interface, or `default` if unknown.
    pub(super) fn interval(&self, default: u32) -> u32 {
        let only = || (self.by_selector.len() == 1).then(|| *self.by_selector.values().next().expect("one"));
        self.domain.or_else(only).unwrap_or(default)
    }

    /// Whether intervals are known per selector or per interface.
    pub(super) fn is_per_source(&self) -> bool {
        !self.by_selector.is_empty() || !self.by_interface.is_empty()
    }

    /// Returns the interval of a record's selector, else of its selection sequence, else of its first interface with a
    /// known interval.
    pub(super) fn interval_of(&self, selected_by: SelectedBy, interfaces: [u32; 2]) -> Option<u32> {
        let by_selector = selected_by.selector.and_then(|selector| self.by_selector.get(&selector).copied());
        let by_sequence = || self.interval_of_sequence(selected_by.sequence?);
        let by_interface =
            || interfaces.iter().find_map(|interface| self.by_interface.get(interface).copied());
        by_selector.or_else(by_sequence).or_else(by_interface)
    }

    /// Returns the product of the intervals of a sequence's selectors; filters have none.
    fn interval_of_sequence(&self, sequence: u64) -> Option<u32> {
        let selectors = self.sequences.get(&sequence)?;
        let known =
            selectors.ids[..selectors.count].iter().filter_map(|id| self.by_selector.get(id).copied());
        known.reduce(u32::saturating_mul)
    }

    /// Appends the intervals for [`SavedSession`](super::SavedSession): u32 of the domain or 0, u32 selectors with u64
    /// and u32 each, u32 interfaces with u32 and u32 each, u32 sequences with u64, u8 selectors and a u64 for each.
    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        into.extend(self.domain.unwrap_or(0).to_be_bytes());
        into.extend((self.by_selector.len() as u32).to_be_bytes());
        for (selector, interval) in &self.by_selector {
            into.extend(selector.to_be_bytes());
            into.extend(interval.to_be_bytes());
        }
        into.extend((self.by_interface.len() as u32).to_be_bytes());
        for (interface, interval) in &self.by_interface {
            into.extend(interface.to_be_bytes());
            into.extend(interval.to_be_bytes());
        }
        into.extend((self.sequences.len() as u32).to_be_bytes());
        for (sequence, selectors) in &self.sequences {
            into.extend(sequence.to_be_bytes());
            into.push(selectors.count as u8);
            selectors.ids[..selectors.count].iter().for_each(|id| into.extend(id.to_be_bytes()));
        }
    }

    /// Decodes what [`Sampling::encode`] appended.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Sampling, DecodeErrorKind> {
        let mut sampling = Sampling { domain: Some(reader.u32()?).filter(|&n| n > 0), ..Sampling::default() };
        for _ in 0..reader.u32()? {
            let (selector, interval) = (reader.u64()?, reader.u32()?);
            insert_bounded(&mut sampling.by_selector, selector, interval);
        }
        for _ in 0..reader.u32()? {
            let (interface, interval) = (reader.u32()?, reader.u32()?);
            insert_bounded(&mut sampling.by_interface, interface, interval);
        }
        for _ in 0..reader.u32()? {
            let (sequence, mut selectors) = (reader.u64()?, Selectors::default());
            for _ in 0..reader.u8()? {
                selectors.push(reader.u64()?);
            }
            insert_bounded(&mut sampling.sequences, sequence, selectors);
        }
        Ok(sampling)
    }
}

impl Selectors {
    fn push(&mut self, id: u64) {
        if self.count < MAX_SELECTORS {
            self.ids[self.count] = id;
            self.count += 1;
        }
    }
}

/// Returns whether the value is new.
fn insert_bounded<K: Ord, V: Copy + PartialEq>(known: &mut BTreeMap<K, V>, key: K, value: V) -> bool {
    let has_room = known.len() < MAX_ENTRIES || known.contains_key(&key);
    has_room && known.insert(key, value) != Some(value)
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
    fn every_encoding_of_the_interval_is_decoded() {
        type Fields<'a> = &'a [(u16, &'a [u8])];
        let cases: [(Fields<'_>, Option<u32>); 19] = [
            // Cisco IOS XR: random, 1 out of 4000, with element 305 too.
            (&[(304, &[3]), (305, &[1]), (309, &[1]), (310, &[0x0F, 0xA0])], Some(4000)),
            (&[(305, &[1]), (309, &[1]), (310, &[0x0F, 0xA0])], Some(4000)),
            (&[(304, &[1]), (305, &[2]), (306, &[18]), (309, &[1]), (310, &[5])], Some(10)),
            (&[(304, &[2]), (307, &[1]), (308, &[99])], Some(100)),
            (&[(304, &[4]), (311, &0.02f32.to_be_bytes()), (34, &[9])], Some(50)),
            (&[(304, &[6]), (329, &[0]), (330, &[255]), (331, &[16]), (332, &[31])], Some(16)),
            (&[(304, &[6]), (329, &[9]), (330, &[1]), (331, &[1]), (332, &[2])], None),
            (&[(304, &[5])], None),
            (&[(304, &[99]), (34, &[7])], Some(7)),
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
    fn selectors_take_precedence_over_interfaces_and_domain() {
        let mut sampling = Sampling::default();
        assert_eq!(sampling.interval(7), 7);
        sampling.learn(&options(&[(302, &[5]), (34, &[50])]));
        assert_eq!(sampling.interval(7), 50, "the only selector");
        sampling.learn(&options(&[(302, &[6]), (34, &[60])]));
        assert_eq!(sampling.interval(7), 7, "the selector is ambiguous");
        sampling.learn(&options(&[(10, &[3]), (34, &[30])]));
        sampling.learn(&options(&[(34, &[20])]));
        assert_eq!(sampling.interval(7), 20);
        let by = |selector| SelectedBy { selector, sequence: None };
        assert_eq!(sampling.interval_of(by(Some(5)), [3, 0]), Some(50));
        assert_eq!(sampling.interval_of(by(Some(9)), [3, 0]), Some(30));
        assert_eq!(sampling.interval_of(by(None), [1, 3]), Some(30));
        assert_eq!(sampling.interval_of(by(None), [1, 2]), None);
    }

    #[test]
    fn a_selection_sequence_has_the_product_of_its_selectors_intervals() {
        let mut sampling = Sampling::default();
        // A filter, and two samplers.
        assert!(sampling.learn(&options(&[(301, &[9]), (138, &[1]), (302, &[4]), (302, &[5]), (302, &[6])])));
        assert!(!sampling.learn(&options(&[(302, &[4]), (304, &[5])])), "a filter has no interval");
        assert!(sampling.learn(&options(&[(302, &[5]), (304, &[1]), (305, &[1]), (306, &[99])])));
        assert!(sampling.learn(&options(&[(302, &[6]), (34, &[2])])));
        assert!(!sampling.learn(&options(&[(302, &[6]), (34, &[2])])), "not new");
        let by = |sequence| SelectedBy { selector: None, sequence: Some(sequence) };
        assert_eq!(sampling.interval_of(by(9), [0, 0]), Some(200));
        assert_eq!(sampling.interval_of(by(8), [0, 0]), None);
        // Statistics of a sequence name no selectors.
        assert!(!sampling.learn(&options(&[(301, &[9]), (318, &[100])])));
        let mut bytes = Vec::new();
        sampling.encode(&mut bytes);
        assert_eq!(Sampling::decode(&mut Reader::new("", &bytes)), Ok(sampling));
    }

    #[test]
    fn the_number_of_selectors_is_bounded() {
        let mut sampling = Sampling::default();
        for selector in 0u32..10_000 {
            sampling.learn(&options(&[(302, &selector.to_be_bytes()), (34, &[50])]));
        }
        assert_eq!(sampling.by_selector.len(), MAX_ENTRIES);
    }
}
