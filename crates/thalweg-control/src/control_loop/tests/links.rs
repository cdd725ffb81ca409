//! Signals about links: damping, and routes that the loop does not compute.

use thalweg_network::Node;

use super::*;

/// The first link between switches on a path that another path of the pair avoids.
fn avoidable_link(pair: Pair, address: u8) -> (LinkId, u8) {
    let network = network();
    let mut paths = Paths::new(Arc::clone(&network));
    let link_of = |paths: &Paths, link| {
        let (router, port) = paths.port(link);
        network.topology().link_at(router, port)
    };
    let mine: Vec<LinkId> =
        paths.of(pair, address).unwrap().to_vec().iter().map(|&link| link_of(&paths, link)).collect();
    for other in (0..4).filter(|&other| other != address) {
        let theirs = paths.of(pair, other).unwrap().to_vec();
        let theirs: Vec<LinkId> = theirs.iter().map(|&link| link_of(&paths, link)).collect();
        if let Some(&link) = mine.iter().find(|link| !theirs.contains(link)) {
            return (link, other);
        }
    }
    unreachable!("the trees differ")
}

fn sends(pair: Pair, address: u8) -> PairRate {
    PairRate { pair, address, rate: BitRate(LINE / 10), measured: Timestamp(0), flows: Vec::new() }
}

fn options() -> ControlOptions {
    ControlOptions { learn_after: None, ..ControlOptions::default() }
}

fn reported(link: LinkId, source: LinkSource, is_up: bool) -> Input {
    Input::LinkReported { link, source, is_up }
}

#[test]
fn pairs_leave_a_failed_link_if_the_loop_installs_no_routes() {
    for source in [LinkSource::User, LinkSource::Carrier, LinkSource::Switches] {
        let mut control = new_loop(options());
        let (moved, pinned, other) = (pair(0, 8), pair(1, 9), pair(2, 3));
        let (link, _) = avoidable_link(moved, 0);
        control.handle(at(9), Input::Pin { pair: pinned, address: 0 });
        let _ = commands(&mut control);
        control.handle(at(10), reported(link, source, false));
        control.handle(at(10), Input::Tick);
        assert!(matches!(commands(&mut control)[..], [Command::PollFlows]));
        assert_eq!(control.take_records().links, [(link, false)]);
        let flows = vec![sends(moved, 0), sends(pinned, 0), sends(other, 0)];
        control.handle(at(11), Input::Flows(flows));
        let issued = commands(&mut control);
        let [Command::Reroute(action)] = &issued[..] else { panic!("{issued:?}") };
        assert_eq!(action.pair, moved);
        let mut paths = control.controller().paths().clone();
        assert!(paths.of(moved, action.address).is_some() && paths.of(moved, 0).is_none());
        assert_eq!(control.controller().counters().left_failed, 1);
        // Other pairs may start to send.
        control.handle(at(500), Input::Tick);
        assert!(commands(&mut control).iter().all(|command| !matches!(command, Command::PollFlows)));
        control.handle(at(1_011), Input::Tick);
        assert!(commands(&mut control).iter().any(|command| matches!(command, Command::PollFlows)));
        control.handle(at(1_012), reported(link, source, true));
        assert!(control.controller().paths().clone().of(moved, 0).is_some());
        control.handle(at(9_000), Input::Tick);
        assert!(commands(&mut control).iter().all(|command| !matches!(command, Command::PollFlows)));
    }
}

#[test]
fn a_frozen_loop_leaves_failed_links_when_it_resumes() {
    let mut control = new_loop(options());
    let moved = pair(0, 8);
    let (link, _) = avoidable_link(moved, 0);
    control.handle(at(1), Input::Freeze(true));
    control.handle(at(2), reported(link, LinkSource::User, false));
    control.handle(at(3), Input::Tick);
    assert_eq!(commands(&mut control).len(), 0);
    control.handle(at(4), Input::Freeze(false));
    control.handle(at(5), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::PollFlows]));
}

/// The last path of a host or a switch is used although it flapped.
#[test]
fn a_hold_ends_if_nodes_cannot_reach_each_other_without_the_link() {
    let mut control = new_loop(options());
    let topology = Arc::clone(network().topology());
    let router = topology.router_ids().find(|router| topology.rack_size(*router) > 0).unwrap();
    let uplinks: Vec<LinkId> = (0..topology.links().len() as u32)
        .map(LinkId)
        .filter(|link| {
            topology.links()[link.index()].ends.iter().all(|end| matches!(end.node, Node::Router(_)))
        })
        .filter(|link| topology.links()[link.index()].ends.iter().any(|end| end.node == Node::Router(router)))
        .collect();
    let flap = |control: &mut ControlLoop, link, from: u64| {
        for step in 0..6 {
            control.handle(at(from + step), reported(link, LinkSource::Switches, step % 2 == 1));
        }
    };
    flap(&mut control, uplinks[0], 10);
    assert_eq!(control.held_links().map(|(link, _)| link).collect::<Vec<_>>(), [uplinks[0]]);
    for other in &uplinks[1..] {
        control.handle(at(20), reported(*other, LinkSource::Switches, false));
    }
    assert_eq!(control.held_links().count(), 0);
    let failed: Vec<LinkId> = control.controller().paths().state().links().failed().collect();
    assert_eq!(failed, uplinks[1..]);
    // The only link of a host is not held while it is up.
    flap(&mut control, LinkId(0), 30);
    assert_eq!(control.held_links().count(), 0);
}

/// A link that fails 20 times per second for 10 s, by each kind of signal.
#[test]
fn a_flapping_link_changes_routes_a_few_times_and_comes_up_after_the_hold_time() {
    let signal = |kind: usize, link, is_up| match kind {
        0 => Input::LinkChanged { link, is_up },
        1 => reported(link, LinkSource::Carrier, is_up),
        2 => reported(link, LinkSource::User, is_up),
        _ => {
            let mut links = network().links().clone();
            if !is_up {
                links.fail(link).unwrap();
            }
            Input::Links(links)
        }
    };
    for kind in 0..4 {
        let routes = RouteOptions {
            trees: Some(TreeOptions::default()),
            installation: Installation::Tables,
            ..RouteOptions::default()
        };
        let mut control = new_loop(ControlOptions { routes, ..options() });
        let (link, _) = avoidable_link(pair(0, 8), 0);
        let mut changes = Vec::new();
        for step in 0..400 {
            let ms = 1_000 + step * 25;
            control.handle(at(ms), signal(kind, link, step % 2 == 1));
            control.handle(at(ms), Input::Tick);
            let _ = commands(&mut control);
            changes.extend(control.take_records().links);
        }
        let expected = [(link, false), (link, true), (link, false), (link, true), (link, false)];
        assert_eq!(changes, expected, "kind {kind}");
        assert_eq!(control.route_counters().rerouted, 5);
        let last_failure = 1_000 + 398 * 25;
        assert_eq!(control.held_links().collect::<Vec<_>>(), [(link, at(last_failure + 5_000))]);
        let counters = control.link_counters();
        assert_eq!((counters.failures, counters.holds, counters.damped), (200, 1, 197));
        control.handle(at(last_failure + 4_999), Input::Tick);
        assert_eq!(control.take_records().links, []);
        control.handle(at(last_failure + 5_000), Input::Tick);
        assert_eq!(control.take_records().links, [(link, true)]);
        assert!(control.state().links().is_up(link) && control.held_links().next().is_none());
    }
}

#[test]
fn a_held_link_stays_down_when_a_user_replaces_the_network() {
    let mut control = new_loop(options());
    let (link, _) = avoidable_link(pair(0, 8), 0);
    for step in 0..6 {
        control.handle(at(step * 25), Input::LinkChanged { link, is_up: step % 2 == 1 });
    }
    control.handle(at(200), Input::Network(network()));
    assert!(!control.state().links().is_up(link));
}
