//! Tests of several workers, with one slow or ended.

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use thalweg_measure::tasks::{Plan, TaskList, TasksOptions};
use thalweg_wire::{FlowKey, Fragment, Nanos, Packet, PacketNotes, Protocol, TcpFlags, Timestamp};

use super::*;
use crate::message::Message;

const SECOND: u64 = 1_000_000_000;

fn plan(workers: usize) -> Plan {
    let list: TaskList = "heavy:1%,distinct".parse().unwrap();
    let window = Nanos::from_secs(1);
    Plan::new(TasksOptions { tasks: list.0, window, workers, ..TasksOptions::default() }).unwrap()
}

fn packet(seconds: u64, source: u32) -> Packet {
    Packet {
        time: Timestamp(seconds * SECOND),
        key: FlowKey::v4(source, 1, 2, 3, Protocol::TCP),
        ip_length: 100,
        payload_length: 60,
        identification: 0,
        tcp_sequence: 0,
        ethernet: Default::default(),
        tcp_flags: TcpFlags::default(),
        fragment: Fragment::Whole,
        notes: PacketNotes::default(),
    }
}

/// Workers and the messages that they sent.
struct Bench {
    merger: WindowMerger,
    workers: Vec<TaskMonitor>,
    messages: Receiver<Message>,
    _sender: Sender<Message>,
}

fn bench(workers: usize) -> Bench {
    let plan = plan(workers);
    let (merger, permits) = WindowMerger::new(&plan);
    let (sender, messages) = unbounded();
    let task_monitor = |(worker, permits)| TaskMonitor::new(&plan, worker, permits, sender.clone());
    let workers = permits.into_iter().enumerate().map(task_monitor).collect();
    Bench { merger, workers, messages, _sender: sender }
}

impl Bench {
    /// Passes the messages to the merger. Returns index and packets of each finished window.
    fn collect(&mut self) -> Vec<(u64, u64)> {
        let mut finished = Vec::new();
        while let Ok(message) = self.messages.try_recv() {
            let take = |_: &WindowMerger, it: FinishedWindow| {
                finished.push((it.report.index, it.report.tally.packets))
            };
            match message {
                Message::Windows(states) => self.merger.add(states, take),
                Message::NoMoreWindows(worker) => self.merger.worker_ended(worker, take),
                other => panic!("{other:?}"),
            }
        }
        finished
    }
}

#[test]
fn a_window_ends_when_all_workers_have_ended_it() {
    let mut bench = bench(2);
    bench.workers[0].packets(&[packet(10, 1), packet(10, 2)]);
    bench.workers[1].packets(&[packet(10, 3)]);
    bench.workers[0].advance(Timestamp(11 * SECOND));
    assert_eq!(bench.collect(), []);
    bench.workers[1].advance(Timestamp(11 * SECOND));
    assert_eq!(bench.collect(), [(10, 3)]);
}

#[test]
fn a_worker_is_at_most_one_window_ahead() {
    let mut bench = bench(2);
    bench.workers[1].packets(&[packet(10, 3)]);
    bench.workers[0].packets(&[packet(10, 1), packet(11, 1)]);
    assert_eq!(bench.collect(), []);
    std::thread::scope(|scope| {
        let mut fast = bench.workers.remove(0);
        let ahead = scope.spawn(move || fast.packets(&[packet(12, 1)]));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!ahead.is_finished(), "it has ended window 10, the other has not");
        assert!(bench.messages.is_empty());
        bench.workers[0].advance(Timestamp(11 * SECOND));
        assert_eq!(bench.collect(), [(10, 2)]);
        ahead.join().unwrap();
    });
}

#[test]
fn other_workers_do_not_wait_for_an_ended_worker() {
    let mut bench = bench(2);
    bench.workers[1].packets(&[packet(10, 3)]);
    bench.workers.pop();
    bench.collect();
    for seconds in 10..15 {
        bench.workers[0].packets(&[packet(seconds, 1)]);
        let expected = if seconds == 10 { vec![] } else { vec![(seconds - 1, 1)] };
        assert_eq!(bench.collect(), expected);
    }
    bench.workers[0].finish();
    assert_eq!(bench.collect(), [(14, 1)], "the current window ends with the input");
}

#[test]
fn a_batch_over_many_windows_is_split_and_a_gap_is_one_window() {
    let mut bench = bench(1);
    // With one worker, each permit arrives as soon as its messages are collected.
    let (mut worker, packets) = (bench.workers.remove(0), [10, 10, 11, 40, 12].map(|it| packet(it, 1)));
    std::thread::scope(|scope| {
        let counting = scope.spawn(move || {
            worker.packets(&packets);
            worker.finish();
        });
        let mut finished = Vec::new();
        while !counting.is_finished() {
            finished.extend(bench.collect());
        }
        finished.extend(bench.collect());
        // The last packet is late and counts in the current window.
        assert_eq!(finished, [(10, 2), (11, 1), (39, 0), (40, 2)]);
    });
    let combined = bench.merger.combined().unwrap();
    assert_eq!((combined.report.tally.packets, combined.report.tally.late), (2, 1));
}

#[test]
fn the_ledger_keeps_the_latest_result_and_counts_windows() {
    let mut bench = bench(1);
    let mut ledger = TaskLedger::new(bench.merger.plan());
    for seconds in [10, 11, 14] {
        bench.workers[0].packets(&[packet(seconds, 1), packet(seconds, seconds as u32)]);
        while let Ok(Message::Windows(states)) = bench.messages.try_recv() {
            bench.merger.add(states, |_, finished| ledger.add(finished));
        }
    }
    assert_eq!((ledger.windows, ledger.empty_windows, ledger.tally.packets), (2, 2, 4));
    let [heavy, distinct] = ledger.tasks.as_slice() else { panic!("two tasks") };
    assert_eq!(distinct.figures.iter().map(|it| it.round()).collect::<Vec<_>>(), [2.0, 2.0, 0.0, 0.0]);
    assert_eq!(heavy.latest.as_ref().unwrap().end, Timestamp(14 * SECOND));
}
