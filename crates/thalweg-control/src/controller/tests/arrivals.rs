//! Packets that do not arrive, and actions without reports.

use super::*;

#[test]
fn a_pair_leaves_a_broken_path_and_never_returns_to_it() {
    let mut its = Collision::new();
    its.report_halves(MS);
    let sent = its.done()[0];
    its.controller.address_seen(its.one, sent.address, Timestamp(3 * MS));
    assert!(its.controller.take_due_arrivals(Timestamp(52 * MS)).is_empty(), "packets may be in transit");
    let arrivals = its.controller.take_due_arrivals(Timestamp(53 * MS));
    assert_eq!((arrivals.len(), arrivals[0].action, arrivals[0].from), (1, sent, its.a));
    its.mark_broken(&arrivals[0], 53 * MS);
    let back = its.done()[1];
    assert_eq!((back.pair, back.address), (its.one, its.a));
    assert_eq!(its.controller.counters().astray, 1);
    its.controller.address_seen(its.one, its.a, Timestamp(55 * MS));
    for round in 0..20 {
        its.report_halves((200 + 100 * round) * MS);
    }
    let again =
        its.done().iter().filter(|action| action.pair == its.one && action.address == sent.address).count();
    assert_eq!(again, 1, "{:?}", its.done());
    // After new routes the path may work again.
    its.controller.set_paths(paths());
    assert!(!its.controller.paths().is_broken(its.one, sent.address));
}

#[test]
fn a_restored_pair_stays_without_further_reports() {
    let mut its = Collision::new();
    its.report_halves(MS);
    let sent = its.done()[0];
    its.controller.address_seen(its.one, sent.address, Timestamp(3 * MS));
    let arrivals = its.controller.take_due_arrivals(Timestamp(53 * MS));
    its.mark_broken(&arrivals[0], 53 * MS);
    its.advance(103 * MS);
    assert_eq!(its.done.failed(), [(its.one, its.a)], "it stays at its old address");
}

#[test]
fn a_pair_does_not_move_back_to_a_broken_path() {
    let mut its = Collision::new();
    its.report_halves(MS);
    let sent = its.done()[0];
    its.controller.paths.mark_broken(its.one, its.a);
    its.controller.address_seen(its.one, sent.address, Timestamp(3 * MS));
    let arrivals = its.controller.take_due_arrivals(Timestamp(60 * MS));
    its.mark_broken(&arrivals[0], 60 * MS);
    assert_eq!(its.done().len(), 1);
}

#[test]
fn an_unknown_arrival_is_checked_again() {
    let mut its = Collision::new();
    its.report_halves(MS);
    let sent = its.done()[0];
    its.controller.address_seen(its.one, sent.address, Timestamp(3 * MS));
    let [arrival] = its.controller.take_due_arrivals(Timestamp(53 * MS))[..] else { panic!("one") };
    its.controller.recheck_arrival(arrival, Timestamp(53 * MS));
    assert!(
        its.controller.take_due_arrivals(Timestamp(102 * MS)).is_empty(),
        "not before `patience` has passed"
    );
    let [again] = its.controller.take_due_arrivals(Timestamp(103 * MS))[..] else { panic!("one") };
    assert_eq!((again.action, again.from), (arrival.action, arrival.from));
    assert_eq!(its.controller.counters().astray, 0);
    its.controller.recheck_arrival(again, Timestamp(103 * MS));
    its.pin(its.one, its.a, 110 * MS);
    assert!(its.controller.take_due_arrivals(Timestamp(160 * MS)).is_empty(), "the pair has moved");
}

#[test]
fn a_refused_action_leaves_the_pair_on_its_path() {
    let mut its = Collision::new();
    its.done.refuses = true;
    its.report_halves(MS);
    let (action, error) = its.controller.take_refused().pop_front().unwrap();
    assert_eq!((action.pair, error.as_str()), (its.one, "unplugged"));
    let counters = its.controller.counters();
    assert_eq!((counters.begun, counters.refused), (0, 1));
    its.done.refuses = false;
    its.report_halves(100 * MS);
    assert_eq!(its.done()[0].pair, its.one, "it still collides with the other");
}

#[test]
fn an_unreported_action_expires() {
    let mut its = Collision::new();
    its.controller.pin(its.one, 1, Timestamp(MS));
    its.controller.advance(Timestamp(51 * MS));
    assert_eq!(its.controller.take_finished()[0].outcome, Outcome::Expired);
    let counters = its.controller.counters();
    assert_eq!((counters.begun, counters.expired), (0, 1));
}

#[test]
fn an_effect_seen_before_the_start_is_reported_counts() {
    let mut its = Collision::new();
    its.controller.pin(its.one, 1, Timestamp(MS));
    its.controller.address_seen(its.one, 1, Timestamp(2 * MS));
    assert_eq!(its.controller.take_finished()[0].outcome, Outcome::Confirmed(Nanos(MS)));
}

#[test]
fn queued_commands_are_bounded() {
    let mut its = Collision::with(ControllerOptions { pending: 4, ..ControllerOptions::default() });
    for round in 1..100 {
        its.controller.pin(its.one, round as u8 % 2, Timestamp(round * 100 * MS));
        its.controller.advance(Timestamp(round * 100 * MS + 60 * MS));
    }
    assert!(its.controller.commands.len() <= 16, "{}", its.controller.commands.len());
    assert!(its.controller.counters().crowded > 0);
}

#[test]
fn a_frozen_controller_does_not_move_pairs_back() {
    let mut its = Collision::new();
    its.report_halves(MS);
    let sent = its.done()[0];
    its.controller.address_seen(its.one, sent.address, Timestamp(3 * MS));
    let arrivals = its.controller.take_due_arrivals(Timestamp(53 * MS));
    its.controller.freeze(true);
    its.mark_broken(&arrivals[0], 53 * MS);
    assert_eq!(its.done().len(), 1);
    assert!(its.controller.paths().is_broken(its.one, sent.address));
}

#[test]
fn a_pair_that_moved_again_is_not_checked() {
    let mut its = Collision::new();
    its.report_halves(MS);
    let sent = its.done()[0];
    its.controller.address_seen(its.one, sent.address, Timestamp(3 * MS));
    its.pin(its.one, its.a, 20 * MS);
    assert!(its.controller.take_due_arrivals(Timestamp(60 * MS)).is_empty());
}

#[test]
fn a_restarted_controller_moves_no_pair_back() {
    let mut its = Collision::new();
    its.report_halves(MS);
    let sent = its.done()[0];
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
    assert!(restarted.done().is_empty(), "{:?}", restarted.done());
    let latest =
        restarted.controller.decisions().rev().find(|decision| decision.pair == restarted.one).unwrap();
    assert_eq!((latest.from, latest.verdict), (sent.address, Verdict::Keep));
    assert_eq!(restarted.done.found(), [(restarted.one, sent.address)], "the pair is held");
}
