//! Small sizes of the study. Runs are deterministic, so there are no false alarms.

use thalweg_emulator::bottleneck::port::Queue;
use thalweg_wire::{BitRate, Nanos};

use super::model::{Case, Model, Ran, run};
use super::runs::run_all;
use super::*;

const SECOND_PS: u64 = 1_000_000_000_000;

fn cases() -> Vec<Case> {
    [300, 900].map(|mbps| Case::in_primary(BitRate(mbps * 1_000_000), Nanos::from_millis(100))).to_vec()
}

#[test]
fn runs_depend_only_on_the_seed_and_keep_the_books() {
    for model in Model::ALL {
        let ran = |seed| run(model, 15.0, seed, 20 * SECOND_PS, &cases()).unwrap();
        let first = ran(1);
        assert_eq!(ran(1), first, "{}", model.name());
        assert_ne!(ran(2), first, "{}", model.name());
        assert_eq!(first[0].offered, first[1].offered, "the same background traffic");
        assert!(first[0].loss() < first[1].loss() && first[1].flow_dropped > 0, "{first:?}");
        let most = (first[1].flow_offered - first[1].flow_dropped) as f64 * 1_500.0;
        assert!(first[1].flow_bytes > 0.5 * most && first[1].flow_bytes <= most, "{first:?} {most}");
    }
}

#[test]
fn a_scavenger_flow_harms_nobody() {
    let scavenger = Case { queue: Queue::Scavenger, ..Case::in_primary(FLOW, ROUND_TRIPS[1]) };
    for model in Model::ALL {
        let ran = run(model, 15.0, 1, 20 * SECOND_PS, &[scavenger, Case::in_primary(FLOW, ROUND_TRIPS[1])])
            .unwrap();
        assert!(ran[0].loss() < ran[1].loss() / 10.0, "{}: {ran:?}", model.name());
        // TCP may be as fast as in the primary queue: 5 MB of its own are more than a share of 5 MB.
        assert!(model == Model::Tcp || ran[0].flow_bytes < ran[1].flow_bytes, "{}: {ran:?}", model.name());
    }
}

#[test]
fn an_interrupted_experiment_continues_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let size = |command: &str| Size {
        seeds: 3,
        seconds: 1.0,
        command: command.to_owned(),
        progress: folder.path().join("progress.jsonl"),
    };
    let ran = |seed: u64| Ran { offered: seed, ..Ran::default() };
    let failing = |_: &&str, seed: u64| if seed < 3 { Ok(ran(seed)) } else { anyhow::bail!("interrupted") };
    let name = |task: &&str| (*task).to_owned();
    assert!(run_all(&size("a"), &["x", "y"], name, failing).is_err());
    // An incomplete line, as a killed program leaves it.
    let mut text = std::fs::read_to_string(&size("a").progress).unwrap();
    let complete = text.lines().count();
    text.push_str("{\"run\":\"x se");
    std::fs::write(&size("a").progress, text).unwrap();
    assert!(complete > 2, "some runs are complete");
    let new = std::sync::atomic::AtomicU64::new(0);
    let counted = |_: &&str, seed: u64| {
        new.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(ran(seed))
    };
    let results = run_all(&size("a"), &["x", "y"], name, counted).unwrap();
    assert_eq!(results, vec![(1..=3).map(ran).collect::<Vec<_>>(); 2]);
    assert_eq!(new.load(std::sync::atomic::Ordering::Relaxed), 6 - (complete as u64 - 1));
    // Results of another command are of no use.
    run_all(&size("b"), &["x", "y"], name, counted).unwrap();
    assert_eq!(new.load(std::sync::atomic::Ordering::Relaxed), 12 - (complete as u64 - 1));
}

#[test]
fn numbers_have_two_significant_digits() {
    assert_eq!([0.0, 0.000_612, 0.21, 3.456, 123.4].map(significant), ["0", "0.00061", "0.21", "3.5", "123"]);
    assert_eq!(significant(f64::NAN), "-");
}
