//! Several workers, one of them slow or gone.

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
        tcp_sequence: 0,
        ethernet: Default::default(),
        tcp_flags: TcpFlags::default(),
        fragment: Fragment::Whole,
        notes: PacketNotes::default(),
    }
}

/// Workers and what they told.
struct Bench {
    collector: Collector,
    workers: Vec<Monitoring>,
    told: Receiver<Message>,
    _sender: Sender<Message>,
}

fn bench(workers: usize) -> Bench {
    let plan = plan(workers);
    let (collector, turns) = Collector::new(&plan);
    let (sender, told) = unbounded();
    let monitoring = |(worker, turns)| Monitoring::new(&plan, worker, turns, sender.clone());
    let workers = turns.into_iter().enumerate().map(monitoring).collect();
    Bench { collector, workers, told, _sender: sender }
}

impl Bench {
    /// Hands what was told to the collector: packets of each window that is over.
    fn collect(&mut self) -> Vec<(u64, u64)> {
        let mut finished = Vec::new();
        while let Ok(message) = self.told.try_recv() {
            let take =
                |_: &Collector, it: Finished| finished.push((it.report.index, it.report.tally.packets));
            match message {
                Message::Windows(states) => self.collector.add(states, take),
                Message::NoMoreWindows(worker) => self.collector.worker_has_gone(worker, take),
                other => panic!("{other:?}"),
            }
        }
        finished
    }
}

#[test]
fn a_window_is_over_when_it_is_over_for_every_worker() {
    let mut bench = bench(2);
    bench.workers[0].packets(&[packet(10, 1), packet(10, 2)]);
    bench.workers[1].packets(&[packet(10, 3)]);
    bench.workers[0].advance(Timestamp(11 * SECOND));
    assert_eq!(bench.collect(), []);
    bench.workers[1].advance(Timestamp(11 * SECOND));
    assert_eq!(bench.collect(), [(10, 3)]);
}

#[test]
fn a_worker_is_never_more_than_a_window_ahead_of_another() {
    let mut bench = bench(2);
    bench.workers[1].packets(&[packet(10, 3)]);
    bench.workers[0].packets(&[packet(10, 1), packet(11, 1)]);
    assert_eq!(bench.collect(), []);
    std::thread::scope(|scope| {
        let mut fast = bench.workers.remove(0);
        let ahead = scope.spawn(move || fast.packets(&[packet(12, 1)]));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!ahead.is_finished(), "it has ended window 10 and the other has not");
        assert!(bench.told.is_empty());
        bench.workers[0].advance(Timestamp(11 * SECOND));
        assert_eq!(bench.collect(), [(10, 2)]);
        ahead.join().unwrap();
    });
}

#[test]
fn nobody_waits_for_a_worker_that_has_gone() {
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
    assert_eq!(bench.collect(), [(14, 1)], "the window under way ends with the input");
}

#[test]
fn a_batch_over_many_windows_is_taken_apart_and_gaps_are_one() {
    let mut bench = bench(1);
    // With one worker each turn comes at once, if somebody collects.
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
        // The last packet is late: it is counted in the window under way.
        assert_eq!(finished, [(10, 2), (11, 1), (39, 0), (40, 2)]);
    });
    let together = bench.collector.together().unwrap();
    assert_eq!((together.report.tally.packets, together.report.tally.late), (2, 1));
}

#[test]
fn the_ledger_remembers_the_latest_and_counts_the_rest() {
    let mut bench = bench(1);
    let mut ledger = TaskLedger::new(bench.collector.plan());
    for seconds in [10, 11, 14] {
        bench.workers[0].packets(&[packet(seconds, 1), packet(seconds, seconds as u32)]);
        while let Ok(Message::Windows(states)) = bench.told.try_recv() {
            bench.collector.add(states, |_, finished| ledger.add(finished));
        }
    }
    assert_eq!((ledger.windows, ledger.empty_windows, ledger.tally.packets), (2, 2, 4));
    let [heavy, distinct] = ledger.tasks.as_slice() else { panic!("two tasks") };
    assert_eq!(distinct.figures.iter().map(|it| it.round()).collect::<Vec<_>>(), [2.0, 2.0, 0.0, 0.0]);
    assert_eq!(heavy.latest.as_ref().unwrap().end, Timestamp(14 * SECOND));
}
