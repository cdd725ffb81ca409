//! Packets that do not arrive, and actions of which nothing is heard.

use super::*;

#[test]
fn what_sets_out_and_does_not_arrive_comes_back_and_is_not_sent_there_again() {
    let mut its = Collision::new();
    its.told_halves(MS);
    let sent = its.done()[0];
    its.controller.seen(its.one, sent.address, Timestamp(3 * MS));
    assert!(its.controller.take_arrivals(Timestamp(52 * MS)).is_empty(), "it may be under way");
    let arrivals = its.controller.take_arrivals(Timestamp(53 * MS));
    assert_eq!((arrivals.len(), arrivals[0].action, arrivals[0].from), (1, sent, its.a));
    its.went_astray(&arrivals[0], 53 * MS);
    let back = its.done()[1];
    assert_eq!((back.pair, back.address), (its.one, its.a));
    assert_eq!(its.controller.counters().astray, 1);
    its.controller.seen(its.one, its.a, Timestamp(55 * MS));
    for round in 0..20 {
        its.told_halves((200 + 100 * round) * MS);
    }
    let again =
        its.done().iter().filter(|action| action.pair == its.one && action.address == sent.address).count();
    assert_eq!(again, 1, "{:?}", its.done());
    // Other routes may lead there.
    its.controller.set_paths(paths());
    assert!(!its.controller.paths().is_barred(its.one, sent.address));
}

#[test]
fn who_is_taken_back_stays_back_though_nothing_is_heard_of_it_for_long() {
    let mut its = Collision::new();
    its.told_halves(MS);
    let sent = its.done()[0];
    its.controller.seen(its.one, sent.address, Timestamp(3 * MS));
    let arrivals = its.controller.take_arrivals(Timestamp(53 * MS));
    its.went_astray(&arrivals[0], 53 * MS);
    its.advance(103 * MS);
    assert_eq!(its.done.failed(), [(its.one, its.a)], "where it is to be left");
}

#[test]
fn nobody_is_sent_back_to_where_nothing_arrives_either() {
    let mut its = Collision::new();
    its.told_halves(MS);
    let sent = its.done()[0];
    its.controller.paths.bar(its.one, its.a);
    its.controller.seen(its.one, sent.address, Timestamp(3 * MS));
    let arrivals = its.controller.take_arrivals(Timestamp(60 * MS));
    its.went_astray(&arrivals[0], 60 * MS);
    assert_eq!(its.done().len(), 1);
}

#[test]
fn of_whom_cannot_be_told_is_looked_for_again() {
    let mut its = Collision::new();
    its.told_halves(MS);
    let sent = its.done()[0];
    its.controller.seen(its.one, sent.address, Timestamp(3 * MS));
    let [arrival] = its.controller.take_arrivals(Timestamp(53 * MS))[..] else { panic!("one") };
    its.controller.left_open(arrival, Timestamp(53 * MS));
    assert!(its.controller.take_arrivals(Timestamp(102 * MS)).is_empty(), "when patience is over");
    let [again] = its.controller.take_arrivals(Timestamp(103 * MS))[..] else { panic!("one") };
    assert_eq!((again.action, again.from), (arrival.action, arrival.from));
    assert_eq!(its.controller.counters().astray, 0);
    its.controller.left_open(again, Timestamp(103 * MS));
    its.pin(its.one, its.a, 110 * MS);
    assert!(its.controller.take_arrivals(Timestamp(160 * MS)).is_empty(), "it was sent elsewhere");
}

#[test]
fn an_action_that_is_refused_leaves_the_pair_where_it_was() {
    let mut its = Collision::new();
    its.done.refuses = true;
    its.told_halves(MS);
    let (action, error) = its.controller.take_failures().pop_front().unwrap();
    assert_eq!((action.pair, error.as_str()), (its.one, "unplugged"));
    let counters = its.controller.counters();
    assert_eq!((counters.begun, counters.refused), (0, 1));
    its.done.refuses = false;
    its.told_halves(100 * MS);
    assert_eq!(its.done()[0].pair, its.one, "it is still in the way of the other");
}

#[test]
fn an_action_of_which_nobody_reports_expires() {
    let mut its = Collision::new();
    its.controller.pin(its.one, 1, Timestamp(MS));
    its.controller.advance(Timestamp(51 * MS));
    assert_eq!(its.controller.take_ended()[0].outcome, Outcome::Expired);
    let counters = its.controller.counters();
    assert_eq!((counters.begun, counters.expired), (0, 1));
}

#[test]
fn an_effect_that_shows_before_the_start_is_reported_counts() {
    let mut its = Collision::new();
    its.controller.pin(its.one, 1, Timestamp(MS));
    its.controller.seen(its.one, 1, Timestamp(2 * MS));
    assert_eq!(its.controller.take_ended()[0].outcome, Outcome::Confirmed(Nanos(MS)));
}

#[test]
fn commands_that_nobody_takes_are_bounded() {
    let mut its = Collision::with(ControllerOptions { pending: 4, ..ControllerOptions::default() });
    for round in 1..100 {
        its.controller.pin(its.one, round as u8 % 2, Timestamp(round * 100 * MS));
        its.controller.advance(Timestamp(round * 100 * MS + 60 * MS));
    }
    assert!(its.controller.commands.len() <= 16, "{}", its.controller.commands.len());
    assert!(its.controller.counters().crowded > 0);
}

#[test]
fn a_frozen_controller_does_not_take_back_what_went_astray() {
    let mut its = Collision::new();
    its.told_halves(MS);
    let sent = its.done()[0];
    its.controller.seen(its.one, sent.address, Timestamp(3 * MS));
    let arrivals = its.controller.take_arrivals(Timestamp(53 * MS));
    its.controller.freeze(true);
    its.went_astray(&arrivals[0], 53 * MS);
    assert_eq!(its.done().len(), 1);
    assert!(its.controller.paths().is_barred(its.one, sent.address));
}

#[test]
fn who_was_sent_elsewhere_meanwhile_is_not_looked_for() {
    let mut its = Collision::new();
    its.told_halves(MS);
    let sent = its.done()[0];
    its.controller.seen(its.one, sent.address, Timestamp(3 * MS));
    its.pin(its.one, its.a, 20 * MS);
    assert!(its.controller.take_arrivals(Timestamp(60 * MS)).is_empty());
}

#[test]
fn a_controller_that_begins_where_another_has_ended_moves_nobody_back() {
    let mut its = Collision::new();
    its.told_halves(MS);
    let sent = its.done()[0];
    // It is gone. Another one is told of the pairs where they are now, each with a link to itself.
    let mut heir = Collision::new();
    let links: Vec<LinkNumber> = heir.controller.paths.of(heir.one, sent.address).unwrap().to_vec();
    for (round, &link) in links.iter().cycle().take(20).enumerate() {
        let now = (100 + 2 * round as u64) * MS;
        heir.controller.congested(&congestion(link, now, &[(heir.one, sent.address, LINE.0)]));
        heir.controller.congested(&congestion(heir.link, now, &[(heir.other, heir.b, LINE.0)]));
        heir.carry_out(now);
    }
    assert!(heir.done().is_empty(), "{:?}", heir.done());
    let latest = heir.controller.decisions().rev().find(|decision| decision.pair == heir.one).unwrap();
    assert_eq!((latest.from, latest.verdict), (sent.address, Verdict::Stays));
    assert_eq!(heir.done.found(), [(heir.one, sent.address)], "and holds it there");
}
