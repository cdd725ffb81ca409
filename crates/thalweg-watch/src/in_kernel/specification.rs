//! The sketches in the kernel that the tasks of a plan need: the same kinds, shapes, keys and seeds as in user space.

use thalweg_dataplane::spec::{MAX_SKETCHES, PrefixBits};
use thalweg_dataplane::{KernelKey, ReaderOptions, SketchKind, SketchSpec, Specification};
use thalweg_measure::tasks::{
    KeyDefinition, Plan, PlannedTask, PrefixLengths, Sampling, Side, TaskSize, TaskSpec, Weight,
};
use thalweg_sketch::{Hasher, LineRate, Probability};

use super::InKernelError;

/// AlwaysLineRate: the time of a row without sampling, and of a sampled row, in nanoseconds. A packet of five rows took 70 ns
/// more than one that passes uncounted, and 6 ns more when each row was sampled with 1/64.
const ROW_NS: f64 = 14.0;
const SAMPLED_ROW_NS: f64 = 55.0;

/// What is needed to count a plan in the kernel.
#[derive(Debug)]
pub(super) struct KernelPlan {
    pub(super) specification: Specification,
    /// Probabilities that the reader may choose.
    pub(super) probabilities: Vec<Probability>,
    pub(super) reader: ReaderOptions,
}

/// Returns what the tasks of a plan need.
pub(super) fn kernel_plan(plan: &Plan) -> Result<KernelPlan, InKernelError> {
    let tasks = plan.tasks();
    if tasks.len() > MAX_SKETCHES {
        return Err(InKernelError::Tasks { found: tasks.len() });
    }
    let options = plan.options();
    let (probability, line_rate) = match options.sampling {
        Sampling::Fixed(probability) => (probability, None),
        Sampling::LineRate => (Probability::ONE, Some(line_rate(tasks.len()))),
        _ => return Err(InKernelError::Sampling),
    };
    let mut sketches = Vec::new();
    for (number, task) in tasks.iter().enumerate() {
        let place = (number as u64) << 8;
        let seed = options.seed ^ place.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        sketches.push(SketchSpec { probability, seed, ..sketch(task)? });
    }
    let lowest = line_rate.map_or(0, |line_rate| line_rate.min_probability.log2_inverse());
    let probabilities = (1..=lowest).filter_map(Probability::new).collect();
    let keys = tasks.iter().map(|task| keys_of(task.size)).collect();
    let specification = Specification::new(sketches, Hasher::new(options.seed));
    Ok(KernelPlan { specification, probabilities, reader: ReaderOptions { keys, line_rate } })
}

/// The time budget of one of `sketches` sketches.
fn line_rate(sketches: usize) -> LineRate {
    let all = LineRate::default();
    LineRate {
        share: all.share / sketches.max(1) as f64,
        row_ns: ROW_NS,
        sampled_row_ns: SAMPLED_ROW_NS,
        ..all
    }
}

fn sketch(task: &PlannedTask) -> Result<SketchSpec, InKernelError> {
    let kind = match (task.spec, task.size) {
        (TaskSpec::Change(_), TaskSize::Ranked { shape, .. }) => SketchKind::KAry(shape),
        (_, TaskSize::Ranked { shape, .. } | TaskSize::Counters(shape)) => SketchKind::CountSketch(shape),
        (_, TaskSize::UnivMon(shape)) => SketchKind::UnivMon(shape),
        (_, TaskSize::Registers { precision }) => SketchKind::HyperLogLog { precision },
        _ => return Err(InKernelError::Task { task: task.spec.to_string() }),
    };
    Ok(SketchSpec {
        counts_bytes: task.spec.weight() == Weight::Bytes,
        logs_keys: keys_of(task.size) > 0,
        ..SketchSpec::new(kind, key(task)?)
    })
}

/// The number of keys that a task tracks.
fn keys_of(size: TaskSize) -> usize {
    match size {
        TaskSize::Ranked { k, .. } => k,
        TaskSize::UnivMon(shape) => shape.k(),
        _ => 0,
    }
}

fn key(task: &PlannedTask) -> Result<KernelKey, InKernelError> {
    let of_side = |side, bits| match side {
        Side::Source => KernelKey::Source(bits),
        Side::Destination => KernelKey::Destination(bits),
    };
    Ok(match task.spec.key() {
        KeyDefinition::FiveTuple => KernelKey::FiveTuple,
        KeyDefinition::DestinationPort => KernelKey::Service,
        KeyDefinition::Address(side) => of_side(side, PrefixBits::ALL),
        KeyDefinition::Prefix(side, lengths) => of_side(side, prefix_bits(lengths)),
        _ => return Err(InKernelError::Task { task: task.spec.to_string() }),
    })
}

fn prefix_bits(lengths: PrefixLengths) -> PrefixBits {
    PrefixBits { v4: lengths.v4(), v6: lengths.v6() }
}
