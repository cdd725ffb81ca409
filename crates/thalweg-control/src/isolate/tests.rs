use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proptest::prelude::*;
use thalweg_wire::{BitRate, Bytes};

use super::*;

const SECOND: u64 = 1_000_000_000;

fn key(number: u16) -> FlowKey {
    FlowKey::v4(0x0a00_0001, 0x0a00_0002, number, 5_201, thalweg_wire::Protocol::TCP)
}

fn cheetah() -> Reason {
    Reason::Cheetah {
        collector: Arc::from("tor0"),
        rate: BitRate(100_000_000),
        bytes: Bytes(700_000),
        detected: Timestamp(0),
    }
}

fn at(millis: u64) -> Timestamp {
    Timestamp(10 * SECOND + millis * 1_000_000)
}

fn began(number: u16) -> Input {
    Input::Began { key: key(number), reason: cheetah() }
}

fn isolation(options: IsolationOptions) -> Isolation {
    Isolation::new(options, at(0))
}

fn commands(isolation: &mut Isolation) -> Vec<Command> {
    std::iter::from_fn(|| isolation.next_command()).collect()
}

fn reading(scavenger: QueueReading, flows: &[(u16, u64)]) -> Input {
    let flows = flows.iter().map(|&(number, packets)| {
        (key(number), Some(FlowCounters { packets, bytes: Bytes(packets * 1_000), first: None }))
    });
    Input::Reading(Reading { scavenger, primary: QueueReading::default(), flows: flows.collect() })
}

fn queue(sent: u64, backlog: u64) -> QueueReading {
    QueueReading {
        sent_packets: sent,
        sent_bytes: sent * 1_000,
        backlog: Some(Bytes(backlog)),
        dropped_packets: 0,
    }
}

fn phases(isolation: &mut Isolation) -> Vec<&'static str> {
    isolation.take_changes().iter().map(|report| report.phase.name()).collect()
}

#[test]
fn a_cheetah_is_redirected_confirmed_refreshed_and_released() {
    let mut it = isolation(IsolationOptions::default());
    it.handle(at(0), began(1));
    let id = RedirectionId(1);
    assert_eq!(commands(&mut it), [Command::Redirect(id, key(1))]);
    it.handle(at(1), Input::Redirected(id));
    it.handle(at(100), reading(queue(0, 0), &[(1, 0)]));
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Redirected, "no packet yet");
    it.handle(at(200), reading(queue(3, 0), &[(1, 3)]));
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Confirmed);
    it.handle(at(1_001), Input::Tick);
    assert_eq!(commands(&mut it), [Command::Refresh(vec![(id, key(1))])]);
    it.handle(at(1_100), Input::Ended(key(1)));
    assert_eq!(commands(&mut it), [], "it drains first");
    it.handle(at(1_200), reading(queue(3, 2_000), &[(1, 5)]));
    it.handle(at(1_300), reading(queue(4, 1_000), &[(1, 5)]));
    assert_eq!(commands(&mut it), []);
    it.handle(at(1_400), reading(queue(5, 0), &[(1, 5)]));
    assert_eq!(commands(&mut it), [Command::Release { id, key: key(1), if_packets: Some(5) }]);
    it.handle(at(1_401), Input::Released(id));
    assert_eq!(
        phases(&mut it),
        ["requested", "redirected", "confirmed", "draining", "releasing", "released"]
    );
    let report = it.ended().next().unwrap();
    assert_eq!((report.end_cause, report.is_forced), (Some(EndCause::FlowEnded), false));
    assert_eq!(report.counters, Some(FlowCounters { packets: 5, bytes: Bytes(5_000), first: None }));
    let counters = it.counters();
    assert_eq!((counters.redirected, counters.confirmed, counters.released), (1, 1, 1));
    assert_eq!((counters.packets, it.active().count()), (5, 0));
}

/// Redirects flow 1, which has sent `packets` by then.
fn redirected(options: IsolationOptions, packets: u64) -> Isolation {
    let mut it = isolation(options);
    it.handle(at(0), began(1));
    it.handle(at(0), reading(queue(0, 0), &[]));
    it.handle(at(0), Input::Redirected(RedirectionId(1)));
    it.handle(at(100), reading(queue(packets, 0), &[(1, packets)]));
    commands(&mut it);
    it
}

#[test]
fn a_quiet_flow_is_released_although_its_end_was_not_reported() {
    let mut it = redirected(IsolationOptions::default(), 9);
    it.handle(at(9_000), Input::Tick);
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Confirmed, "no reading says that it is quiet");
    commands(&mut it);
    // It may have sent before the queue or the switch came back.
    it.handle(at(9_050), reading(queue(9, 0), &[(1, 9)]));
    it.handle(at(9_050), Input::Tick);
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Confirmed, "nobody knows whether it was quiet");
    for time in [10_000, 11_050] {
        it.handle(at(time), reading(queue(9, 0), &[(1, 9)]));
    }
    it.handle(at(11_050), Input::Tick);
    assert_eq!(it.of(&key(1)).unwrap().end_cause, Some(EndCause::Quiet));
    commands(&mut it);
    it.handle(at(11_100), reading(queue(9, 0), &[(1, 9)]));
    assert!(matches!(commands(&mut it)[..], [Command::Release { if_packets: Some(9), .. }]));
}

#[test]
fn a_quiet_flow_that_sends_before_it_has_drained_stays() {
    let mut it = redirected(IsolationOptions::default(), 9);
    for time in [1_000, 2_000, 2_100] {
        it.handle(at(time), reading(queue(3, 1_000), &[(1, 9)]));
    }
    it.handle(at(2_100), Input::Tick);
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Draining);
    it.handle(at(2_200), reading(queue(3, 1_000), &[(1, 10)]));
    let flow = it.of(&key(1)).unwrap();
    assert_eq!((flow.phase, flow.end_cause), (Phase::Confirmed, None));
}

#[test]
fn refused_flows_wait_for_a_place_until_they_end() {
    let options = IsolationOptions { max_redirections: 2, ..IsolationOptions::default() };
    let mut it = isolation(options);
    for number in 1..=6 {
        it.handle(at(0), began(number));
    }
    assert_eq!((it.active_count(), it.counters().refused), (2, 4));
    it.handle(at(0), Input::Ended(key(3)));
    for id in [1, 2] {
        it.handle(at(0), Input::Failed(RedirectionId(id), "no".to_owned()));
        it.handle(at(0), Input::Ended(key(id as u16)));
    }
    it.handle(at(1), Input::Tick);
    let active: Vec<FlowKey> = it.active().map(|report| report.key).collect();
    assert_eq!(active, [key(4), key(5)], "3 has ended");
    it.handle(at(2), Input::ReleaseAll);
    it.handle(at(3), Input::Tick);
    assert!(it.active().all(|report| report.key != key(6)));
}

#[test]
fn a_rule_that_another_daemon_left_is_taken_over_at_once() {
    let mut it = isolation(IsolationOptions::default());
    it.handle(at(0), began(1));
    it.handle(at(0), Input::Failed(RedirectionId(1), "another daemon is the master".to_owned()));
    commands(&mut it);
    it.handle(at(10), Input::Began { key: key(1), reason: Reason::Adopted });
    assert_eq!(commands(&mut it), [Command::Redirect(RedirectionId(1), key(1))]);
}

#[test]
fn a_flow_that_sends_again_drains_again() {
    let mut it = redirected(IsolationOptions::default(), 9);
    it.handle(at(200), Input::Ended(key(1)));
    it.handle(at(300), reading(queue(9, 0), &[(1, 9)]));
    it.handle(at(300), Input::StillSending(RedirectionId(1)));
    commands(&mut it);
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Draining);
    it.handle(at(400), reading(queue(10, 0), &[(1, 10)]));
    assert!(matches!(commands(&mut it)[..], [Command::Release { if_packets: Some(10), .. }]));
    assert_eq!(it.counters().put_off, 1);
}

#[test]
fn a_flow_that_never_drains_is_released_after_the_timeout() {
    let mut it = redirected(IsolationOptions::default(), 9);
    it.handle(at(200), Input::Release(key(1)));
    for step in 1..300 {
        it.handle(at(200 + 100 * step), reading(queue(9 + step, 50_000), &[(1, 9 + step)]));
        it.handle(at(200 + 100 * step), Input::Tick);
    }
    assert!(!commands(&mut it).iter().any(|it| matches!(it, Command::Release { .. })));
    it.handle(at(30_200), Input::Tick);
    let id = RedirectionId(1);
    assert!(commands(&mut it).contains(&Command::Release { id, key: key(1), if_packets: None }));
    it.handle(at(30_201), Input::Released(id));
    assert_eq!(it.counters().forced, 1);
}

#[test]
fn a_flapping_detector_changes_nothing() {
    let mut it = redirected(IsolationOptions::default(), 9);
    for step in 0..1_000 {
        it.handle(at(200 + step), Input::Ended(key(1)));
        it.handle(at(200 + step), began(1));
    }
    assert!(!commands(&mut it).iter().any(|it| !matches!(it, Command::Refresh(..))));
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Confirmed);
    assert_eq!(it.counters().repeated, 1_000);
    // While the release is under way, the flow is redirected again afterwards.
    it.handle(at(1_300), Input::Ended(key(1)));
    it.handle(at(1_400), reading(queue(9, 0), &[(1, 9)]));
    it.handle(at(1_401), began(1));
    it.handle(at(1_402), Input::Released(RedirectionId(1)));
    assert!(commands(&mut it).contains(&Command::Redirect(RedirectionId(2), key(1))));
}

#[test]
fn without_counters_a_release_waits_for_quiet_and_the_maximum_time() {
    let options = IsolationOptions { reads_counters: false, ..IsolationOptions::default() };
    let mut it = isolation(options.clone());
    it.handle(at(0), began(1));
    it.handle(at(0), Input::Redirected(RedirectionId(1)));
    it.handle(at(500), Input::Ended(key(1)));
    it.handle(at(2_499), Input::Tick);
    assert!(!commands(&mut it).iter().any(|it| matches!(it, Command::Release { .. })));
    it.handle(at(2_500), Input::Tick);
    assert!(commands(&mut it).iter().any(|it| matches!(it, Command::Release { if_packets: None, .. })));
    let mut it = isolation(options);
    it.handle(at(0), began(1));
    it.handle(at(0), Input::Redirected(RedirectionId(1)));
    it.handle(at(3_600_000), Input::Tick);
    assert_eq!(it.of(&key(1)).unwrap().end_cause, Some(EndCause::MaxTime));
}

#[test]
fn limits_and_exclusions_are_counted() {
    let exclusions = exclusions::Exclusions { ports: vec![7], ..Default::default() };
    let options =
        IsolationOptions { max_redirections: 64, changes_per_second: 10, exclusions, ..Default::default() };
    let mut it = isolation(options);
    for number in 0..50_000 {
        it.handle(at(0), began(number));
    }
    assert_eq!(commands(&mut it).len(), 10, "as many as in one second");
    let counters = it.counters();
    assert_eq!((counters.requests, counters.excluded, counters.refused), (50_000, 1, 50_000 - 1 - 64));
    assert_eq!((it.active().count(), counters.limited), (64, 54));
    it.handle(at(1_000), Input::Tick);
    assert_eq!(commands(&mut it).len(), 10);
}

#[test]
fn a_dry_run_records_and_commands_nothing() {
    let mut it = isolation(IsolationOptions { dry_run: true, ..IsolationOptions::default() });
    it.handle(at(0), began(1));
    it.handle(at(0), Input::Ended(key(1)));
    assert_eq!((commands(&mut it), phases(&mut it)), (vec![], vec!["withheld"]));
    assert_eq!((it.counters().withheld, it.ended().count()), (1, 1));
}

#[test]
fn a_pin_stays_until_a_user_releases_it_and_holds_against_the_detector() {
    let mut it = isolation(IsolationOptions::default());
    it.handle(at(0), Input::Began { key: key(1), reason: Reason::Pinned });
    it.handle(at(0), Input::Redirected(RedirectionId(1)));
    it.handle(at(10), reading(queue(0, 0), &[(1, 0)]));
    it.handle(at(20), Input::Ended(key(1)));
    it.handle(at(99_000), Input::Tick);
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Redirected);
    it.handle(at(99_000), Input::Release(key(1)));
    it.handle(at(99_001), began(1));
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Draining, "the user's release holds");
}

#[test]
fn failures_are_retried_and_then_reported() {
    let mut it = isolation(IsolationOptions::default());
    it.handle(at(0), began(1));
    let mut now = 0;
    for attempt in 1..=5 {
        assert_eq!(commands(&mut it), [Command::Redirect(RedirectionId(1), key(1))], "attempt {attempt}");
        it.handle(at(now), Input::Failed(RedirectionId(1), "no interface".to_owned()));
        let wait = if attempt < 5 { 1_000 << (attempt - 1) } else { 10_000 };
        assert_eq!(it.of(&key(1)).unwrap().retry_at, Some(at(now + wait)), "attempt {attempt}");
        now += wait;
        it.handle(at(now - 1), Input::Tick);
        assert_eq!(commands(&mut it), []);
        it.handle(at(now), Input::Tick);
    }
    let report = it.ended().next().unwrap();
    assert_eq!((report.phase, report.error.as_deref()), (Phase::Failed, Some("no interface")));
    assert_eq!((it.counters().errors, it.counters().failed, it.counters().renewed), (5, 1, 1));
    assert_eq!(commands(&mut it), [Command::Redirect(RedirectionId(2), key(1))], "the next redirection");
}

fn without_counters() -> IsolationOptions {
    IsolationOptions { reads_counters: false, ..IsolationOptions::default() }
}

/// Answers that the first `attempts` requests to redirect flow 1 had an unknown result. Returns the time of the last answer.
fn in_doubt(it: &mut Isolation, attempts: u32) -> u64 {
    it.handle(at(0), began(1));
    let mut now = 0;
    for attempt in 1..=attempts {
        assert_eq!(commands(it), [Command::Redirect(RedirectionId(1), key(1))], "attempt {attempt}");
        it.handle(at(now), Input::Unknown(RedirectionId(1), "timed out".to_owned()));
        if attempt < attempts {
            now += 1_000 << (attempt - 1);
            it.handle(at(now), Input::Tick);
        }
    }
    now
}

#[test]
fn a_flow_that_may_be_redirected_is_released_before_it_is_given_up() {
    let id = RedirectionId(1);
    let release = [Command::Release { id, key: key(1), if_packets: None }];
    let mut it = isolation(without_counters());
    let now = in_doubt(&mut it, 5);
    assert_eq!(commands(&mut it), release);
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Releasing);
    // The release fails too, and the flow ends and begins meanwhile.
    it.handle(at(now), Input::ReleaseFailed(id, "no router".to_owned()));
    it.handle(at(now), Input::Ended(key(1)));
    it.handle(at(now), began(1));
    it.handle(at(now + 999), Input::Tick);
    assert_eq!(commands(&mut it), []);
    it.handle(at(now + 1_000), Input::Tick);
    assert_eq!(commands(&mut it), release);
    it.handle(at(now + 1_000), Input::Released(id));
    let report = it.ended().next().unwrap();
    assert_eq!((report.phase, report.error.as_deref()), (Phase::Failed, Some("timed out")));
    assert_eq!(it.of(&key(1)).unwrap().retry_at, Some(at(now + 11_000)), "the next redirection waits");
    assert_eq!((it.counters().errors, it.counters().failed, it.counters().cancelled), (6, 1, 0));

    // It is cancelled while it waits.
    let mut it = isolation(without_counters());
    let now = in_doubt(&mut it, 2);
    it.handle(at(now), Input::Ended(key(1)));
    assert_eq!(commands(&mut it), release);
    it.handle(at(now), Input::Released(id));
    assert_eq!((it.active_count(), it.counters().cancelled, it.counters().released), (0, 1, 0));
    assert_eq!(it.ended().next().unwrap().phase, Phase::Released);

    // The last attempt is known to have failed, an earlier one is not; and the flow has ended.
    let mut it = isolation(without_counters());
    let now = in_doubt(&mut it, 2) + 2_000;
    it.handle(at(now), Input::Tick);
    it.handle(at(now), Input::Ended(key(1)));
    commands(&mut it);
    it.handle(at(now), Input::Failed(id, "refused".to_owned()));
    assert_eq!(commands(&mut it), release);
}

#[test]
fn a_release_is_repeated_until_it_succeeds() {
    let id = RedirectionId(1);
    let mut it = isolation(IsolationOptions { max_redirections: 1, ..without_counters() });
    it.handle(at(0), began(1));
    it.handle(at(0), Input::Redirected(id));
    it.handle(at(0), Input::Ended(key(1)));
    commands(&mut it);
    it.take_changes();
    let (mut seconds, mut changes) = (Vec::new(), Vec::new());
    for second in 2..600 {
        it.handle(at(second * 1_000), Input::Tick);
        for command in commands(&mut it) {
            if let Command::Release { if_packets, .. } = command {
                assert_eq!(if_packets, None);
                seconds.push(second);
                it.handle(at(second * 1_000), Input::ReleaseFailed(id, "no router".to_owned()));
            }
        }
        let report = it.of(&key(1)).unwrap();
        assert_eq!(report.phase, Phase::Releasing, "at {second} s");
        assert_eq!(report.error.as_deref(), Some("cannot release the flow: no router"));
        changes.extend(phases(&mut it));
    }
    assert_eq!(seconds, [2, 3, 5, 9, 17, 33, 65, 125, 185, 245, 305, 365, 425, 485, 545]);
    assert_eq!(changes, ["releasing", "releasing"], "the request and its first failure");
    assert_eq!((it.counters().errors, it.counters().failed), (15, 0));
    it.handle(at(600_000), began(2));
    assert_eq!(it.counters().refused, 1, "it counts towards the maximum");
    // A user does not want to wait.
    it.handle(at(600_000), Input::Release(key(1)));
    it.handle(at(600_000), Input::Tick);
    assert_eq!(commands(&mut it).len(), 1);
    it.handle(at(600_001), Input::Released(id));
    let report = it.ended().next().unwrap();
    assert_eq!((report.phase, report.end_cause), (Phase::Released, Some(EndCause::FlowEnded)));

    // With counters, the flow drains again before each attempt.
    let mut it = redirected(IsolationOptions::default(), 9);
    it.handle(at(200), Input::Ended(key(1)));
    let mut releases = 0;
    for millis in (300..300_000).step_by(100) {
        it.handle(at(millis), reading(queue(9, 0), &[(1, 9)]));
        it.handle(at(millis), Input::Tick);
        for command in commands(&mut it) {
            if matches!(command, Command::Release { .. }) {
                releases += 1;
                it.handle(at(millis), Input::ReleaseFailed(id, "no interface".to_owned()));
            }
        }
    }
    assert_eq!((releases, it.active_count(), it.counters().failed), (10, 1, 0));
}

#[test]
fn a_request_that_the_stop_cancels_has_not_failed() {
    let mut it = isolation(without_counters());
    it.handle(at(0), began(1));
    it.handle(at(0), Input::ReleaseAll);
    it.handle(at(0), Input::Failed(RedirectionId(1), "the daemon stops".to_owned()));
    let counters = it.counters();
    assert_eq!((counters.cancelled, counters.failed, counters.errors, it.active_count()), (1, 0, 0, 0));
}

/// Lets flow 1 send 10 packets every 500 ms in these seconds, and the queue receive all of them or none. Carries out commands.
/// Returns the times of redirections in milliseconds.
fn drive(it: &mut Isolation, seconds: std::ops::Range<u64>, is_received: bool) -> Vec<u64> {
    let mut times = Vec::new();
    for millis in (seconds.start * 1_000..seconds.end * 1_000).step_by(500) {
        let sent = |since: Timestamp| at(millis).since(since).0 / 50_000_000;
        let redirected = it.of(&key(1)).and_then(|report| report.redirected);
        let flows: Vec<(u16, u64)> = redirected.map(|since| (1, sent(since))).into_iter().collect();
        it.handle(at(millis), reading(queue(if is_received { sent(at(0)) } else { 0 }, 0), &flows));
        it.handle(at(millis), Input::Tick);
        for command in commands(it) {
            if let Command::Redirect(id, _) = command {
                times.push(millis);
                it.handle(at(millis), Input::Redirected(id));
            }
        }
    }
    times
}

#[test]
fn a_flow_that_fails_for_a_lasting_reason_is_redirected_ever_more_rarely_and_then_left_alone() {
    let mut it = isolation(IsolationOptions::default());
    it.handle(at(0), began(1));
    let times = drive(&mut it, 0..3_600, false);
    // Each takes 5.5 s to fail; then 10, 20, 40, 80, 160, 300 and 300 s.
    assert_eq!(times, [0, 15_500, 41_000, 86_500, 172_000, 337_500, 643_000, 948_500]);
    let counters = it.counters();
    assert_eq!((counters.requests, counters.failed, counters.ineffective, counters.renewed), (1, 8, 8, 7));
    assert_eq!(it.active_count(), 0);
    let last = it.ended().next().unwrap();
    assert_eq!((last.try_number, last.retry_at), (8, None));
    let first = it.ended().last().unwrap();
    assert_eq!((first.try_number, first.retry_at), (1, Some(at(15_500))));
    // A pinned flow is not left alone.
    let mut pinned = isolation(IsolationOptions::default());
    pinned.handle(at(0), Input::Began { key: key(1), reason: Reason::Pinned });
    assert_eq!(drive(&mut pinned, 0..1_600, false).len(), times.len() + 2);
    // It is a cheetah again.
    it.handle(at(3_600_000), Input::Ended(key(1)));
    it.handle(at(3_600_000), began(1));
    assert_eq!(it.of(&key(1)).unwrap().try_number, 1);
}

#[test]
fn a_flow_is_redirected_again_after_a_repair() {
    let mut it = isolation(IsolationOptions::default());
    it.handle(at(0), began(1));
    drive(&mut it, 0..25, false);
    let waiting = it.of(&key(1)).unwrap();
    assert_eq!((waiting.phase, waiting.try_number), (Phase::Waiting, 3));
    assert_eq!(waiting.retry_at, Some(at(41_000)));
    let error = waiting.error.as_deref().unwrap();
    assert!(error.starts_with("the scavenger queue receives nothing"), "{error}");
    // Someone repairs the queue.
    drive(&mut it, 25..43, true);
    let confirmed = it.of(&key(1)).unwrap();
    assert_eq!((confirmed.phase, confirmed.error.as_deref()), (Phase::Confirmed, None));
    assert_eq!((confirmed.reason.clone(), confirmed.retry_at), (cheetah(), None));
    // It has worked for long when it fails next.
    drive(&mut it, 43..700, true);
    drive(&mut it, 700..710, false);
    assert_eq!(it.of(&key(1)).unwrap().try_number, 2);
}

#[test]
fn the_end_of_the_flow_cancels_the_next_redirection_and_a_pin_hastens_it() {
    let failed = || {
        let mut it = isolation(IsolationOptions::default());
        it.handle(at(0), began(1));
        drive(&mut it, 0..10, false);
        assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Waiting);
        it
    };
    for end in [Input::Ended(key(1)), Input::Release(key(1)), Input::ReleaseAll] {
        let mut it = failed();
        it.handle(at(10_000), end);
        assert_eq!((it.active_count(), it.counters().cancelled, it.counters().renewed), (0, 1, 0));
        assert_eq!(drive(&mut it, 10..100, false), [0; 0]);
    }
    let mut it = failed();
    it.handle(at(10_000), Input::Began { key: key(1), reason: Reason::Pinned });
    assert_eq!(drive(&mut it, 10..11, true), [10_000]);
    assert_eq!(it.of(&key(1)).unwrap().reason, Reason::Pinned);
}

#[test]
fn a_flow_that_is_a_cheetah_again_before_it_is_redirected_stays() {
    let mut it = isolation(IsolationOptions::default());
    it.handle(at(0), began(1));
    it.handle(at(1), Input::Ended(key(1)));
    it.handle(at(2), began(1));
    it.handle(at(3), Input::Redirected(RedirectionId(1)));
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Redirected);
    it.handle(at(4), Input::Ended(key(1)));
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Draining);
}

#[test]
fn a_release_that_fails_does_not_undo_the_release_of_a_user() {
    let mut it = redirected(IsolationOptions::default(), 9);
    it.handle(at(200), Input::Ended(key(1)));
    it.handle(at(300), reading(queue(9, 0), &[(1, 9)]));
    it.handle(at(301), Input::Began { key: key(1), reason: Reason::Pinned });
    it.handle(at(302), Input::ReleaseFailed(RedirectionId(1), "fails".to_owned()));
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Confirmed, "it is pinned");
    it.handle(at(303), Input::Release(key(1)));
    it.handle(at(400), reading(queue(9, 0), &[(1, 9)]));
    it.handle(at(401), Input::Released(RedirectionId(1)));
    assert!(it.of(&key(1)).is_none());
}

/// 20,000 flows at once, of which 16,000 may be redirected, 4,000 per second.
#[test]
fn a_crowd_of_cheetahs_is_redirected_in_turn_and_refreshed_in_parts() {
    let mut it = isolation(IsolationOptions {
        max_redirections: 16_000,
        changes_per_second: 4_000,
        ..IsolationOptions::default()
    });
    (0..20_000).for_each(|flow| it.handle(at(0), began(flow)));
    assert_eq!((it.counters().refused, it.active().count()), (4_000, 16_000));
    let mut refreshed = 0;
    for millis in (0..5_000).step_by(20) {
        it.handle(at(millis), Input::Tick);
        let (mut redirected, mut extended) = (0, 0);
        for command in commands(&mut it) {
            match command {
                Command::Redirect(id, _) => {
                    redirected += 1;
                    it.handle(at(millis), Input::Redirected(id));
                }
                Command::Refresh(flows) => extended += flows.len(),
                other => panic!("{other:?}"),
            }
        }
        // 80 per tick, and eight ticks go through all of them.
        assert!(redirected <= if millis == 0 { 4_000 } else { 8 * 80 }, "{redirected} at {millis} ms");
        assert!(extended <= MIN_PER_TICK, "{extended} at {millis} ms");
        refreshed += extended;
    }
    assert_eq!(it.counters().redirected, 16_000);
    let late = |report: &&RedirectionReport| report.redirected.unwrap() > at(3_000 + 8 * 20);
    assert_eq!(
        it.active().filter(late).count(),
        0,
        "all within the three seconds that the limit takes, and one turn"
    );
    // Each once per second since it was redirected.
    assert!((40_000..=56_000).contains(&refreshed), "{refreshed}");
}

#[test]
fn an_entry_that_others_removed_is_restored() {
    let mut it = redirected(IsolationOptions::default(), 9);
    it.handle(at(200), reading(queue(9, 0), &[]));
    assert_eq!(commands(&mut it), [], "it was not read");
    let flows = vec![(key(1), None), (key(2), None)];
    it.handle(at(300), Input::Reading(Reading { flows, ..Reading::default() }));
    assert_eq!(commands(&mut it), [Command::Restore(RedirectionId(1), key(1))]);
    assert_eq!(it.counters().restored, 1);
}

/// Lets the flow send 10 packets every 500 ms until a time, and the queue receive as many as `received` says.
fn send(it: &mut Isolation, until: u64, received: impl Fn(u64) -> u64) {
    for millis in (500..=until).step_by(500) {
        let sent = millis / 50;
        it.handle(at(millis), reading(queue(received(sent), 0), &[(1, sent)]));
        it.handle(at(millis), Input::Tick);
    }
}

#[test]
fn an_actuator_without_effect_is_noticed_and_undone() {
    let scavenger =
        message::ScavengerName { name: "queue 1 of port eth2".into(), advice: "Check it.".into() };
    let mut it = redirected(IsolationOptions { scavenger, ..IsolationOptions::default() }, 0);
    send(&mut it, 5_000, |_| 0);
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Redirected, "not yet");
    commands(&mut it);
    send(&mut it, 6_000, |_| 0);
    let report = it.ended().next().unwrap();
    assert_eq!((report.phase, it.counters().ineffective, it.counters().failed), (Phase::Failed, 1, 1));
    let error = report.error.as_deref().unwrap();
    assert!(
        error.starts_with("the queue 1 of port eth2 receives nothing: 110 packets of the flow"),
        "{error}"
    );
    assert!(error.ends_with("did not change. Check it."), "{error}");
    let id = RedirectionId(1);
    assert!(commands(&mut it).contains(&Command::Release { id, key: key(1), if_packets: None }));
    it.handle(at(6_001), Input::Released(id));
    assert_eq!(it.counters().released, 0, "it has failed");
}

#[test]
fn a_little_traffic_of_others_does_not_hide_that() {
    let mut it = redirected(IsolationOptions::default(), 0);
    // One packet of others for ten of the flow.
    send(&mut it, 6_000, |sent| sent / 10);
    let report = it.ended().next().unwrap();
    assert_eq!((report.phase, report.confirmed, it.counters().ineffective), (Phase::Failed, None, 1));
    let error = report.error.as_deref().unwrap();
    assert!(
        error.contains("does not receive the flow: 110 packets of the flow were redirected in 5.40 s"),
        "{error}"
    );
    assert!(error.ends_with("and it received 11 of all flows."), "{error}");
}

#[test]
fn a_slow_queue_is_an_effect() {
    let mut it = redirected(IsolationOptions::default(), 0);
    // It sends a fifth of the packets; the others wait.
    send(&mut it, 20_000, |sent| sent / 5);
    assert_eq!((it.of(&key(1)).unwrap().phase, it.counters().failed), (Phase::Confirmed, 0));
}

#[test]
fn packets_before_the_adoption_do_not_count_against_it() {
    let mut it = isolation(IsolationOptions::default());
    it.handle(at(0), reading(queue(7, 0), &[]));
    it.handle(at(0), Input::Began { key: key(1), reason: Reason::Adopted });
    it.handle(at(0), Input::Redirected(RedirectionId(1)));
    for millis in (100..8_000).step_by(100) {
        it.handle(at(millis), reading(queue(7 + millis, 0), &[(1, 1_000_000 + millis)]));
    }
    assert_eq!((it.counters().confirmed, it.counters().failed), (1, 0));
}

#[test]
fn an_actuator_that_loses_its_effect_is_noticed() {
    let mut it = redirected(IsolationOptions::default(), 0);
    // A filter is removed after 50 packets.
    send(&mut it, 9_000, |sent| sent.min(50));
    assert_eq!(it.counters().confirmed, 1);
    assert_eq!(it.ended().next().unwrap().phase, Phase::Failed);
}

#[test]
fn a_flow_that_falls_silent_proves_nothing() {
    let mut it = redirected(IsolationOptions::default(), 0);
    it.handle(at(100), Input::Began { key: key(1), reason: Reason::Pinned });
    // The counter of the flow is read 500 ms late, after that of the queue.
    for start in [10_000, 90_000, 170_000] {
        it.handle(at(start), reading(queue(start, 0), &[(1, start - 1)]));
        it.handle(at(start + 500), reading(queue(start, 0), &[(1, start)]));
        it.handle(at(start + 60_000), reading(queue(start, 0), &[(1, start)]));
    }
    assert_eq!(it.of(&key(1)).unwrap().phase, Phase::Confirmed);
    // Packets that wait are in the queue.
    for millis in (200_000..220_000).step_by(500) {
        it.handle(at(millis), reading(queue(170_000, 9_000), &[(1, millis)]));
    }
    assert_eq!((it.active().count(), it.counters().ineffective), (1, 0));
}

#[test]
fn a_redirection_that_the_actuator_lost_has_failed_with_its_reason() {
    let mut it = redirected(IsolationOptions::default(), 9);
    it.handle(at(200), Input::Lost(RedirectionId(1), "another controller".to_owned()));
    let report = it.ended().next().unwrap();
    assert_eq!((report.phase, report.error.as_deref()), (Phase::Failed, Some("another controller")));
    assert_eq!((commands(&mut it), it.counters().failed), (vec![], 1));
}

/// A step of the property test.
#[derive(Clone, Debug)]
enum Step {
    Began(u16, bool),
    Ended(u16),
    Release(u16),
    Send(u16, u64),
    Serve(usize),
    Wait(u64),
    Fail,
    Hang,
}

/// An actuator with a real queue: flows whose entry exists are in it, all others are sent at once. Checks that no packet of a
/// flow overtakes an earlier one.
#[derive(Default)]
struct Network {
    entries: BTreeMap<FlowKey, u64>,
    queue: VecDeque<(FlowKey, u64)>,
    sent: u64,
    next: BTreeMap<FlowKey, u64>,
    arrived: BTreeMap<FlowKey, u64>,
    fails: bool,
    /// Whether requests have an unknown result. Half of them take effect.
    hangs: bool,
    requests: u64,
    /// Flows that were released in any case.
    forced: Vec<FlowKey>,
}

impl Network {
    fn send(&mut self, key: FlowKey, count: u64) {
        for _ in 0..count {
            let number = self.next.entry(key).or_default();
            *number += 1;
            let number = *number;
            match self.entries.get_mut(&key) {
                Some(packets) => {
                    *packets += 1;
                    self.queue.push_back((key, number));
                }
                None => self.arrive(key, number),
            }
        }
    }

    fn serve(&mut self, count: usize) {
        for _ in 0..count {
            let Some((key, number)) = self.queue.pop_front() else { return };
            self.sent += 1;
            self.arrive(key, number);
        }
    }

    fn arrive(&mut self, key: FlowKey, number: u64) {
        let last = self.arrived.entry(key).or_default();
        assert!(number > *last || self.forced.contains(&key), "{key}: {number} after {last}");
        *last = number.max(*last);
    }

    fn execute(&mut self, command: Command) -> Option<Input> {
        match command {
            Command::Redirect(id, _) if self.fails => Some(Input::Failed(id, "fails".to_owned())),
            Command::Redirect(id, key) if self.hangs => {
                self.requests += 1;
                if self.requests.is_multiple_of(2) {
                    self.entries.entry(key).or_default();
                }
                Some(Input::Unknown(id, "hangs".to_owned()))
            }
            Command::Redirect(id, key) => {
                // An entry whose release failed may still exist.
                self.entries.entry(key).or_default();
                Some(Input::Redirected(id))
            }
            Command::Refresh(redirections) => {
                let is_redirected = |(_, key): &(RedirectionId, FlowKey)| self.entries.contains_key(key);
                assert!(redirections.iter().all(is_redirected), "{redirections:?}");
                None
            }
            Command::Restore(_, key) => {
                self.entries.entry(key).or_default();
                None
            }
            Command::Release { id, .. } if self.fails => Some(Input::ReleaseFailed(id, "fails".to_owned())),
            Command::Release { id, key, if_packets } => {
                // A request with an unknown result may have had no effect.
                let Some(&packets) = self.entries.get(&key) else { return Some(Input::Released(id)) };
                if if_packets.is_some_and(|wanted| wanted != packets) {
                    return Some(Input::StillSending(id));
                }
                if if_packets.is_none() {
                    self.forced.push(key);
                }
                self.entries.remove(&key);
                Some(Input::Released(id))
            }
        }
    }

    fn reading(&self, flows: &[FlowKey]) -> Reading {
        let count = |&packets: &u64| FlowCounters { packets, bytes: Bytes(packets), first: None };
        Reading {
            scavenger: QueueReading {
                sent_packets: self.sent,
                sent_bytes: self.sent,
                dropped_packets: 0,
                backlog: Some(Bytes(self.queue.len() as u64)),
            },
            primary: QueueReading::default(),
            flows: flows.iter().map(|key| (*key, self.entries.get(key).map(count))).collect(),
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let flow = 0..6_u16;
    prop_oneof![
        3 => (flow.clone(), any::<bool>()).prop_map(|(flow, pinned)| Step::Began(flow, pinned)),
        2 => flow.clone().prop_map(Step::Ended),
        1 => flow.clone().prop_map(Step::Release),
        6 => (flow, 1..9_u64).prop_map(|(flow, count)| Step::Send(flow, count)),
        4 => (0..12_usize).prop_map(Step::Serve),
        4 => (1..2_000_u64).prop_map(Step::Wait),
        1 => Just(Step::Fail),
        1 => Just(Step::Hang),
    ]
}

fn options() -> IsolationOptions {
    IsolationOptions { max_redirections: 4, changes_per_second: 20, ..IsolationOptions::default() }
}

/// Runs the steps; then no flow sends, and the queue is served. Returns all changes of phase.
fn run(steps: &[Step]) -> (Vec<RedirectionReport>, IsolationCounters) {
    let (mut it, mut network, mut now) = (isolation(options()), Network::default(), 0);
    let mut changes = Vec::new();
    let mut drive = |it: &mut Isolation, network: &mut Network, now: u64| {
        while let Some(command) = it.next_command() {
            if let Some(answer) = network.execute(command) {
                it.handle(at(now), answer);
            }
        }
        let flows = it.next_to_read(3);
        it.handle(at(now), Input::Reading(network.reading(&flows)));
        it.handle(at(now), Input::Tick);
        assert!(it.active().count() <= 4 && it.by_key.len() == it.active.len());
        assert!(it.commands.len() <= 3 * 4, "commands are bounded");
        changes.extend(it.take_changes());
    };
    for step in steps {
        match *step {
            Step::Began(number, true) => {
                it.handle(at(now), Input::Began { key: key(number), reason: Reason::Pinned });
            }
            Step::Began(number, false) => it.handle(at(now), began(number)),
            Step::Ended(number) => it.handle(at(now), Input::Ended(key(number))),
            Step::Release(number) => it.handle(at(now), Input::Release(key(number))),
            Step::Send(number, count) => network.send(key(number), count),
            Step::Serve(count) => network.serve(count),
            Step::Wait(millis) => now += millis,
            Step::Fail => network.fails = !network.fails,
            Step::Hang => network.hangs = !network.hangs,
        }
        drive(&mut it, &mut network, now);
    }
    (network.fails, network.hangs) = (false, false);
    for number in 0..6 {
        it.handle(at(now), Input::Release(key(number)));
    }
    for _ in 0..600 {
        now += 100;
        network.serve(100);
        drive(&mut it, &mut network, now);
    }
    assert_eq!(it.active().count(), 0, "nothing stays redirected");
    assert!(network.entries.is_empty(), "{:?}", network.entries);
    (changes, it.counters())
}

proptest! {
    #[test]
    fn every_flow_is_released_in_order_and_counted(steps in proptest::collection::vec(step(), 1..120)) {
        let (changes, counters) = run(&steps);
        let started = changes.iter().filter(|it| it.phase == Phase::Requested).map(|it| it.id);
        let started: std::collections::BTreeSet<_> = started.collect();
        prop_assert!(counters.redirected <= started.len() as u64);
        prop_assert!(counters.confirmed <= counters.redirected);
        prop_assert!(counters.released <= counters.redirected);
        // Every redirection in force ended as released or failed.
        let ended = |phase| changes.iter().filter(|it| it.phase == phase).count() as u64;
        prop_assert_eq!(counters.released + counters.cancelled, ended(Phase::Released));
        prop_assert_eq!(counters.failed, ended(Phase::Failed));
        prop_assert!(counters.requests >= counters.repeated + counters.excluded + counters.refused);
        prop_assert_eq!((changes, counters), run(&steps), "the same inputs give the same commands");
    }
}
