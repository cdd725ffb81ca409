//! Packets that do not arrive, and actions without reports.

use super::*;

#[test]
fn a_pair_leaves_a_broken_path_and_never_returns_to_it() {
    let mut case = Collision::new();
    case.report_halves(MS);
    let sent = case.actions()[0];
    case.controller.address_seen(case.one, sent.address, Timestamp(3 * MS));
    assert!(case.controller.take_due_arrivals(Timestamp(52 * MS)).is_empty(), "packets may be in transit");
    let arrivals = case.controller.take_due_arrivals(Timestamp(53 * MS));
    assert_eq!((arrivals.len(), arrivals[0].action, arrivals[0].from), (1, sent, case.a));
    case.mark_broken(&arrivals[0], 53 * MS);
    let back = case.actions()[1];
    assert_eq!((back.pair, back.address), (case.one, case.a));
    assert_eq!(case.controller.counters().broken_paths, 1);
    case.controller.address_seen(case.one, case.a, Timestamp(55 * MS));
    for round in 0..20 {
        case.report_halves((200 + 100 * round) * MS);
    }
    let again = case
        .actions()
        .iter()
        .filter(|action| action.pair == case.one && action.address == sent.address)
        .count();
    assert_eq!(again, 1, "{:?}", case.actions());
    // After new routes the path may work again.
    case.controller.set_paths(paths());
    assert!(!case.controller.paths().is_broken(case.one, sent.address));
}

#[test]
fn a_restored_pair_stays_without_further_reports() {
    let mut case = Collision::new();
    case.report_halves(MS);
    let sent = case.actions()[0];
    case.controller.address_seen(case.one, sent.address, Timestamp(3 * MS));
    let arrivals = case.controller.take_due_arrivals(Timestamp(53 * MS));
    case.mark_broken(&arrivals[0], 53 * MS);
    case.advance(103 * MS);
    assert_eq!(case.executed.abandoned(), [(case.one, case.a)], "it stays at its old address");
}

#[test]
fn a_pair_does_not_move_back_to_a_broken_path() {
    let mut case = Collision::new();
    case.report_halves(MS);
    let sent = case.actions()[0];
    case.controller.paths.mark_broken(case.one, case.a);
    case.controller.address_seen(case.one, sent.address, Timestamp(3 * MS));
    let arrivals = case.controller.take_due_arrivals(Timestamp(60 * MS));
    case.mark_broken(&arrivals[0], 60 * MS);
    assert_eq!(case.actions().len(), 1);
}

#[test]
fn an_unknown_arrival_is_checked_again() {
    let mut case = Collision::new();
    case.report_halves(MS);
    let sent = case.actions()[0];
    case.controller.address_seen(case.one, sent.address, Timestamp(3 * MS));
    let [arrival] = case.controller.take_due_arrivals(Timestamp(53 * MS))[..] else { panic!("one") };
    case.controller.recheck_arrival(arrival, Timestamp(53 * MS));
    assert!(
        case.controller.take_due_arrivals(Timestamp(102 * MS)).is_empty(),
        "not before `arrival_timeout` has passed"
    );
    let [again] = case.controller.take_due_arrivals(Timestamp(103 * MS))[..] else { panic!("one") };
    assert_eq!((again.action, again.from), (arrival.action, arrival.from));
    assert_eq!(case.controller.counters().broken_paths, 0);
    case.controller.recheck_arrival(again, Timestamp(103 * MS));
    case.pin(case.one, case.a, 110 * MS);
    assert!(case.controller.take_due_arrivals(Timestamp(160 * MS)).is_empty(), "the pair has moved");
}

#[test]
fn a_refused_action_leaves_the_pair_on_its_path() {
    let mut case = Collision::new();
    case.executed.refuses = true;
    case.report_halves(MS);
    let (action, error) = case.controller.take_refused().pop_front().unwrap();
    assert_eq!((action.pair, error.as_str()), (case.one, "unplugged"));
    let counters = case.controller.counters();
    assert_eq!((counters.started, counters.refused), (0, 1));
    case.executed.refuses = false;
    case.report_halves(100 * MS);
    assert_eq!(case.actions()[0].pair, case.one, "it still collides with the other");
}

#[test]
fn an_unreported_action_times_out() {
    let mut case = Collision::new();
    case.controller.pin(case.one, 1, Timestamp(MS));
    case.controller.advance(Timestamp(51 * MS));
    assert_eq!(case.controller.take_finished()[0].outcome, Outcome::TimedOut);
    let counters = case.controller.counters();
    assert_eq!((counters.started, counters.timed_out), (0, 1));
}

#[test]
fn an_effect_seen_before_the_start_is_reported_counts() {
    let mut case = Collision::new();
    case.controller.pin(case.one, 1, Timestamp(MS));
    case.controller.address_seen(case.one, 1, Timestamp(2 * MS));
    assert_eq!(case.controller.take_finished()[0].outcome, Outcome::Confirmed(Nanos(MS)));
}

#[test]
fn queued_commands_are_bounded() {
    let mut case = Collision::with(ControllerOptions { pending: 4, ..ControllerOptions::default() });
    for round in 1..100 {
        case.controller.pin(case.one, round as u8 % 2, Timestamp(round * 100 * MS));
        case.controller.advance(Timestamp(round * 100 * MS + 60 * MS));
    }
    assert!(case.controller.commands.len() <= 16, "{}", case.controller.commands.len());
    assert!(case.controller.counters().throttled > 0);
}

#[test]
fn a_frozen_controller_does_not_move_pairs_back() {
    let mut case = Collision::new();
    case.report_halves(MS);
    let sent = case.actions()[0];
    case.controller.address_seen(case.one, sent.address, Timestamp(3 * MS));
    let arrivals = case.controller.take_due_arrivals(Timestamp(53 * MS));
    case.controller.freeze(true);
    case.mark_broken(&arrivals[0], 53 * MS);
    assert_eq!(case.actions().len(), 1);
    assert!(case.controller.paths().is_broken(case.one, sent.address));
}

#[test]
fn a_pair_that_moved_again_is_not_checked() {
    let mut case = Collision::new();
    case.report_halves(MS);
    let sent = case.actions()[0];
    case.controller.address_seen(case.one, sent.address, Timestamp(3 * MS));
    case.pin(case.one, case.a, 20 * MS);
    assert!(case.controller.take_due_arrivals(Timestamp(60 * MS)).is_empty());
}

#[test]
fn a_restarted_controller_moves_no_pair_back() {
    let mut case = Collision::new();
    case.report_halves(MS);
    let sent = case.actions()[0];
    // The first controller stops. Another one sees the pairs at trestarted present addresses, each alone on its link.
    let mut restarted = Collision::new();
    let links: Vec<LinkNumber> = restarted.controller.paths.of(restarted.one, sent.address).unwrap().to_vec();
    for (round, &link) in links.iter().cycle().take(20).enumerate() {
        let now = (100 + 2 * round as u64) * MS;
        restarted.controller.on_congestion(&congestion(link, now, &[(restarted.one, sent.address, LINE.0)]));
        restarted.controller.on_congestion(&congestion(
            restarted.link,
            now,
            &[(restarted.other, restarted.b, LINE.0)],
        ));
        restarted.carry_out(now);
    }
    assert!(restarted.actions().is_empty(), "{:?}", restarted.actions());
    let latest =
        restarted.controller.decisions().rev().find(|decision| decision.pair == restarted.one).unwrap();
    assert_eq!((latest.from, latest.verdict), (sent.address, Verdict::Keep));
    assert_eq!(restarted.executed.held(), [(restarted.one, sent.address)], "the pair is held");
}
