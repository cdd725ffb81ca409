//! Hosts, pairs, and names.

use std::net::IpAddr;
use std::sync::Arc;

use thalweg_watch::groups::Group;

use super::*;
use crate::names::Services;

pub(super) fn by(grouping: Grouping) -> LiveView {
    let mut view = LiveView::with_query(
        Theme::ANSI,
        Query { grouping, ..Query::default() },
        Services::parse(b"https 443/tcp\nhttps 443/udp\nssh 22/tcp\ndomain 53/udp"),
    );
    view.update(with_groups());
    view
}

pub(super) fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn with_names() -> Snapshot {
    let names = [
        ("10.0.0.80", "www.example.com"),
        ("10.0.0.1", "gateway.office.example.com"),
        ("2a00:1450:4001:810::200e", "muc11s02-in-x0e.1e100.net"),
        ("192.168.100.200", "a-backup-server-with-a-very-long-name.storage.example.com"),
    ];
    let names = names.map(|(number, name)| (address(number), Arc::from(name)));
    Snapshot { names: names.into(), ..with_groups() }
}

#[test]
fn hosts_and_pairs_match_the_golden_screens() {
    for (width, height) in [(62, 12), (80, 24), (120, 40), (200, 50)] {
        check("hosts", &mut by(Grouping::Host), width, height);
        check("pairs", &mut by(Grouping::Pair), width, height);
    }
}

#[test]
fn names_match_the_golden_screens() {
    for (width, height) in [(80, 24), (120, 40), (200, 50)] {
        let mut view = by(Grouping::Flow);
        assert!(query_of(press(&mut view, KeyCode::Char('n'))).names);
        press_without_query(&mut view, KeyCode::Char('N'));
        view.update(with_names());
        check("names", &mut view, width, height);
    }
    let mut view = by(Grouping::Pair);
    query_of(press(&mut view, KeyCode::Char('n')));
    view.update(with_names());
    assert!(screen(&mut view, 80, 24).contains("www.example.com"));
    assert!(!query_of(press(&mut view, KeyCode::Char('n'))).names);
    assert!(!screen(&mut view, 80, 24).contains("www.example.com"));
}

#[test]
fn b_switches_between_flows_hosts_and_pairs() {
    let mut view = by(Grouping::Flow);
    let mut groupings = Vec::new();
    for title in [" hosts by rate", " pairs by rate", " flows by rate"] {
        groupings.push(query_of(press(&mut view, KeyCode::Char('b'))).grouping);
        assert!(screen(&mut view, 80, 24).contains(title), "{title}");
    }
    assert_eq!(groupings, [Grouping::Host, Grouping::Pair, Grouping::Flow]);
}

#[test]
fn enter_shows_the_flows_of_a_host_and_escape_returns() {
    let mut view = by(Grouping::Host);
    type_text(&mut view, "/ipv4");
    query_of(press(&mut view, KeyCode::Enter));
    press_without_query(&mut view, KeyCode::Down);
    press_without_query(&mut view, KeyCode::Down);
    let Group::Host(host) = view.group_rows[1].group else { panic!("no host") };
    let query = query_of(press(&mut view, KeyCode::Enter));
    assert_eq!((query.scope, query.grouping), (Some(Group::Host(host)), Grouping::Flow));
    assert!(
        !view.rows.is_empty() && view.rows.iter().all(|row| row.key.src() == host || row.key.dst() == host)
    );
    assert!(screen(&mut view, 80, 24).contains(&format!(" flows of {host} by rate")));
    // The detail of a flow, and back in three steps; the filter stays until then.
    assert!(query_of(press(&mut view, KeyCode::Enter)).pinned.is_some());
    assert!(query_of(press(&mut view, KeyCode::Esc)).pinned.is_none());
    let query = query_of(press(&mut view, KeyCode::Esc));
    assert_eq!((query.scope, query.grouping), (None, Grouping::Host));
    assert!(query_of(press(&mut view, KeyCode::Esc)).filter.is_empty());
}

#[test]
fn filters_on_rates_and_numbers_select_hosts_and_pairs() {
    for (grouping, filter, rows) in [
        (Grouping::Host, "bps > 100m", 4),
        (Grouping::Host, "flows > 10", 1),
        (Grouping::Pair, "bps > 100m", 2),
        (Grouping::Pair, "pps > 20k", 1),
        (Grouping::Pair, "flows > 1", 0),
    ] {
        let mut view = by(grouping);
        type_text(&mut view, &format!("/{filter}"));
        query_of(press(&mut view, KeyCode::Enter));
        assert_eq!(view.group_rows.len(), rows, "{filter}");
    }
}

#[test]
fn hosts_can_be_sorted_by_their_number_of_flows() {
    let mut view = by(Grouping::Host);
    let sorts: Vec<SortBy> = (0..6).map(|_| query_of(press(&mut view, KeyCode::Char('s'))).sort).collect();
    assert_eq!(sorts[4..], [SortBy::Flows, SortBy::Rate]);
    (0..5).for_each(|_| drop(press(&mut view, KeyCode::Char('s'))));
    assert_eq!(view.group_rows[0].group, Group::Host(address("10.0.0.80")));
    // Flows have no such order.
    assert_eq!(query_of(press(&mut view, KeyCode::Char('b'))).sort, SortBy::Flows);
    assert_eq!(query_of(press(&mut view, KeyCode::Char('b'))).sort, SortBy::Rate);
}

#[test]
fn after_the_end_hosts_are_those_of_the_flows_that_the_filter_selects() {
    let mut view = by(Grouping::Host);
    view.update(Snapshot { ended: true, matching: 500, ..with_groups() });
    type_text(&mut view, "/port 22");
    query_of(press(&mut view, KeyCode::Enter));
    let text = screen(&mut view, 80, 24);
    assert_eq!(view.group_rows.len(), 2, "{text}");
    assert!(text.contains(", in the first 46 flows"), "{text}");
}
