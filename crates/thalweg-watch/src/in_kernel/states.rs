//! Windows of the kernel as states of tasks, as if a worker had counted them.

use thalweg_dataplane::reader::ReadWindow;
use thalweg_dataplane::{SketchKind, WindowSketch};
use thalweg_measure::tasks::{FlowBytes, Plan, TaskSize, TaskState, WindowTally};
use thalweg_sketch::nitro::RowWise;
use thalweg_sketch::{Digest, RowSketch, WithTopK};
use thalweg_wire::Bytes;

/// Returns the sketch whose sampling tells most of the packets without a key: registers see every packet.
pub(super) fn best_sketch(window: &ReadWindow<FlowBytes>) -> usize {
    let sketches = &window.window.specification().sketches;
    sketches.iter().position(|sketch| matches!(sketch.kind, SketchKind::HyperLogLog { .. })).unwrap_or(0)
}

/// Returns the IP packets of a window and their bytes. Both are estimates if no sketch saw every packet.
pub(crate) fn tally(window: &ReadWindow<FlowBytes>) -> WindowTally {
    let sketch = best_sketch(window);
    WindowTally {
        packets: window.window.ip_packets(sketch),
        bytes: Bytes(window.window.ip_bytes(sketch)),
        late: 0,
    }
}

/// Returns the state of each task of the plan.
pub(crate) fn states(plan: &Plan, window: &ReadWindow<FlowBytes>) -> Vec<TaskState> {
    let state = |(number, task): (usize, &thalweg_measure::tasks::PlannedTask)| {
        let keys = &window.keys[number];
        let sketch = window.window.sketch::<FlowBytes>(number);
        match (sketch.expect("the programs write possible ranks only"), task.size) {
            (WindowSketch::CountSketch32(sketch), TaskSize::Ranked { k, .. }) => {
                TaskState::RankedCountSketch32(ranked(sketch, k, keys))
            }
            (WindowSketch::CountSketch64(sketch), TaskSize::Ranked { k, .. }) => {
                TaskState::RankedCountSketch64(ranked(sketch, k, keys))
            }
            (WindowSketch::KAry32(sketch), TaskSize::Ranked { k, .. }) => {
                TaskState::RankedKAry32(ranked(sketch, k, keys))
            }
            (WindowSketch::KAry64(sketch), TaskSize::Ranked { k, .. }) => {
                TaskState::RankedKAry64(ranked(sketch, k, keys))
            }
            (WindowSketch::CountSketch32(sketch), _) => TaskState::CountSketch32(sketch),
            (WindowSketch::CountSketch64(sketch), _) => TaskState::CountSketch64(sketch),
            (WindowSketch::UnivMon32(mut univmon), _) => {
                offer(&mut univmon, keys);
                TaskState::UnivMon32(univmon)
            }
            (WindowSketch::HyperLogLog(counter), _) => TaskState::HyperLogLog(counter),
            (other, size) => unreachable!("{other:?} of size {size}"),
        }
    };
    plan.tasks().iter().enumerate().map(state).collect()
}

fn ranked<S: RowSketch>(sketch: S, k: usize, keys: &[(FlowBytes, Digest)]) -> WithTopK<S, FlowBytes> {
    let mut ranked = WithTopK::new(sketch, k);
    offer(&mut ranked, keys);
    ranked
}

/// Offers the candidates with their final estimates.
fn offer(sketch: &mut impl RowWise<FlowBytes>, keys: &[(FlowBytes, Digest)]) {
    let digests: Vec<Digest> = keys.iter().map(|(_, digest)| *digest).collect();
    sketch.offer(&digests, |number| keys[number].0);
}
