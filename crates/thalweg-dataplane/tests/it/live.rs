//! Sketches of a live interface: attached, beside others, pinned, and at the end of the interface.

use std::time::{Duration, Instant};

use thalweg_dataplane::kernel_sketches::Entry;
use thalweg_dataplane::reader::ReadWindow;
use thalweg_dataplane::{
    Counting, CountingOptions, DataplaneError, Hook, HookChoice, KernelKey, KernelSketches, PinName, Reader,
    ReaderOptions, SketchKind, SketchSpec, Specification,
};
use thalweg_dataplane::{Reason, WindowSketch};
use thalweg_linux::bpf::{Instruction, Link, Program, ProgramKind};
use thalweg_measure::tasks::FlowBytes;
use thalweg_sketch::nitro::RowWise as _;
use thalweg_sketch::{Hasher, LineRate, Probability, RowSketch as _, Shape, UnivMonShape, WithTopK};

use crate::frames::{Numbers, mixed, parse};
use crate::harness::{create_or_skip, create_or_skip_with, run, skip};
use crate::wire::{RECEIVER, Wire};

/// The bytes of a UDP packet from 10.0.0.N, the smaller N the more often, so that N = 0 sends half of all.
fn udp(count: usize) -> Vec<Vec<u8>> {
    let mut numbers = Numbers(5);
    let packet = |_| {
        let source = (numbers.next() | 1 << 60).trailing_zeros() as u8;
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, source, 10, 1, 0, 1]);
        frame.extend([0, 7, 0, 9, 0, 26, 0, 0]);
        frame.resize(60, 0);
        frame
    };
    (0..count).map(packet).collect()
}

fn heavy() -> Specification {
    let shape = Shape::new(5, 1024).unwrap();
    let sketch = SketchSpec::new(SketchKind::CountSketch(shape), KernelKey::SOURCE);
    Specification::new(vec![sketch], Hasher::new(11))
}

fn options(hook: HookChoice, pin: Option<PinName>) -> CountingOptions {
    CountingOptions {
        interface: RECEIVER.to_owned(),
        hook,
        specification: heavy(),
        probabilities: Vec::new(),
        reader: ReaderOptions { keys: vec![8], ..ReaderOptions::default() },
        promiscuous: true,
        pin,
    }
}

fn start(wire: &Wire, options: CountingOptions) -> Option<Counting<FlowBytes>> {
    match wire.namespace.within(|| Counting::start(options)).unwrap() {
        Err(error @ DataplaneError::Privilege) => {
            skip(error);
            None
        }
        counting => Some(counting.unwrap()),
    }
}

/// Polls until `packets` packets were counted, at most two seconds: tcpreplay ends before the last frames arrive.
fn window_of(counting: &mut Counting<FlowBytes>, packets: u64) -> ReadWindow<FlowBytes> {
    let begin = Instant::now();
    while counting.reader().packets() < packets && begin.elapsed() < Duration::from_secs(2) {
        counting.poll(0);
        std::thread::sleep(Duration::from_millis(1));
    }
    counting.end_window(0)
}

/// Returns the sources and their packets, largest first.
fn largest(window: &ReadWindow<FlowBytes>) -> Vec<(u8, i64)> {
    let WindowSketch::CountSketch32(sketch) = window.window.sketch::<FlowBytes>(0).unwrap() else { panic!() };
    let mut ranked = WithTopK::new(sketch, 8);
    for (key, digest) in &window.keys[0] {
        ranked.offer(&[*digest], |_| *key);
    }
    let last_byte = |key: &FlowBytes| thalweg_sketch::Key::as_bytes(key)[3];
    ranked.largest().iter().map(|(key, estimate)| (last_byte(key), estimate.value as i64)).collect()
}

fn sent_by(frames: &[Vec<u8>], source: u8) -> i64 {
    frames.iter().filter(|frame| frame[29] == source).count() as i64
}

#[test]
fn heavy_hitters_of_an_interface_are_found_at_xdp_and_at_tc() {
    let Some(wire) = Wire::create_or_skip() else { return };
    for hook in [HookChoice::Xdp, HookChoice::Tc, HookChoice::Auto] {
        let Some(mut counting) = start(&wire, options(hook, None)) else { return };
        let frames = udp(2_000);
        wire.send(&frames);
        let window = window_of(&mut counting, 2_000);
        assert_eq!(window.window.totals().packets, 2_000, "{hook}");
        assert_eq!(largest(&window)[0], (0, sent_by(&frames, 0)), "{hook}");
        assert_eq!(largest(&window)[1], (1, sent_by(&frames, 1)), "{hook}");
        assert!(counting.attachment().is_attached());
        // The next window begins with nothing.
        assert_eq!(counting.end_window(0).window.totals().packets, 0);
    }
}

#[test]
fn frames_of_all_kinds_pass_an_interface_and_are_counted() {
    let Some(wire) = Wire::create_or_skip() else { return };
    let Some(mut counting) = start(&wire, options(HookChoice::Auto, None)) else { return };
    assert_eq!(counting.attachment().hook(), Hook::Xdp);
    let frames: Vec<Vec<u8>> =
        mixed(3_000, 3).into_iter().filter(|frame| (60..=1514).contains(&frame.len())).collect();
    wire.send(&frames);
    let window = window_of(&mut counting, frames.len() as u64).window;
    let counted = frames.iter().filter(|frame| parse(frame).is_some()).count() as u64;
    assert_eq!(window.totals().packets, frames.len() as u64);
    assert_eq!(window.ip_packets(0), counted);
    let uncounted: u64 = Reason::ALL.iter().map(|&reason| window.totals().uncounted(reason)).sum();
    assert_eq!(uncounted, frames.len() as u64 - counted);
    assert_eq!(window.totals().uncounted(Reason::Fault), 0);
}

/// Attaches another XDP program to the interface.
fn attach_foreign(wire: &Wire) -> Link {
    let specification = heavy();
    let kernel = KernelSketches::create(specification, &[]).unwrap();
    let program = kernel.load(Entry::Xdp).unwrap();
    let attach = || {
        let socket = thalweg_linux::socket::Socket::for_ioctls().unwrap();
        program.attach_xdp(socket.interface_index(RECEIVER).unwrap(), 0).unwrap()
    };
    wire.namespace.within(attach).unwrap()
}

#[test]
fn beside_another_xdp_program_tc_is_used() {
    let Some(wire) = Wire::create_or_skip() else { return };
    let Some(_) = create_or_skip(heavy()) else { return };
    let foreign = attach_foreign(&wire);
    let refused = wire.namespace.within(|| Counting::<FlowBytes>::start(options(HookChoice::Xdp, None)));
    let message = refused.unwrap().unwrap_err().to_string();
    assert!(message.contains("another program is attached"), "{message}");
    let mut counting = start(&wire, options(HookChoice::Auto, None)).unwrap();
    assert_eq!(counting.attachment().hook(), Hook::Tc);
    assert_eq!(counting.attachment().reason(), Some("another XDP program is attached"));
    wire.send(&udp(500));
    assert_eq!(window_of(&mut counting, 500).window.totals().packets, 500);
    drop(counting);
    assert!(foreign.target().unwrap().interface.is_some(), "the other program stays");
}

#[test]
fn at_tc_packets_are_counted_that_another_program_accepts_for_good() {
    let Some(wire) = Wire::create_or_skip() else { return };
    let Some(_) = create_or_skip(heavy()) else { return };
    // `r0 = 0; exit`: TCX_PASS, after which later programs do not run.
    let accept = [(0xb7, 0), (0x95, 0)];
    let accept = accept.map(|(code, immediate)| Instruction { code, immediate, ..Instruction::default() });
    let program = Program::load(ProgramKind::Classifier, "accept", "Apache-2.0", &accept).unwrap();
    let attach = || {
        let socket = thalweg_linux::socket::Socket::for_ioctls().unwrap();
        program.attach_to_ingress(socket.interface_index(RECEIVER).unwrap()).unwrap()
    };
    let foreign = wire.namespace.within(attach).unwrap();
    let mut counting = start(&wire, options(HookChoice::Tc, None)).unwrap();
    wire.send(&udp(300));
    assert_eq!(window_of(&mut counting, 300).window.totals().packets, 300);
    assert!(foreign.target().unwrap().interface.is_some());
}

#[test]
fn a_removed_interface_or_a_detached_program_ends_the_attachment() {
    let Some(wire) = Wire::create_or_skip() else { return };
    let Some(mut counting) = start(&wire, options(HookChoice::Auto, None)) else { return };
    wire.send(&udp(100));
    assert_eq!(window_of(&mut counting, 100).window.totals().packets, 100);
    wire.command("ip", &["link", "del", RECEIVER]);
    assert!(!counting.attachment().is_attached());
    // What was counted can still be read.
    assert_eq!(counting.end_window(0).window.totals().packets, 0);

    let Some(wire) = Wire::create_or_skip() else { return };
    for hook in [HookChoice::Xdp, HookChoice::Tc] {
        let counting = start(&wire, options(hook, None)).unwrap();
        counting.attachment().detach().unwrap();
        assert!(!counting.attachment().is_attached());
    }
}

#[test]
fn pinned_sketches_count_on_without_a_reader() {
    let Some(wire) = Wire::create_or_skip() else { return };
    let name: PinName = format!("test-{}", std::process::id()).parse().unwrap();
    let with_pin = |hook| options(hook, Some(name.clone()));
    for hook in [HookChoice::Xdp, HookChoice::Tc] {
        let Some(mut counting) = start(&wire, with_pin(hook)) else { return };
        assert!(!counting.is_resumed());
        let frames = udp(700);
        wire.send(&frames);
        assert_eq!(window_of(&mut counting, 700).window.totals().packets, 700);
        wire.send(&frames[..200]);
        // A second reader is refused.
        let second = wire.namespace.within(|| Counting::<FlowBytes>::start(with_pin(hook))).unwrap();
        assert!(matches!(second.unwrap_err(), DataplaneError::PinnedInUse { .. }));
        // The reader ends as if it were killed, in the middle of a window.
        drop(counting);
        wire.send(&frames[200..500]);
        let mut counting = start(&wire, with_pin(hook)).unwrap();
        assert!(counting.is_resumed() && counting.attachment().is_attached());
        wire.send(&frames[500..]);
        let window = window_of(&mut counting, 1_400);
        assert_eq!(window.window.totals().packets, 700, "{hook}: the window has all since it began");
        assert_eq!(largest(&window)[0], (0, sent_by(&frames, 0)), "{hook}");
        drop(counting);
        // Other options are refused by name.
        let mut other = with_pin(hook);
        other.specification.sketches[0].key = KernelKey::DESTINATION;
        let elsewhere = if hook == HookChoice::Tc { HookChoice::Xdp } else { HookChoice::Tc };
        for other in [other, with_pin(elsewhere)] {
            let refused = wire.namespace.within(|| Counting::<FlowBytes>::start(other)).unwrap().unwrap_err();
            assert!(matches!(refused, DataplaneError::PinnedDiffers { .. }), "{refused}");
            let message = refused.to_string();
            assert!(message.contains("counters of src") || message.contains("--hook"), "{message}");
        }
        wire.namespace.within(|| name.remove()).unwrap().unwrap();
        assert!(!name.exists() && !name.folder().exists());
        assert!(matches!(name.remove().unwrap_err(), DataplaneError::NotPinned { .. }));
    }
}

#[test]
fn a_slow_reader_knows_how_many_keys_it_missed() {
    let mut specification = heavy();
    specification.log_entries = 64;
    let Some(kernel) = create_or_skip(specification) else { return };
    run(&kernel, Entry::Xdp, &udp(1_000));
    let mut reader = Reader::<FlowBytes>::new(kernel, &ReaderOptions { keys: vec![8], ..Default::default() });
    // Keys that were overwritten before the reader began are nobody's loss; those after it are.
    reader.poll(0);
    let window = reader.end_window(0);
    assert_eq!(window.missed_keys, 1_000 - 64);
    // The largest keys come again and again, so they are found all the same, with exact counters.
    assert_eq!(largest(&window)[0].0, 0);
    assert_eq!(largest(&window)[0].1, sent_by(&udp(1_000), 0));
}

#[test]
fn windows_of_sampled_sketches_have_bounds_that_hold() {
    let univmon = UnivMonShape::new(8, Shape::new(5, 512).unwrap(), 16).unwrap();
    for kind in [SketchKind::CountSketch(Shape::new(5, 1024).unwrap()), SketchKind::UnivMon(univmon)] {
        let mut specification = heavy();
        specification.sketches[0].kind = kind;
        specification.sketches[0].probability = Probability::new(4).unwrap();
        let Some(kernel) = create_or_skip(specification) else { return };
        let mut frames = udp(20_000);
        // One in five is no IP packet.
        for frame in frames.iter_mut().step_by(5) {
            frame[13] = 6;
        }
        run(&kernel, Entry::Xdp, &frames);
        let mut reader =
            Reader::<FlowBytes>::new(kernel, &ReaderOptions { keys: vec![16], ..Default::default() });
        let window = reader.end_window(0);
        let uncounted = window.window.uncounted(0);
        assert_eq!(uncounted.contains(4_000.0), Some(true), "{uncounted:?}");
        let truth = frames.iter().filter(|frame| frame[13] == 0 && frame[29] == 0).count() as f64;
        let key = <FlowBytes as thalweg_sketch::Key>::from_bytes(&[10, 0, 0, 0]).unwrap();
        let estimate = match window.window.sketch::<FlowBytes>(0).unwrap() {
            WindowSketch::CountSketch32(sketch) => {
                assert_eq!(
                    thalweg_sketch::RowSketch::statistics(&sketch).min_probability(),
                    Probability::new(4).unwrap()
                );
                sketch.estimate_key(&key)
            }
            WindowSketch::UnivMon32(univmon) => univmon.estimate_key(&key),
            other => panic!("unexpected {other:?}"),
        };
        // The seed is fixed; the interval has 99 % or less.
        assert_eq!(estimate.contains(truth), Some(true), "{estimate:?}, {truth}");
    }
}

#[test]
fn the_probability_follows_the_packet_rate() {
    let mut specification = heavy();
    specification.sketches[0].counts_bytes = true;
    let all: Vec<Probability> = (0..=7).filter_map(Probability::new).collect();
    let Some(kernel) = create_or_skip_with(specification, &all) else { return };
    let program = kernel.load(Entry::Xdp).unwrap();
    let line_rate = LineRate { share: 0.1, row_ns: 10.0, sampled_row_ns: 50.0, ..LineRate::default() };
    let mut reader =
        Reader::<FlowBytes>::new(kernel, &ReaderOptions { keys: vec![8], line_rate: Some(line_rate) });
    let frames = udp(30_000);
    let send = |frames: &[Vec<u8>]| frames.iter().for_each(|frame| drop(program.test_run(frame, 1).unwrap()));
    reader.poll(0);
    send(&frames[..10_000]);
    assert_eq!(reader.probability(0), Probability::ONE);
    // 10,000 packets in 100 ms: 1 us each for rows, enough for all of them. In 1 ms: 10 ns, a 25th of a sampled row.
    reader.poll(100_000_000);
    assert_eq!(reader.probability(0), Probability::ONE);
    send(&frames[10_000..20_000]);
    reader.poll(200_000_000);
    reader.set_line_rate(LineRate { epoch_ns: 1_000_000, ..line_rate });
    send(&frames[20_000..25_000]);
    reader.poll(201_500_000);
    assert!(reader.probability(0) < Probability::ONE, "{}", reader.probability(0));
    send(&frames[25_000..]);
    let window = reader.end_window(201_600_000).window;
    let WindowSketch::CountSketch64(sketch) = window.sketch::<FlowBytes>(0).unwrap() else { panic!() };
    assert!(thalweg_sketch::RowSketch::statistics(&sketch).is_sampled());
    let key = <FlowBytes as thalweg_sketch::Key>::from_bytes(&[10, 0, 0, 0]).unwrap();
    let estimate = sketch.estimate_key(&key);
    let truth = 46.0 * sent_by(&frames, 0) as f64;
    assert_eq!(estimate.contains(truth), Some(true), "{estimate:?}, {truth}");
    let bytes = window.ip_bytes(0) as f64;
    let deviation = (8.0 * window.ip_bytes_variance(0)).sqrt();
    assert!((bytes - 46.0 * 30_000.0).abs() <= deviation + 1.0, "{bytes} +- {deviation}");
}

#[test]
fn shapes_are_refused_rather_than_reduced() {
    let shape = Shape::new(8, Shape::MAX_WIDTH).unwrap();
    let univmon = UnivMonShape::new(17, shape, 8).unwrap();
    let sketch = SketchSpec::new(SketchKind::UnivMon(univmon), KernelKey::FiveTuple);
    let refused = KernelSketches::create(Specification::new(vec![sketch], Hasher::new(1)), &[]).unwrap_err();
    assert!(refused.to_string().starts_with("4563402752 bytes of counters per CPU"), "{refused}");
    let none = KernelSketches::create(Specification::new(Vec::new(), Hasher::new(1)), &[]).unwrap_err();
    assert!(none.to_string().contains("0 sketches in the kernel: expected 1 to 4"), "{none}");
}
