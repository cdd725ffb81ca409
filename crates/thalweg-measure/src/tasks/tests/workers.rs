//! Several workers, each with a part of the packets.

use super::*;
use crate::tasks::{TaskState, WindowState};

const TASKS: &str = "heavy:0.01%,heavy:0.01%:src/24:bytes,change:20s>0.01%:dst,distinct:5tuple,entropy:src,\
                     spread:dst>20,moments:dst+port,moments:src:bytes,hhh:0.05%,hhh:0.05%:dst:bytes";

fn plan_for(workers: usize, window: Nanos, memory: u64) -> Plan {
    Plan::new(TasksOptions { workers, memory: Bytes(memory), kept_windows: 6, ..options(TASKS, window) })
        .unwrap()
}

/// The windows of each worker; packets are assigned in turn.
fn worker_windows(plan: &Plan, packets: &[Packet], workers: u64) -> Vec<Vec<WindowState>> {
    let part = |worker| {
        let (mut monitor, mut states) = (Monitor::new(plan, worker as usize), Vec::new());
        for batch in packets.chunks(700) {
            let mut dealt = batch.to_vec();
            dealt.retain(|packet| packet.time.0 / 1000 % workers == worker);
            monitor.packets(&dealt, |state| states.push(state));
            monitor.advance(batch.last().unwrap().time, |state| states.push(state));
        }
        monitor.finish(|state| states.push(state));
        states
    };
    (0..workers).map(part).collect()
}

/// The reports and kept states when workers' windows arrive in the order of `turns`.
fn merged(
    plan: &Plan,
    worker_windows: &[Vec<WindowState>],
    turns: &mut dyn FnMut() -> usize,
) -> (Vec<WindowReport>, Vec<Vec<TaskState>>) {
    let mut windows = Windows::new(plan);
    let mut queues: Vec<_> = worker_windows.iter().map(|states| states.iter().cloned()).collect();
    let mut left: usize = worker_windows.iter().map(Vec::len).sum();
    let mut reports = Vec::new();
    while left > 0 {
        let turn = turns() % queues.len();
        if let Some(state) = queues[turn].next() {
            windows.add(state);
            left -= 1;
        }
        reports.extend(std::iter::from_fn(|| windows.next_report()));
    }
    windows.finish();
    reports.extend(std::iter::from_fn(|| windows.next_report()));
    assert_eq!(windows.waiting(), 0);
    let states = windows.kept().map(|window| window.states.clone()).collect();
    (reports, states)
}

#[test]
fn several_workers_report_the_same_windows_as_one() {
    let packets = traffic(2_000, BEGIN * SECOND, 50 * SECOND, 5);
    let all_at_once = |plan: &Plan, workers| {
        let mut turn = 0;
        merged(plan, &worker_windows(plan, &packets, workers), &mut || {
            turn += 1;
            turn
        })
    };
    let plan = plan_for(4, Nanos::from_secs(10), 64 << 20);
    // One of the four has all packets.
    let (expected_reports, expected) = all_at_once(&plan, 1);
    let (reports, states) = all_at_once(&plan, 4);
    assert_eq!((reports.len(), states.len()), (5, 5));
    for (states, expected) in states.into_iter().zip(expected) {
        for (task, (mut state, mut expected)) in states.into_iter().zip(expected).enumerate() {
            // Merging an empty state updates the estimates of candidates.
            state.merge(&plan.empty(task));
            expected.merge(&plan.empty(task));
            assert!(state == expected, "{}", plan.tasks()[task].spec);
        }
    }
    for (report, expected) in reports.iter().zip(&expected_reports) {
        assert_eq!((report.index, report.tally), (expected.index, expected.tally));
        assert_same(&report.results, &expected.results);
    }
}

#[test]
fn reports_do_not_depend_on_worker_speed() {
    let packets = traffic(3_000, BEGIN * SECOND, 50 * SECOND, 6);
    let plan = plan_for(3, Nanos::from_secs(10), 8 << 20);
    let states = worker_windows(&plan, &packets, 3);
    let mut turn = 0;
    let (expected, _) = merged(&plan, &states, &mut || {
        turn += 1;
        turn
    });
    for seed in 0..3 {
        let mut draws = seed;
        let (reports, _) = merged(&plan, &states, &mut || random(&mut draws) as usize >> 8);
        assert_eq!(reports, expected);
    }
}

#[test]
fn a_worker_that_is_too_far_ahead_is_detected() {
    let plan = Plan::new(TasksOptions { workers: 2, ..options("moments", Nanos::from_secs(10)) }).unwrap();
    let packets = traffic(100, BEGIN * SECOND, 50 * SECOND, 7);
    let [first, second] = worker_windows(&plan, &packets, 2).try_into().unwrap();
    let mut windows = Windows::new(&plan);
    let mut queues = [first.into_iter(), second.into_iter()];
    assert!(!windows.is_ahead(0) && !windows.is_ahead(1));
    let mut reports = 0;
    // If windows are accepted only from workers that are not ahead, each worker waits for the other, and neither
    // forever.
    for turn in 0..40 {
        let worker = turn / 4 % 2;
        if windows.is_ahead(worker) {
            continue;
        }
        if let Some(state) = queues[worker].next() {
            windows.add(state);
            assert!(windows.waiting() <= 2);
        }
        while windows.next_report().is_some() {
            reports += 1;
        }
    }
    assert_eq!(reports, 5);
}

#[test]
fn an_idle_worker_does_not_delay_others() {
    let plan = Plan::new(TasksOptions { workers: 2, ..options("moments", Nanos::from_secs(10)) }).unwrap();
    let (mut busy, mut idle, mut windows) =
        (Monitor::new(&plan, 0), Monitor::new(&plan, 1), Windows::new(&plan));
    idle.advance(Timestamp(BEGIN * SECOND), |state| windows.add(state));
    let packets = traffic(100, BEGIN * SECOND, 20 * SECOND, 8);
    busy.packets(&packets, |state| windows.add(state));
    assert_eq!(windows.next_report(), None);
    idle.advance(Timestamp((BEGIN + 12) * SECOND), |state| windows.add(state));
    assert_eq!(windows.next_report().unwrap().tally.packets, 50);
}

#[test]
fn sampled_tasks_stay_within_their_bounds() {
    // Twenty flows of 10,000 packets: enough for p = 1/16 to have converged.
    let flow = |number: u64| FlowKey::v4(1, 2, number as u16, 80, Protocol::UDP);
    let packets: Vec<Packet> =
        (0..200_000).map(|number| packet(flow(number % 20), BEGIN * SECOND + number, 100)).collect();
    for sampling in ["1/16", "line-rate", "correct"] {
        let sampling = sampling.parse().unwrap();
        let plan = Plan::new(TasksOptions { sampling, ..options("heavy:1%,moments", Nanos::from_secs(10)) })
            .unwrap();
        let (reports, _) = run(&plan, &packets);
        let TaskValue::Heavy(heavy) = &reports[0].results[0].value else { panic!() };
        assert_eq!(heavy.keys.len(), 20);
        for found in &heavy.keys {
            assert_eq!(found.estimate.contains(10_000.0), Some(true), "{}", found.estimate);
        }
        let TaskValue::Moments(moments) = &reports[0].results[1].value else { panic!() };
        assert_eq!(moments.l2.contains((20f64 * 1e8).sqrt()), Some(true), "{}", moments.l2);
    }
}
