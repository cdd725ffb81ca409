//! Links that fail, switches that lose power, hosts that ignore ARP.

use thalweg_lab::{DEFAULT_ADDRESSES, LabError, TableError, shortest_path_tables};
use thalweg_network::{EndpointId, LinkId, LinkState, PortIndex, RouterId};

use crate::setup::{TestLab, plan};

/// Returns the link between leaf r2, where h4 is, and spine r3: h4's base address leads over it.
fn spine_link(lab: &TestLab) -> LinkId {
    lab.topology().link_at(RouterId(3), PortIndex(2))
}

#[test]
fn failed_link_carries_nothing_until_restored() {
    let Some(lab) = TestLab::up(plan()) else { return };
    let link = spine_link(&lab);
    assert_eq!(lab.ping(0, 4, 1), 1);
    lab.set_link(link, false).unwrap();
    assert_eq!(lab.links().unwrap().failed().collect::<Vec<_>>(), [link]);
    assert_eq!(lab.ping(0, 4, 3), 0, "the route uses the failed link");
    assert_eq!(lab.ping(0, 3, 3), 3, "other routes do not");
    lab.set_link(link, false).unwrap();
    lab.set_link(link, true).unwrap();
    assert_eq!(lab.links().unwrap(), LinkState::new(lab.topology()));
    assert_eq!(lab.ping(0, 4, 3), 3, "at once");
}

#[test]
fn host_keeps_its_address_while_its_link_is_down() {
    let Some(lab) = TestLab::up(plan()) else { return };
    let link = lab.topology().endpoint_link(EndpointId(0));
    lab.set_link(link, false).unwrap();
    assert_eq!(lab.ping(1, 0, 2), 0);
    lab.set_link(link, true).unwrap();
    assert_eq!((lab.ping(1, 0, 2), lab.ping(0, 5, 2)), (2, 2));
}

#[test]
fn restarted_switch_is_empty_until_routes_are_installed() {
    let Some(lab) = TestLab::up(plan()) else { return };
    let entries = |router: u16| {
        let all = lab.tables().unwrap().entries().unwrap();
        all.iter().filter(|entry| entry.router == RouterId(router)).count()
    };
    assert_eq!(lab.ping(0, 4, 5), 5);
    let (before, others) = (entries(0), entries(1));
    assert_eq!(before, 6 * usize::from(DEFAULT_ADDRESSES));
    lab.set_mirror(RouterId(0), false).unwrap();

    lab.restart_switch(RouterId(0)).unwrap();
    assert_eq!((entries(0), entries(1)), (0, others));
    assert_eq!(lab.port(0, 0).received_packets, 0);
    assert!(lab.port(2, 0).received_packets > 0, "other switches keep their counters");
    assert!(lab.status().unwrap().switches[0].is_mirrored, "mirroring is on after a restart");
    assert!(lab.links().unwrap().all_up());
    assert_eq!(lab.ping(0, 1, 1), 0);
    assert!(lab.port(0, 0).drops.no_entry > 0, "it counts what it cannot forward");

    let forwarding = shortest_path_tables(lab.topology(), DEFAULT_ADDRESSES).unwrap();
    let installed = lab.tables().unwrap().install(&forwarding).unwrap();
    assert_eq!((installed.written, installed.removed), (before, 0), "exactly the lost entries");
    assert_eq!((lab.ping(0, 1, 2), lab.ping(0, 4, 2)), (2, 2));
}

#[test]
fn failed_switch_has_no_links() {
    let Some(lab) = TestLab::up(plan()) else { return };
    lab.fail_switch(RouterId(4)).unwrap();
    assert_eq!(lab.links().unwrap().failed().count(), 3, "one to each leaf");
    assert_eq!(lab.ping(0, 4, 2), 2, "over the other spine");
    lab.repair_switch(RouterId(4)).unwrap();
    assert!(lab.links().unwrap().all_up());
}

#[test]
fn host_that_ignores_arp_is_not_rerouted() {
    let Some(lab) = TestLab::up(plan()) else { return };
    assert_eq!(lab.ping(0, 4, 1), 1);
    lab.set_ignores_arp(EndpointId(0), true).unwrap();
    crate::switching::request(&lab, 0, 4, 1);
    let second = lab.forwarded(4);
    assert_eq!(lab.ping(0, 4, 5), 5);
    assert_eq!(lab.forwarded(4), second, "it still sends over the first spine");
    lab.set_ignores_arp(EndpointId(0), false).unwrap();
    crate::switching::request(&lab, 0, 4, 1);
    assert_eq!(lab.ping(0, 4, 5), 5);
    assert!(lab.forwarded(4) >= second + 5);
}

#[test]
fn unknown_links_and_switches_are_rejected() {
    let Some(lab) = TestLab::up(plan()) else { return };
    let unknown = lab.set_link(LinkId(99), false).unwrap_err();
    assert!(matches!(unknown, LabError::UnknownLink(_)), "{unknown}");
    let unknown = lab.fail_switch(RouterId(9)).unwrap_err();
    assert_eq!(unknown.to_string(), "unknown switch \"r9\"");
    assert_eq!(lab.tables().unwrap().clear(RouterId(9)).map_err(|_: TableError| ()), Ok(0));
}
