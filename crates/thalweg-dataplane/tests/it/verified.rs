//! The verifier accepts the programs for any specification, with room to spare.

use std::os::fd::{AsFd as _, AsRawFd as _};

use thalweg_dataplane::kernel_sketches::Entry;
use thalweg_dataplane::{KernelKey, SketchKind, SketchSpec, Specification};
use thalweg_sketch::{Hasher, Probability, Shape, UnivMonShape};

use crate::harness::create_or_skip;

/// The kernel's limit of instructions that the verifier follows.
const LIMIT: u64 = 1_000_000;

#[test]
fn the_verifier_follows_at_most_half_of_its_limit() {
    let shape = Shape::new(8, 1 << 16).unwrap();
    let kinds = [
        SketchKind::CountMin(shape),
        SketchKind::CountSketch(shape),
        SketchKind::UnivMon(UnivMonShape::new(17, Shape::new(8, 4096).unwrap(), 8).unwrap()),
        SketchKind::HyperLogLog { precision: 16 },
    ];
    let keys = [KernelKey::FiveTuple, KernelKey::SOURCE, KernelKey::Service, KernelKey::DESTINATION];
    let mut specifications: Vec<Vec<SketchSpec>> = kinds
        .into_iter()
        .zip(keys)
        .map(|(kind, key)| {
            vec![SketchSpec { probability: Probability::MIN, ..SketchSpec::new(kind, key) }; 4]
        })
        .collect();
    specifications.push(kinds.into_iter().zip(keys).map(|(kind, key)| SketchSpec::new(kind, key)).collect());
    for sketches in specifications {
        let Some(kernel) = create_or_skip(Specification::new(sketches, Hasher::new(1))) else { return };
        for entry in [Entry::Xdp, Entry::XdpMultiBuffer, Entry::Ingress] {
            let program = kernel.load(entry).unwrap();
            let path = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
            let text = std::fs::read_to_string(path).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("verified_insns:"));
            // Kernels before 5.16 do not tell.
            let Some(followed) = line.and_then(|line| line.trim().parse::<u64>().ok()) else { return };
            assert!(followed < LIMIT / 2, "{entry:?}: {followed} instructions");
        }
    }
}
