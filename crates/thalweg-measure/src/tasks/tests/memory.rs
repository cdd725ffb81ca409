//! Plans: how memory is divided, and when it is too small.

use super::*;
use crate::tasks::PlanError;

const ALL: &str = "heavy:0.1%,heavy:1%:src/24:bytes,change:30s,change:10s:dst:bytes,distinct:src,entropy:dst,\
                   spread:dst>1000,moments,moments:src:bytes,hhh:1%,hhh:2%:dst:bytes";

fn planned(tasks: &str, memory: u64, workers: usize, kept_windows: usize) -> Result<Plan, PlanError> {
    let options = options(tasks, Nanos::from_secs(10));
    Plan::new(TasksOptions { memory: Bytes(memory), workers, kept_windows, ..options })
}

#[test]
fn a_plan_uses_most_of_its_memory() {
    for tasks in [ALL, "heavy:0.1%", "entropy:src,distinct:5tuple", "hhh:1%,spread:src>10", "change:30s"] {
        for memory in [1u64 << 21, 1 << 22, 3 << 21, 1 << 24] {
            for (workers, kept) in [(1, 1), (1, 6), (4, 3)] {
                let Ok(plan) = planned(tasks, memory, workers, kept) else { continue };
                let bytes = plan.bytes().0;
                assert!(bytes <= memory, "{tasks}: {bytes} of {memory}");
                // Every task grows in steps of two, so that less than half is left, unless all have their maximum.
                assert!(
                    bytes > memory / 2,
                    "{tasks}, {workers} workers, {kept} kept: only {bytes} of {memory}"
                );
            }
        }
    }
}

#[test]
fn sketches_use_exactly_the_planned_memory() {
    let plan = planned(ALL, 1 << 24, 1, 3).unwrap();
    for (task, planned) in plan.tasks().iter().enumerate() {
        assert_eq!(plan.empty(task).bytes(), planned.bytes_each(), "{}", planned.spec);
    }
    let copies: Vec<u64> = plan.tasks()[1..3].iter().map(|task| task.copies).collect();
    assert_eq!(copies, [6, 8], "a change has two more");
}

#[test]
fn the_reported_minimum_memory_is_sufficient() {
    for (workers, kept) in [(1, 1), (2, 5), (16, 3)] {
        let Err(PlanError::Memory { min, memory, .. }) = planned(ALL, 1000, workers, kept) else {
            panic!("1000 bytes were enough");
        };
        assert_eq!(memory, Bytes(1000));
        assert_eq!(planned(ALL, min.0, workers, kept).unwrap().bytes(), min);
        assert!(planned(ALL, min.0 - 1, workers, kept).is_err());
    }
}

#[test]
fn an_entropy_tracks_at_least_eight_keys_per_level() {
    let Err(PlanError::Memory { min, .. }) = planned("entropy:src", 1000, 1, 1) else {
        panic!("1000 bytes were enough");
    };
    let plan = planned("entropy:src", min.0, 1, 1).unwrap();
    let size = plan.tasks()[0].size.to_string();
    assert!(size.contains("5 x 64 counters, 8 keys"), "{size}");
}

#[test]
fn sampling_tables_count_as_memory() {
    let with = |sampling: &str| {
        let options = options("heavy:1%", Nanos::from_secs(10));
        let plan = Plan::new(TasksOptions { sampling: sampling.parse().unwrap(), ..options }).unwrap();
        plan.bytes().0 - plan.tasks()[0].bytes().0
    };
    assert!(with("1") < 4 << 10);
    // 64 ln 2 / -ln(1 - 1/128) = 5,656 gaps of 8 bytes, half as many for 1/64, and so on; and 128 steps at the end.
    assert!((2 * 5600 * 8..2 * 5800 * 8 + (16 << 10)).contains(&with("1/128")), "{}", with("1/128"));
    assert_eq!(with("line-rate"), with("1/128"));
    assert_eq!(with("correct"), with("1/128"));
}

#[test]
fn more_memory_shrinks_no_task() {
    let mut before: Option<Plan> = None;
    for memory in (21..27).map(|log2| 1 << log2) {
        let plan = planned(ALL, memory, 1, 3).unwrap();
        if let Some(before) = before {
            for (less, more) in before.tasks().iter().zip(plan.tasks()) {
                assert!(less.bytes_each() <= more.bytes_each(), "{}: {} {}", less.spec, less.size, more.size);
            }
        }
        before = Some(plan);
    }
}

#[test]
fn invalid_options_are_rejected() {
    let good = options("heavy:1%,change:30s", Nanos::from_secs(10));
    let error = |options: TasksOptions| Plan::new(options).unwrap_err();
    assert_eq!(error(TasksOptions { tasks: Vec::new(), ..good.clone() }), PlanError::NoTasks);
    assert_eq!(
        error(TasksOptions { window: Nanos(999_999), ..good.clone() }),
        PlanError::ShortWindow { window: Nanos(999_999) }
    );
    assert_eq!(error(TasksOptions { kept_windows: 0, ..good.clone() }), PlanError::NoKeptWindows);
    assert_eq!(error(TasksOptions { workers: 0, ..good.clone() }), PlanError::NoWorkers);
    let uneven = TasksOptions { window: Nanos::from_secs(7), ..good.clone() };
    assert!(
        error(uneven).to_string().starts_with("task change:30s: the period must be a multiple of the window")
    );
    let mut twice = good;
    twice.tasks.push(twice.tasks[0]);
    assert_eq!(error(twice).to_string(), "task heavy:1% is repeated: expected each task once");
}
