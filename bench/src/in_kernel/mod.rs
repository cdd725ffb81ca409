//! Sketches at XDP: nanoseconds per packet and error, beside a packet that passes, hash maps, and ebpf-sketches.
//!
//! Programs run by `BPF_PROG_TEST_RUN`, which repeats one frame. So each program first writes the next 5-tuple of the
//! traffic into the frame; the program `pass` does only that, and the others are compared with it. Contenders take turns in
//! each round, and their median over the rounds counts. Errors are of the counters that the same runs left behind.

mod on_veth;
mod peer;
mod traffic;

use std::path::PathBuf;

use anyhow::Context as _;
use thalweg_dataplane::{
    DataplaneError, KernelKey, KernelSketches, Reader, ReaderOptions, SketchKind, SketchSpec, Specification,
    WindowSketch,
};
use thalweg_linux::bpf::{Maps, Object, Program, ProgramKind};
use thalweg_sketch::nitro::RowWise;
use thalweg_sketch::{
    CountMin, CountSketch, Hasher, KAry, Mode, Nitro, Probability, RowSketch, Shape, UnivMon, UnivMonShape,
};

use crate::clock::Stopwatch;
use crate::results::{Page, Table, grouped, save_page, save_rows};
use crate::row;
use crate::sketches::keys::Key;
use crate::statistics::median;
use peer::PeerSketch;
use traffic::{Traffic, frame};

/// Compiled from `programs.bpf.c` by `scripts/bpf.sh`.
const PROGRAMS: &[u8] = include_bytes!("programs.bpf.o");

/// The contender with which the others are compared.
const PASS: &str = "pass";

/// Entries of the hash maps.
const FLOWS: u32 = 1 << 20;

/// Keys that are tracked beside a sketch.
const TRACKED: usize = 1_000;

/// The seed of hashes, and of samplers in the kernel; those in user space have another one.
const SEED: u64 = 20_261_129;

/// Sketches in user space with which one in the kernel is compared, at p = 2^-[`TESTED_LOG2`]. If both have the same distribution of
/// errors, that of the kernel is the smallest or the largest of all with a probability of 2 in 40.
const OTHERS: usize = 39;
const TESTED_LOG2: u8 = 6;

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct InKernelOptions {
    /// Packets per round and contender
    #[arg(long, default_value_t = 4_194_304, value_parser = clap::value_parser!(u64).range(1024..))]
    pub packets: u64,
    /// Rounds
    #[arg(long, default_value_t = 7)]
    pub runs: usize,
    /// Flows from which packets are drawn
    #[arg(long, default_value_t = 100_000)]
    pub flows: u64,
    /// Exponent of Zipf's law
    #[arg(long, default_value_t = 1.0)]
    pub exponent: f64,
    /// Measure `pass` and the contenders whose names contain this text only, and not on a veth pair
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// A program under test.
struct Contender {
    name: String,
    probability: Option<Probability>,
    program: Program,
    ns: Vec<f64>,
    state: State,
}

/// Where its counters are.
enum State {
    /// Nowhere, or exact.
    None,
    Sketch(Box<KernelSketches>),
    /// Maps of an object file of its own.
    Peer(Maps),
}

/// Runs the benchmark.
///
/// # Errors
/// If a program cannot be loaded for another reason than a missing privilege, or results cannot be written.
pub fn run(options: &InKernelOptions) -> anyhow::Result<()> {
    let traffic = Traffic::generate(options.packets, options.flows, options.exponent)?;
    let mut contenders = match contenders(&traffic) {
        Err(error) if matches!(error.downcast_ref(), Some(DataplaneError::Privilege)) => {
            eprintln!("skipped: in-kernel: {error}");
            return Ok(());
        }
        contenders => contenders?,
    };
    if let Some(text) = &options.only {
        contenders.retain(|contender| contender.name == PASS || contender.name.contains(text));
    }
    let tuples = traffic.keys.len() as u64;
    let passes = (options.packets / tuples).max(1);
    let frame = frame();
    for round in 0..=options.runs {
        for contender in &mut contenders {
            let stopwatch = Stopwatch::start();
            for _ in 0..passes {
                contender.program.test_run(&frame, tuples as u32).context("cannot run a program")?;
            }
            // The first round fills caches and hash maps.
            if round > 0 {
                contender.ns.push(stopwatch.nanos() / (passes * tuples) as f64);
            }
        }
    }
    let rounds = (options.runs as u64 + 1) * passes;
    let on_veth = match options.only {
        Some(_) => None,
        None => Some(on_veth::measure(&traffic, 2 * options.runs)?),
    };
    report(options, &traffic, contenders, rounds, on_veth.as_ref())
}

fn shapes() -> anyhow::Result<Vec<(SketchKind, &'static str)>> {
    let shape = Shape::new(5, 1024)?;
    let univmon = UnivMonShape::new(16, Shape::new(5, 16_384)?, TRACKED)?;
    Ok(vec![
        (SketchKind::CountMin(shape), "Count-Min 5 x 1024"),
        (SketchKind::CountSketch(shape), "Count Sketch 5 x 1024"),
        (SketchKind::KAry(shape), "K-ary 5 x 1024"),
        (SketchKind::UnivMon(univmon), "UnivMon 16 levels of 5 x 16384"),
        (SketchKind::CountSketch(Shape::new(4, 1024)?), "Count Sketch 4 x 1024"),
    ])
}

fn probability(log2: u8) -> Probability {
    Probability::new(log2).unwrap_or(Probability::MIN)
}

fn contenders(traffic: &Traffic) -> anyhow::Result<Vec<Contender>> {
    let mut contenders = Vec::new();
    let exact = [
        (PASS, "bench_pass"),
        ("hash map, look-up and add", "bench_hash_map"),
        ("hash map per CPU, look-up and add", "bench_per_cpu_hash_map"),
        ("hash map, update", "bench_hash_map_update"),
    ];
    for (name, program) in exact {
        let (program, _) = load_plain(traffic, program)?;
        contenders.push(Contender::new(name, None, program, State::None));
    }
    for (kind, name) in shapes()? {
        for log2 in [0, 4, 6, 7] {
            let spec = SketchSpec {
                probability: probability(log2),
                seed: SEED,
                ..SketchSpec::new(kind, KernelKey::FiveTuple)
            };
            let specification = Specification::new(vec![spec], Hasher::new(SEED));
            let kernel = KernelSketches::create_from(PROGRAMS, specification, &[])?;
            traffic.fill(kernel.maps())?;
            let program = kernel.load_program(PROGRAMS, "bench_sketch", ProgramKind::Xdp)?;
            let state = State::Sketch(Box::new(kernel));
            contenders.push(Contender::new(name, Some(spec.probability), program, state));
        }
    }
    let frames = SketchSpec {
        probability: probability(6),
        seed: SEED,
        ..SketchSpec::new(SketchKind::CountSketch(Shape::new(5, 1024)?), KernelKey::FiveTuple)
    };
    let kernel =
        KernelSketches::create_from(PROGRAMS, Specification::new(vec![frames], Hasher::new(SEED)), &[])?;
    traffic.fill(kernel.maps())?;
    let program = kernel.load_program(PROGRAMS, "bench_sketch_frags", ProgramKind::XdpMultiBuffer)?;
    let name = "Count Sketch 5 x 1024, frames in several buffers";
    contenders.push(Contender::new(name, Some(frames.probability), program, State::Sketch(Box::new(kernel))));
    for log2 in [0, 4, 6] {
        let name = if log2 == 0 { "bench_peer_countsketch" } else { "bench_peer_nitrosketch" };
        let (program, maps) = load_plain(traffic, name)?;
        peer::prepare(&maps, probability(log2).get(), SEED)?;
        let name = "ebpf-sketches, Count Sketch 4 x 1024";
        contenders.push(Contender::new(name, Some(probability(log2)), program, State::Peer(maps)));
    }
    Ok(contenders)
}

/// Loads a program that uses none of our sketches.
fn load_plain(traffic: &Traffic, name: &str) -> anyhow::Result<(Program, Maps)> {
    let mut object = Object::read(PROGRAMS)?;
    if name.contains("hash_map") {
        object.set_max_entries("flows", FLOWS)?;
        object.set_max_entries("flows_per_cpu", FLOWS)?;
    }
    let maps = object.create_maps()?;
    traffic.fill(&maps)?;
    Ok((object.load_with(name, ProgramKind::Xdp, &maps)?, maps))
}

impl Contender {
    fn new(name: &str, probability: Option<Probability>, program: Program, state: State) -> Contender {
        Contender { name: name.to_owned(), probability, program, ns: Vec::new(), state }
    }
}

/// The errors of a contender over the largest flows.
struct Errors {
    kernel: Option<(f64, f64)>,
    /// The mean error of each sketch in user space.
    user_space: Option<Vec<f64>>,
}

impl Errors {
    /// Returns how many sketches of user space had a smaller error, if there were many.
    fn rank(&self) -> Option<usize> {
        let (kernel, others) = (self.kernel?.0, self.user_space.as_ref()?);
        (others.len() == OTHERS).then(|| others.iter().filter(|&&error| error < kernel).count())
    }
}

fn report(
    options: &InKernelOptions,
    traffic: &Traffic,
    contenders: Vec<Contender>,
    rounds: u64,
    on_veth: Option<&Table>,
) -> anyhow::Result<()> {
    let pass = contenders.first().map_or(0.0, |pass| median(&pass.ns));
    let mut rows = Table::new([
        "contender",
        "p",
        "ns per packet",
        "least",
        "most",
        "ns over pass",
        "mean error",
        "mean signed error",
        "mean error in user space",
        "of 39 others, smaller",
    ]);
    for contender in contenders {
        let Contender { name, probability, ns, state, .. } = contender;
        let errors = errors(state, probability, traffic, rounds)?;
        let percent =
            |error: Option<f64>| error.map_or(String::new(), |error| format!("{:.2} %", 100.0 * error));
        let least = ns.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ns.iter().copied().fold(0.0, f64::max);
        row!(
            rows,
            name,
            probability.map_or(String::new(), |p| p.to_string()),
            format!("{:.1}", median(&ns)),
            format!("{least:.1}"),
            format!("{most:.1}"),
            format!("{:.1}", median(&ns) - pass),
            percent(errors.kernel.map(|errors| errors.0)),
            percent(errors.kernel.map(|errors| errors.1)),
            percent(errors.user_space.as_ref().map(|all| median(all))),
            errors.rank().map_or(String::new(), |rank| rank.to_string())
        );
    }
    let command = format!(
        "thalweg-bench in-kernel --packets {} --runs {} --flows {} --exponent {}",
        options.packets, options.runs, options.flows, options.exponent
    ) + &options.only.as_ref().map_or(String::new(), |text| format!(" --only '{text}'"));
    let mut page = Page::new("Sketches inside the kernel", &command);
    page.paragraph(format_args!(
        "XDP programs in `BPF_PROG_TEST_RUN`, {} packets each in {} rounds after one to warm up, of {} flows by Zipf's law with exponent {}. \
         Each program first writes the next 5-tuple into the frame; `pass` does only that. Times are CPU time of the thread over whole rounds, median of the rounds, so other work on the processor does not count but for its effect on caches. \
         Errors are relative, over the 100 largest flows, of the counters that the same rounds left. Keys of sampled packets leave the kernel.",
        grouped(rounds * traffic.keys.len() as u64),
        options.runs,
        grouped(options.flows),
        options.exponent
    ));
    page.table(&rows);
    page.paragraph(
        "The last column is a test at p = 1/64: 39 sketches in user space with the same hash, whose draws differ. 0 or 39 of them have a smaller error \
         than the kernel's with a probability of 5 % if the errors have the same distribution; \
         the error in user space is then their median.",
    );
    let rate = |log2| 1.0 / peer::update_rate(probability(log2).get(), SEED, 1 << 20);
    page.paragraph(format_args!(
        "[ebpf-sketches](../peers/ebpf-sketches) repeats 4,096 draws and loses the position within a packet after each update, so it \
         updates a row with 1/{:.1} instead of 1/16, and with 1/{:.1} instead of 1/64 (simulated with these draws): the signed error shows the bias. Its Count Sketch has a \
         sign here, which the original lacks. It logs no keys.",
        rate(4),
        rate(6)
    ));
    save_rows(&options.output, "in-kernel", &rows)?;
    if let Some(on_veth) = on_veth {
        page.section("On a veth pair");
        page.paragraph(
            "The same programs, in the driver of one end of a veth pair, into which the kernel's generator of frames (`BPF_F_TEST_XDP_LIVE_FRAMES`) sends \
             from one thread as fast as they are taken. Wall time of a frame, with generator, both ends and the network stack that \
             drops the frame; the difference is the median of those in each round.",
        );
        page.table(on_veth);
        save_rows(&options.output, "in-kernel-veth", on_veth)?;
    }
    save_page(&options.output, "in-kernel", &page)
}

fn errors(
    state: State,
    probability: Option<Probability>,
    traffic: &Traffic,
    rounds: u64,
) -> anyhow::Result<Errors> {
    let p = probability.unwrap_or(Probability::ONE);
    match state {
        State::None => Ok(Errors { kernel: None, user_space: None }),
        State::Peer(maps) => {
            let sketch = PeerSketch::read(&maps)?;
            let kernel = traffic.errors(rounds, |key| sketch.estimate(key, p.get()));
            Ok(Errors { kernel: Some(kernel), user_space: None })
        }
        State::Sketch(kernel) => {
            let kind = kernel.specification().sketches[0].kind;
            let options = ReaderOptions { keys: vec![TRACKED], ..ReaderOptions::default() };
            let window = Reader::<Key>::new(*kernel, &options).end_window(0).window;
            let sketch = window.sketch::<Key>(0)?;
            let kernel = traffic.errors(rounds, |key| estimate(&sketch, key));
            let others = if Probability::new(TESTED_LOG2) == Some(p) { OTHERS } else { 1 };
            let user_space = (1..=others as u64)
                .map(|draws| {
                    Ok(traffic.errors(rounds, user_space(kind, p, traffic, rounds, SEED + draws)?).0)
                })
                .collect::<anyhow::Result<_>>()?;
            Ok(Errors { kernel: Some(kernel), user_space: Some(user_space) })
        }
    }
}

fn estimate(sketch: &WindowSketch<Key>, key: &Key) -> f64 {
    match sketch {
        WindowSketch::CountMin32(sketch) => sketch.estimate_key(key).value,
        WindowSketch::CountSketch32(sketch) => sketch.estimate_key(key).value,
        WindowSketch::KAry32(sketch) => sketch.estimate_key(key).value,
        WindowSketch::UnivMon32(sketch) => sketch.estimate_key(key).value,
        other => unreachable!("{other:?} is not compared"),
    }
}

/// Estimates the packets of a flow.
type Estimator = Box<dyn Fn(&Key) -> f64>;

/// Counts the same traffic in user space with the same hash and probability, and other draws.
fn user_space(
    kind: SketchKind,
    probability: Probability,
    traffic: &Traffic,
    rounds: u64,
    seed: u64,
) -> anyhow::Result<Estimator> {
    let hasher = Hasher::new(SEED);
    Ok(match kind {
        SketchKind::CountMin(shape) => {
            let sketch = count(CountMin::<i32>::new(shape, hasher), probability, (traffic, rounds), seed);
            Box::new(move |key| sketch.estimate_key(key).value)
        }
        SketchKind::CountSketch(shape) => {
            let sketch = count(CountSketch::<i32>::new(shape, hasher), probability, (traffic, rounds), seed);
            Box::new(move |key| sketch.estimate_key(key).value)
        }
        SketchKind::KAry(shape) => {
            let sketch = count(KAry::<i32>::new(shape, hasher), probability, (traffic, rounds), seed);
            Box::new(move |key| sketch.estimate_key(key).value)
        }
        SketchKind::UnivMon(shape) => {
            let sketch = count(UnivMon::<Key, i32>::new(shape, hasher), probability, (traffic, rounds), seed);
            Box::new(move |key| sketch.estimate_key(key).value)
        }
        SketchKind::HyperLogLog { .. } => anyhow::bail!("registers are not compared"),
    })
}

fn count<S: RowWise<Key>>(
    sketch: S,
    probability: Probability,
    (traffic, rounds): (&Traffic, u64),
    seed: u64,
) -> S {
    let mut nitro = Nitro::new(sketch, Mode::Fixed(probability), seed);
    for _ in 0..rounds {
        nitro.update(traffic.keys.as_slice());
    }
    nitro.into_sketch()
}
