//! Windows: their boundaries, and packets outside of them.

use super::*;

fn one(time_ns: u64) -> Packet {
    packet(FlowKey::v4(1, 2, 3, 4, Protocol::UDP), time_ns, 100)
}

fn spans(reports: &[WindowReport]) -> Vec<(u64, u64, u64)> {
    let begin = BEGIN / 10;
    reports.iter().map(|report| (report.index - begin, report.windows, report.tally.packets)).collect()
}

fn at(second: u64) -> Packet {
    one((BEGIN + second) * SECOND)
}

#[test]
fn windows_begin_at_multiples_of_their_length() {
    let packets = [at(3), one((BEGIN + 10) * SECOND - 1), at(10), at(19), at(20)];
    let (reports, _) = run(&plan("moments"), &packets);
    assert_eq!(spans(&reports), [(0, 1, 2), (1, 1, 2), (2, 1, 1)]);
    for report in &reports {
        assert_eq!(report.start, Timestamp(report.index * 10 * SECOND));
        assert_eq!(report.end - report.start, Nanos::from_secs(10));
        assert_eq!(report.tally.bytes.0, 100 * report.tally.packets);
    }
}

#[test]
fn consecutive_empty_windows_are_one_report() {
    let packets = [at(0), at(10), at(45), at(50)];
    let (reports, windows) =
        run(&plan("heavy:1%,distinct:src,entropy:src,spread:src,moments,hhh:1%"), &packets);
    assert_eq!(spans(&reports), [(0, 1, 1), (1, 1, 1), (3, 2, 0), (4, 1, 1), (5, 1, 1)]);
    assert_eq!(reports[2].start, Timestamp((BEGIN + 20) * SECOND));
    assert_eq!(reports[2].end, Timestamp((BEGIN + 40) * SECOND));
    for result in &reports[2].results {
        match &result.value {
            TaskValue::Heavy(heavy) => assert!(heavy.keys.is_empty() && heavy.total == 0),
            TaskValue::Distinct(distinct) => assert_eq!(distinct.value, 0.0),
            TaskValue::Entropy(entropy) => assert_eq!((entropy.bits.value, entropy.normalised), (0.0, None)),
            TaskValue::Spread(spread) => assert!(spread.keys.is_empty()),
            TaskValue::Moments(moments) => assert_eq!((moments.l1, moments.l2.value), (0, 0.0)),
            TaskValue::Hierarchy(hierarchy) => assert!(hierarchy.prefixes.is_empty()),
            other => panic!("unexpected task {other:?}"),
        }
    }
    // Three are kept, and none older than three windows.
    assert_eq!(windows.kept().map(|window| window.index - BEGIN / 10).collect::<Vec<_>>(), [4, 5]);
}

#[test]
fn advancing_time_ends_windows() {
    let plan = plan("moments");
    let (mut monitor, mut windows) = (Monitor::new(&plan, 0), Windows::new(&plan));
    monitor.packets(&[at(0)], |state| windows.add(state));
    monitor.advance(Timestamp((BEGIN + 9) * SECOND), |state| windows.add(state));
    assert_eq!(windows.next_report(), None);
    monitor.advance(Timestamp((BEGIN + 10) * SECOND), |state| windows.add(state));
    assert_eq!(spans(&[windows.next_report().unwrap()]), [(0, 1, 1)]);
    monitor.advance(Timestamp((BEGIN + 35) * SECOND), |state| windows.add(state));
    let mut reports: Vec<_> = std::iter::from_fn(|| windows.next_report()).collect();
    assert_eq!(spans(&reports), [(2, 2, 0)]);
    monitor.packets(&[at(36)], |_| panic!("the window is not over"));
    monitor.finish(|state| windows.add(state));
    windows.finish();
    reports = std::iter::from_fn(|| windows.next_report()).collect();
    assert_eq!(spans(&reports), [(3, 1, 1)]);
}

#[test]
fn time_before_the_first_packet_is_not_reported() {
    let plan = plan("moments");
    let (mut monitor, mut windows) = (Monitor::new(&plan, 0), Windows::new(&plan));
    for second in [0, 11, 29, 31] {
        monitor.advance(Timestamp((BEGIN + second) * SECOND), |state| windows.add(state));
        assert_eq!(windows.next_report(), None);
    }
    monitor.packets(&[at(35), at(40)], |state| windows.add(state));
    assert_eq!(spans(&[windows.next_report().unwrap()]), [(3, 1, 1)]);
}

#[test]
fn late_packets_count_in_the_current_window() {
    let packets = [at(5), at(12), at(9), at(13), at(2), at(25), at(24)];
    let (reports, _) = run(&plan("moments"), &packets);
    assert_eq!(spans(&reports), [(0, 1, 1), (1, 1, 4), (2, 1, 2)]);
    assert_eq!(reports.iter().map(|report| report.tally.late).collect::<Vec<_>>(), [0, 2, 0]);
}

/// A jump from the first possible time to the last, over 2^44 windows of a millisecond.
#[test]
fn empty_windows_of_a_clock_jump_are_one_report() {
    let plan = Plan::new(options("moments,change:1ms", Nanos::from_millis(1))).unwrap();
    let (reports, _) = run(&plan, &[one(0), one(u64::MAX), one(7)]);
    let spans: Vec<_> =
        reports.iter().map(|report| (report.index, report.windows, report.tally.packets)).collect();
    let last = u64::MAX / 1_000_000;
    assert_eq!(spans, [(0, 1, 1), (last - 1, last - 1, 0), (last, 1, 2)]);
    assert_eq!(reports[2].end, Timestamp(u64::MAX));
    assert_eq!(reports[2].tally.late, 1);
    let changes = reports.iter().flat_map(|report| &report.results);
    let changes = changes.filter(|result| matches!(result.value, TaskValue::Change(_))).count();
    assert_eq!(changes, 2, "all traffic gone, and all new; no result for the stretch between");
}

#[test]
fn windows_are_emitted_one_by_one_in_order() {
    let plan = plan("moments,heavy:1%");
    let mut monitor = Monitor::new(&plan, 0);
    let packets: Vec<Packet> = (0..50).map(|window| at(10 * window)).collect();
    let mut expected = BEGIN / 10;
    monitor.packets(&packets, |state| {
        assert_eq!((state.index, state.tally.packets), (expected, 1));
        expected += 1;
    });
    assert_eq!(expected, BEGIN / 10 + 49);
}

#[test]
fn kept_windows_merge_to_one_window() {
    let tasks = "heavy:1%,distinct:src,entropy:src,spread:src>10,moments:dst:bytes,hhh:3%";
    let packets = traffic(9000, BEGIN * SECOND, 30 * SECOND, 3);
    let (_, windows) = run(&plan(tasks), &packets);
    let together = windows.together().unwrap();
    assert_eq!((together.windows, together.tally.packets), (3, 9000));
    let whole = Plan::new(options(tasks, Nanos::from_secs(30))).unwrap();
    // Sizes must be equal for equal answers.
    assert_eq!(whole.tasks(), windows.plan().tasks());
    let (reports, _) = run(&whole, &packets);
    assert_eq!((together.start, together.end), (reports[0].start, reports[0].end));
    assert_same(&together.results, &reports[0].results);
}

#[test]
fn a_change_compares_two_periods_and_marks_partial_ones() {
    let packets: Vec<Packet> = (12..100).map(at).collect();
    let (reports, _) = run(&plan("change:30s"), &packets);
    let changes: Vec<_> = reports
        .iter()
        .flat_map(|report| report.results.iter().map(|result| (report.end, result)))
        .map(|(end, result)| match &result.value {
            TaskValue::Change(changes) => (end.seconds() - BEGIN, changes.before, changes.now),
            _ => panic!(),
        })
        .collect();
    assert_eq!(
        changes.iter().map(|change| change.0).collect::<Vec<_>>(),
        [60, 90],
        "the last period is not over"
    );
    assert_eq!(changes.iter().map(|change| change.1.is_partial).collect::<Vec<_>>(), [true, false]);
    assert_eq!(
        changes.iter().map(|change| (change.1.total, change.2.total)).collect::<Vec<_>>(),
        [(18, 30), (30, 30)]
    );
}

/// Traffic that stops at the end of a period or in the middle of one.
#[test]
fn traffic_that_stops_is_reported_as_one_change() {
    for seconds in [30, 15] {
        let packets: Vec<Packet> = (0..seconds).chain(3000..3030).map(at).collect();
        let (reports, _) = run(&plan("change:30s"), &packets);
        let changes: Vec<_> = reports
            .iter()
            .flat_map(|report| &report.results)
            .map(|result| match &result.value {
                TaskValue::Change(changes) => changes,
                _ => panic!(),
            })
            .collect();
        let totals =
            changes.iter().map(|changes| (changes.before.total, changes.now.total, changes.keys.len()));
        assert_eq!(totals.collect::<Vec<_>>(), [(seconds, 0, 1), (0, 30, 1)]);
        assert_eq!(changes[0].now.start.seconds(), BEGIN + 30);
        assert_eq!(changes[1].before.start.seconds(), BEGIN + 2970);
    }
}
