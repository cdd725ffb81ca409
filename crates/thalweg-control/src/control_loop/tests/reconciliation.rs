//! Installation and reconciliation of routes.

use super::*;
use crate::routes::RuleFaults;

#[test]
fn nothing_is_rerouted_before_the_routes_are_installed() {
    let mut control = new_loop(installing(Installation::Tables));
    let first = commands(&mut control);
    assert!(
        matches!(&first[..], [Command::Announce { ahead: Nanos(2_000_000), state }] if Arc::ptr_eq(state, control.state()))
    );
    control.handle(at(1), collision(1));
    control.handle(at(1), Input::Announced(at(3)));
    control.handle(at(2), Input::Tick);
    assert!(commands(&mut control).is_empty(), "collectors must know first");
    control.handle(at(3), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::Install(_)]));
    assert!(!control.has_routes());
    control.handle(at(4), Input::Installed);
    assert!(control.has_routes());
    control.handle(at(5), collision(5));
    assert_eq!(control.controller().counters().congestions, 1);
}

#[test]
fn routes_that_cannot_be_announced_are_not_used() {
    let mut control = new_loop(installing(Installation::Tables));
    commands(&mut control);
    control.handle(at(1), Input::AnnounceFailed("no such switch".to_owned()));
    control.handle(at(1_000), Input::Tick);
    assert!(commands(&mut control).is_empty() && !control.has_routes());
    assert_eq!(control.take_records().errors, ["no such switch"]);
}

/// A loop whose whole tables are installed.
fn installed() -> ControlLoop {
    let mut control = new_loop(installing(Installation::Tables));
    control.handle(at(1), Input::Announced(at(3)));
    control.handle(at(3), Input::Tick);
    control.handle(at(3), Input::Installed);
    commands(&mut control);
    assert!(control.has_routes());
    control
}

#[test]
fn trees_avoid_a_failed_link_before_collectors_know_them() {
    let mut control = installed();
    let link = control.state().topology().link_at(RouterId(8), PortIndex(2));
    control.handle(at(10), Input::LinkChanged { link, is_up: false });
    let [Command::Install(urgent), Command::Announce { state, .. }] = &commands(&mut control)[..] else {
        panic!("expected an installation and an announcement")
    };
    assert!(Arc::ptr_eq(urgent, state) && !urgent.links().is_up(link));
    control.handle(at(10), Input::Installed);
    assert!(!control.has_routes(), "collectors do not know the routes");
    control.handle(at(11), Input::Announced(at(13)));
    control.handle(at(13), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::Install(_)]));
    control.handle(at(13), Input::Installed);
    assert!(control.has_routes());
    control.handle(at(20), Input::LinkChanged { link, is_up: true });
    assert!(matches!(commands(&mut control)[..], [Command::Announce { .. }]), "not urgent");
    assert_eq!(control.take_records().links, [(link, false), (link, true)]);
}

#[test]
fn links_that_reconnect_hosts_are_urgent() {
    let mut control = installed();
    let topology = Arc::clone(control.state().topology());
    let router = topology.router_of(EndpointId(0));
    let uplinks: Vec<_> = (topology.rack_size(router)..topology.ports(router))
        .map(|port| topology.link_at(router, PortIndex(port as u16)))
        .collect();
    for &link in &uplinks {
        control.handle(at(10), Input::LinkChanged { link, is_up: false });
    }
    commands(&mut control);
    control.handle(at(20), Input::LinkChanged { link: uplinks[0], is_up: true });
    assert!(matches!(commands(&mut control)[..], [Command::Install(_)]), "an announcement is in progress");
    control.handle(at(30), Input::LinkChanged { link: uplinks[1], is_up: true });
    assert!(commands(&mut control).is_empty(), "all hosts were reachable");
}

#[test]
fn only_the_latest_routes_are_announced_after_an_announcement_in_progress() {
    let mut control = installed();
    let links = [2, 3].map(|port| control.state().topology().link_at(RouterId(8), PortIndex(port)));
    for link in links {
        control.handle(at(10), Input::LinkChanged { link, is_up: false });
    }
    control.handle(at(11), Input::LinkChanged { link: links[0], is_up: true });
    let first = commands(&mut control);
    assert_eq!(first.iter().filter(|command| matches!(command, Command::Announce { .. })).count(), 1);
    control.handle(at(12), Input::Announced(at(14)));
    let [Command::Announce { state, .. }] = &commands(&mut control)[..] else { panic!("one announcement") };
    assert!(Arc::ptr_eq(state, control.state()) && !control.has_routes());
    control.handle(at(13), Input::Announced(at(15)));
    control.handle(at(15), Input::Tick);
    control.handle(at(15), Input::Installed);
    assert!(control.has_routes() && matches!(commands(&mut control)[..], [Command::Install(_)]));
    // A failed announcement of earlier routes is followed by that of the present ones, too.
    control.handle(at(20), Input::LinkChanged { link: links[0], is_up: false });
    control.handle(at(20), Input::LinkChanged { link: links[1], is_up: true });
    commands(&mut control);
    control.handle(at(21), Input::AnnounceFailed("no answer".to_owned()));
    assert!(matches!(commands(&mut control)[..], [Command::Announce { .. }]));
    assert_eq!(control.route_counters().failed, 1);
}

#[test]
fn a_standby_follows_links_but_installs_and_reroutes_nothing() {
    let mut options = installing(Installation::Tables);
    options.routes.starts_as_standby = true;
    let mut control = new_loop(options);
    let link = control.state().topology().link_at(RouterId(8), PortIndex(2));
    control.handle(at(1), Input::LinkChanged { link, is_up: false });
    control.handle(at(2), Input::Tick);
    control.handle(at(3), collision(3));
    assert!(commands(&mut control).is_empty() && !control.has_routes() && !control.is_master());
    control.handle(at(4), Input::Mastership { is_master: true });
    let [Command::Announce { state, .. }] = &commands(&mut control)[..] else { panic!("one announcement") };
    assert!(!state.links().is_up(link), "it knows the failed link");
    control.handle(at(5), Input::Announced(at(7)));
    control.handle(at(7), Input::Tick);
    control.handle(at(7), Input::Installed);
    assert!(control.has_routes() && matches!(commands(&mut control)[..], [Command::Install(_)]));

    // It loses the role, even while it installs other routes.
    control.handle(at(10), Input::Network(network()));
    control.handle(at(11), Input::Mastership { is_master: false });
    commands(&mut control);
    control.handle(at(12), Input::Announced(at(13)));
    control.handle(at(14), Input::Tick);
    control.handle(at(15), collision(15));
    assert!(commands(&mut control).is_empty() && !control.has_routes());
    assert_eq!(control.controller().counters().congestions, 0);
}

#[test]
fn a_network_that_a_user_sets_does_not_bring_a_failed_link_up() {
    let mut control = installed();
    let link = control.state().topology().link_at(RouterId(8), PortIndex(2));
    control.handle(at(10), Input::LinkChanged { link, is_up: false });
    control.handle(at(20), Input::Network(network()));
    assert_eq!(control.state().links().failed().collect::<Vec<_>>(), [link]);
    control.handle(at(30), Input::LinkChanged { link, is_up: true });
    assert!(control.state().links().all_up());
    control.handle(at(40), Input::Network(network()));
    assert!(control.state().links().all_up());
}

#[test]
fn faults_that_the_driver_repairs_are_counted() {
    let mut control = installed();
    let faults = RuleFaults { missing: 3, changed: 2, foreign: 1 };
    control.handle(at(10), Input::RuleFaults { router: RouterId(0), faults });
    assert_eq!(control.route_counters().corrected, 6);
    assert!(control.has_routes() && commands(&mut control).is_empty());
}

fn repairing() -> (ControlLoop, Rules) {
    let interval = Some(Nanos::from_millis(20));
    let mut control = new_loop(installing(Installation::Reconcile { interval }));
    assert!(commands(&mut control).is_empty());
    control.handle(at(1), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { router: None }]));
    let rules = wanted(&control);
    control.handle(at(1), Input::Tables { router: None, rules: rules.clone() });
    assert!(commands(&mut control).is_empty(), "all rules are correct");
    (control, rules)
}

#[test]
fn an_empty_switch_is_repaired_first() {
    let (mut control, mut rules) = repairing();
    control.handle(at(20), Input::Tick);
    assert!(commands(&mut control).is_empty());
    control.handle(at(21), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { router: None }]));
    let lost = RouterId(8);
    let (place, address, _) = rules.iter().find(|(router, ..)| *router == RouterId(0)).unwrap();
    rules.apply(&crate::routes::Change { router: place, address, rule: None });
    let entries: Vec<_> = rules.at(lost).iter().map(|(_, address, _)| address).collect();
    for &address in &entries {
        rules.apply(&crate::routes::Change { router: lost, address, rule: None });
    }
    control.handle(at(22), Input::Tables { router: None, rules: rules.clone() });
    let [Command::RepairRules(changes)] = &commands(&mut control)[..] else { panic!("expected one repair") };
    assert_eq!(changes.len(), entries.len() + 1);
    assert!(
        changes[..entries.len()].iter().all(|change| change.router == lost),
        "the empty switch comes first"
    );
    changes.iter().for_each(|change| rules.apply(change));
    assert_eq!(rules, wanted(&control));
    control.handle(at(23), Input::RulesRepaired);
    assert_eq!(control.route_counters().corrected, entries.len() as u64 + 1);
    control.handle(at(43), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { .. }]), "rules are read again");
}

#[test]
fn rules_avoid_a_failed_link_before_collectors_know_them() {
    let (mut control, mut rules) = repairing();
    let link = control.state().topology().link_at(RouterId(8), PortIndex(2));
    control.handle(at(10), Input::LinkChanged { link, is_up: false });
    assert!(matches!(commands(&mut control)[..], [Command::Announce { .. }]));
    assert!(!control.has_routes() && !control.state().links().is_up(link));
    control.handle(at(12), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { .. }]));
    control.handle(at(12), Input::Links(control.state().links().clone()));
    control.handle(at(12), Input::Tables { router: None, rules: rules.clone() });
    let [Command::RepairRules(changes)] = &commands(&mut control)[..] else { panic!("expected one repair") };
    changes.iter().for_each(|change| rules.apply(change));
    control.handle(at(13), Input::RulesRepaired);
    assert!(!control.has_routes(), "collectors do not know the routes");
    control.handle(at(14), Input::Announced(at(16)));
    assert!(control.has_routes());
    let links = control.state().links().clone();
    assert_eq!(crate::routes::reachability::broken_paths(control.state().topology(), &links, &rules, 4), []);
    control.handle(at(20), Input::LinkChanged { link, is_up: true });
    assert!(matches!(commands(&mut control)[..], [Command::Announce { .. }]), "the link is back");
    assert_eq!(control.route_counters().rerouted, 2);
}

#[test]
fn rules_read_with_a_failed_link_are_compared_with_the_new_routes() {
    let (mut control, rules) = repairing();
    control.handle(at(21), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { .. }]));
    let link = control.state().topology().link_at(RouterId(8), PortIndex(2));
    let mut links = control.state().links().clone();
    links.fail(link).unwrap();
    control.handle(at(22), Input::Links(links));
    control.handle(at(22), Input::Tables { router: None, rules: rules.clone() });
    let [Command::Announce { .. }, Command::RepairRules(changes)] = &commands(&mut control)[..] else {
        panic!("expected an announcement and a repair")
    };
    let mut repaired = rules.clone();
    changes.iter().for_each(|change| repaired.apply(change));
    assert_eq!(repaired, wanted(&control));
    control.handle(at(23), Input::RulesRepaired);
    control.handle(at(23), Input::Announced(at(25)));
    assert!(control.has_routes());
    // A link that comes up is not urgent: rules that were read before the announcement repair nothing.
    control.handle(at(43), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { .. }]));
    control.handle(at(44), Input::LinkChanged { link, is_up: true });
    control.handle(at(44), Input::Tables { router: None, rules: repaired });
    assert!(matches!(commands(&mut control)[..], [Command::Announce { .. }]));
}

#[test]
fn a_new_switch_gets_its_missing_rules() {
    let (mut control, _) = repairing();
    let router = RouterId(3);
    control.handle(at(5), Input::SwitchConnected(router));
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { router: Some(RouterId(3)) }]));
    control.handle(at(5), Input::Tables { router: Some(router), rules: Rules::new() });
    let [Command::RepairRules(changes)] = &commands(&mut control)[..] else { panic!("expected one repair") };
    assert_eq!(changes.len(), wanted(&control).at(router).len());
}

#[test]
fn unanswered_read_backs_are_repeated() {
    let (mut control, _) = repairing();
    control.handle(at(21), Input::Tick);
    commands(&mut control);
    control.handle(at(5_020), Input::Tick);
    assert!(commands(&mut control).is_empty());
    control.handle(at(5_021), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { .. }]));
    assert_eq!(control.route_counters().failed, 1);
}

#[test]
fn a_frozen_loop_repairs_rules_after_the_freeze() {
    let (mut control, _) = repairing();
    control.handle(at(20), Input::Freeze(true));
    control.handle(at(21), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { .. }]), "reading changes nothing");
    control.handle(at(21), Input::Tables { router: None, rules: Rules::new() });
    assert!(commands(&mut control).is_empty());
    control.handle(at(30), Input::Freeze(false));
    control.handle(at(30), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { .. }]));
    control.handle(at(31), Input::Tables { router: None, rules: Rules::new() });
    assert!(matches!(commands(&mut control)[..], [Command::RepairRules(_)]));
}

#[test]
fn a_frozen_loop_avoids_failed_links_after_the_freeze() {
    let (mut control, _) = repairing();
    control.handle(at(20), Input::Freeze(true));
    let [one, other] = [2, 3].map(|port| control.state().topology().link_at(RouterId(8), PortIndex(port)));
    for link in [one, other] {
        control.handle(at(22), Input::LinkChanged { link, is_up: false });
    }
    assert!(commands(&mut control).is_empty() && control.state().links().all_up());
    control.handle(at(30), Input::Freeze(false));
    assert!(matches!(commands(&mut control)[..], [Command::Announce { .. }]));
    assert_eq!(control.state().links().failed().collect::<Vec<_>>(), [one, other]);
}
