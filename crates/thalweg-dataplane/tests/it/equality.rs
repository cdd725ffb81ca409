//! The state of the kernel is that of user space with the same seed, bit for bit.

use thalweg_dataplane::kernel_sketches::Entry;
use thalweg_dataplane::spec::PrefixBits;
use thalweg_dataplane::{KernelKey, Reader, ReaderOptions, SketchKind, SketchSpec, Specification, Window};
use thalweg_dataplane::{Reason, WindowSketch};
use thalweg_measure::tasks::{FlowBytes, KeyDefinition};
use thalweg_sketch::nitro::RowWise;
use thalweg_sketch::{
    Batch, CountMin, CountSketch, Counter, Hasher, HyperLogLog, KAry, Key, Mode, Nitro, Probability,
    RowSketch, Shape, Sums, UnivMon, UnivMonShape,
};
use thalweg_wire::{Packet, PacketNotes};

use crate::frames::{mixed, parse};
use crate::harness::{create_or_skip, run};

const SEED: u64 = 0x1234_5678_9ABC_DEF0;

/// Frames as user space sees them. A frame without a packet counts as a packet of weight zero: the kernel does not know
/// that it has none before it samples it.
struct Frames<'a> {
    packets: &'a [Option<Packet>],
    key: KeyDefinition,
    counts_bytes: bool,
}

impl Batch for Frames<'_> {
    type Key = FlowBytes;

    fn len(&self) -> usize {
        self.packets.len()
    }

    fn key(&self, number: usize) -> FlowBytes {
        self.packets[number]
            .map_or(FlowBytes::from_bytes(&[0; 4]).unwrap(), |packet| self.key.of(&packet.key))
    }

    fn weight(&self, number: usize) -> i64 {
        self.packets[number]
            .map_or(0, |packet| if self.counts_bytes { i64::from(packet.ip_length) } else { 1 })
    }

    fn sums(&self, from: usize, to: usize) -> Sums {
        Sums::of((from..to).map(|number| self.weight(number)))
    }
}

/// Counts frames in user space.
fn counted<S: RowWise<FlowBytes>>(sketch: S, spec: &SketchSpec, packets: &[Option<Packet>]) -> S {
    let mut nitro = Nitro::new(sketch, Mode::Fixed(spec.probability), spec.seed);
    let key = definition(spec.key);
    nitro.update(&Frames { packets, key, counts_bytes: spec.counts_bytes });
    nitro.into_sketch()
}

fn definition(key: KernelKey) -> KeyDefinition {
    let text = match key {
        KernelKey::FiveTuple => "5tuple".to_owned(),
        KernelKey::Service => "dst+port".to_owned(),
        KernelKey::Source(PrefixBits::ALL) => "src".to_owned(),
        KernelKey::Destination(PrefixBits::ALL) => "dst".to_owned(),
        KernelKey::Source(bits) => format!("src/{}/{}", bits.v4, bits.v6),
        KernelKey::Destination(bits) => format!("dst/{}/{}", bits.v4, bits.v6),
    };
    text.parse().unwrap()
}

const KEYS: [KernelKey; 6] = [
    KernelKey::FiveTuple,
    KernelKey::SOURCE,
    KernelKey::DESTINATION,
    KernelKey::Service,
    KernelKey::Source(PrefixBits { v4: 31, v6: 127 }),
    KernelKey::Destination(PrefixBits { v4: 24, v6: 56 }),
];

/// Counts frames in the kernel. Returns the window, and the frames.
fn window(specification: Specification, entry: Entry, frames: &[Vec<u8>]) -> Option<(Window, Vec<Vec<u8>>)> {
    let kernel = create_or_skip(specification)?;
    let frames = run(&kernel, entry, frames);
    let mut reader = Reader::<FlowBytes>::new(kernel, &ReaderOptions::default());
    Some((reader.end_window(0).window, frames))
}

fn packets(frames: &[Vec<u8>]) -> Vec<Option<Packet>> {
    frames.iter().map(|frame| parse(frame)).collect()
}

fn rows_equal<C: Counter, S: RowSketch<Counter = C> + PartialEq + std::fmt::Debug>(
    ours: &S,
    theirs: &S,
    what: &str,
) {
    let differ = ours.rows().cells().iter().zip(theirs.rows().cells()).filter(|(a, b)| a != b).count();
    assert_eq!(differ, 0, "{what}: counters differ");
    assert!(ours.rows().cells().iter().any(|cell| cell.get() != 0), "{what}: nothing was counted");
}

fn check(specification: &Specification, window: &Window, packets: &[Option<Packet>]) {
    let hasher = specification.hasher;
    for (number, spec) in specification.sketches.iter().enumerate() {
        let what = format!("{} of {:?} at p = {}", spec.kind, spec.key, spec.probability);
        match window.sketch::<FlowBytes>(number).unwrap() {
            WindowSketch::CountMin32(sketch) => {
                rows_equal(&counted(CountMin::new(sketch.shape(), hasher), spec, packets), &sketch, &what);
            }
            WindowSketch::CountSketch32(sketch) => {
                let theirs = counted(CountSketch::new(sketch.shape(), hasher), spec, packets);
                rows_equal(&theirs, &sketch, &what);
                if spec.probability == Probability::ONE {
                    assert_eq!(theirs, sketch, "{what}");
                }
            }
            WindowSketch::CountSketch64(sketch) => {
                let theirs = counted(CountSketch::new(sketch.shape(), hasher), spec, packets);
                rows_equal(&theirs, &sketch, &what);
                if spec.probability == Probability::ONE {
                    assert_eq!(theirs, sketch, "{what}");
                }
            }
            WindowSketch::KAry32(sketch) => {
                rows_equal(&counted(KAry::new(sketch.shape(), hasher), spec, packets), &sketch, &what);
            }
            WindowSketch::UnivMon32(sketch) => {
                let theirs = counted(UnivMon::<FlowBytes, i32>::new(sketch.shape(), hasher), spec, packets);
                for level in 0..sketch.shape().levels() {
                    assert_eq!(sketch.cells(level), theirs.cells(level), "{what}, level {level}");
                }
                let is_sampled = spec.probability != Probability::ONE;
                assert!(is_sampled || sketch.cells(1).iter().any(|&cell| cell != 0), "{what}: level 1");
            }
            WindowSketch::HyperLogLog(sketch) => {
                let mut theirs = HyperLogLog::new(sketch.precision(), hasher).unwrap();
                for packet in packets.iter().flatten() {
                    theirs.add(hasher.digest(definition(spec.key).of(&packet.key).as_bytes()));
                }
                assert_eq!(sketch, theirs, "{what}");
            }
            other => panic!("unexpected {other:?}"),
        }
    }
}

fn kinds() -> Vec<SketchKind> {
    let shape = Shape::new(5, 256).unwrap();
    vec![
        SketchKind::CountMin(shape),
        SketchKind::CountSketch(shape),
        SketchKind::KAry(shape),
        SketchKind::UnivMon(UnivMonShape::new(6, Shape::new(5, 64).unwrap(), 8).unwrap()),
    ]
}

fn specification(log2: u8, key: KernelKey) -> Specification {
    let probability = Probability::new(log2).unwrap();
    let sketch = |(number, kind)| SketchSpec {
        probability,
        seed: SEED.wrapping_add(number as u64),
        ..SketchSpec::new(kind, key)
    };
    Specification::new(kinds().into_iter().enumerate().map(sketch).collect(), Hasher::new(SEED))
}

/// Counts the frames of all kinds with all sketches, and compares.
fn compare(log2: u8, entry: Entry) {
    let frames = mixed(4_000, 7 + u64::from(log2));
    for key in KEYS {
        let specification = specification(log2, key);
        let Some((window, frames)) = window(specification.clone(), entry, &frames) else { return };
        let packets = packets(&frames);
        assert_eq!(window.totals().packets, frames.len() as u64);
        assert_eq!(window.totals().bytes, frames.iter().map(|frame| frame.len() as u64).sum::<u64>());
        check(&specification, &window, &packets);
        if log2 == 0 {
            let counted = packets.iter().flatten().count() as u64;
            assert_eq!(window.ip_packets(0), counted);
            let bytes: u64 = packets.iter().flatten().map(|packet| u64::from(packet.ip_length)).sum();
            assert_eq!(window.ip_bytes(0), bytes);
            assert_eq!(window.uncounted(0).value, (frames.len() as u64 - counted) as f64);
            let beyond = |packet: &&Packet| packet.notes.contains(PacketNotes::LENGTH_BEYOND_FRAME);
            assert_eq!(window.totals().beyond, packets.iter().flatten().filter(beyond).count() as u64);
            let keyless = frames.iter().zip(&packets).filter(|(_, packet)| packet.is_none());
            let keyless_bytes: u64 = keyless.map(|(frame, _)| frame.len() as u64).sum();
            let by_reason = Reason::ALL.iter().map(|&reason| window.totals().uncounted_bytes(reason));
            assert_eq!(by_reason.sum::<u64>(), keyless_bytes);
        }
    }
}

#[test]
fn without_sampling_the_state_is_that_of_user_space() {
    compare(0, Entry::Xdp);
}

#[test]
fn frames_in_several_buffers_are_counted_alike() {
    compare(0, Entry::XdpMultiBuffer);
}

/// A frame of several pages: its headers are in the first buffer, or its extension headers go on beyond the copied bytes.
fn jumbo(extension_words: usize) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x86, 0xDD, 0x60, 0, 0, 0, 0x22, 0x60, 60, 64]);
    frame.extend([0x20; 32]);
    frame.extend([17, extension_words as u8]);
    frame.resize(frame.len() + 8 * (extension_words + 1) - 2, 0);
    frame.extend([0, 7, 0, 9, 0, 0, 0, 0]);
    frame.resize(8_800 + 54, 1);
    frame
}

#[test]
fn jumbo_frames_are_counted_by_their_first_bytes() {
    let mut specification = specification(0, KernelKey::FiveTuple);
    specification.sketches.truncate(1);
    let Some(kernel) = create_or_skip(specification.clone()) else { return };
    let frames = [jumbo(0), jumbo(3), jumbo(80)];
    let frames = run(&kernel, Entry::XdpMultiBuffer, &frames);
    let window = Reader::<FlowBytes>::new(kernel, &ReaderOptions::default()).end_window(0).window;
    check(&specification, &window, &packets(&frames));
    assert_eq!(window.ip_bytes(0), 3 * 8_840);
    assert_eq!(window.totals().portless, 1);
}

#[test]
fn at_tc_the_state_is_the_same() {
    compare(0, Entry::Ingress);
}

#[test]
fn the_same_pairs_are_sampled_as_in_user_space() {
    for log2 in [1, 4, 6, 10] {
        compare(log2, Entry::Xdp);
    }
}

#[test]
fn the_same_pairs_are_sampled_at_tc() {
    compare(6, Entry::Ingress);
}

#[test]
fn bytes_and_distinct_keys_are_counted_as_in_user_space() {
    let frames = mixed(4_000, 99);
    for log2 in [0, 4] {
        let probability = Probability::new(log2).unwrap();
        let of_bytes = SketchSpec {
            counts_bytes: true,
            probability,
            seed: SEED,
            ..SketchSpec::new(SketchKind::CountSketch(Shape::new(5, 1024).unwrap()), KernelKey::FiveTuple)
        };
        let distinct = SketchSpec::new(SketchKind::HyperLogLog { precision: 10 }, KernelKey::SOURCE);
        let long = SketchSpec {
            probability,
            seed: 5,
            ..SketchSpec::new(SketchKind::CountSketch(Shape::new(8, 1 << 16).unwrap()), KernelKey::Service)
        };
        let specification = Specification::new(vec![of_bytes, distinct, long], Hasher::new(3));
        let Some((window, frames)) = window(specification.clone(), Entry::Xdp, &frames) else { return };
        check(&specification, &window, &packets(&frames));
    }
}
