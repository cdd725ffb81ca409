//! The files in `golden` were written by lldpd 1.0.16 in network namespaces, and by Open vSwitch 3.1 in user space: two leaves with a
//! host each, and a spine. The operating system's description was shortened.

use super::*;
use crate::topology::Node;

const LLDP: [(&str, &str); 3] = [
    ("leaf0", include_str!("golden/lldp/leaf0.json")),
    ("leaf1", include_str!("golden/lldp/leaf1.json")),
    ("spine0", include_str!("golden/lldp/spine0.json")),
];

const OVS: [(&str, &str, &str); 3] = [
    ("leaf0", include_str!("golden/ovs/leaf0.show"), include_str!("golden/ovs/leaf0.flows")),
    ("leaf1", include_str!("golden/ovs/leaf1.show"), include_str!("golden/ovs/leaf1.flows")),
    ("spine0", include_str!("golden/ovs/spine0.show"), include_str!("golden/ovs/spine0.flows")),
];

const INTERFACES: &str = include_str!("golden/ovs/interfaces.json");

fn switches() -> Discovery {
    Discovery::new(["spine0", "leaf0", "leaf1"].map(str::to_owned))
}

fn from_lldp(reports: &[(&str, &str)]) -> Imported {
    let mut discovery = switches();
    for (switch, text) in reports {
        discovery.add_lldp(switch, text, "lldp.json").unwrap();
    }
    discovery.build(LinkSpec::default()).unwrap()
}

fn from_ovs(leaf0_show: &str, leaf0_flows: &str) -> Imported {
    let mut discovery = switches();
    let mut bridges = BTreeMap::new();
    for (name, show, _) in OVS {
        let show = if name == "leaf0" { leaf0_show } else { show };
        let bridge = discovery.add_bridge(name, show, LinkSpec::default(), "show").unwrap();
        bridges.insert(name.to_owned(), bridge);
    }
    discovery.add_interfaces(&bridges, INTERFACES, "interfaces.json").unwrap();
    for (name, _, flows) in OVS {
        let flows = if name == "leaf0" { leaf0_flows } else { flows };
        discovery.add_flows(name, &bridges[name], flows, "flows").unwrap();
    }
    discovery.build(LinkSpec::default()).unwrap()
}

#[test]
fn lldp_neighbours_become_a_topology() {
    let imported = from_lldp(&LLDP);
    let topology = Topology::from_toml(&imported.toml, "imported").unwrap();
    topology.check_invariants();
    assert_eq!(
        topology.routers().iter().map(|router| router.name.as_str()).collect::<Vec<_>>(),
        ["leaf0", "leaf1", "spine0"]
    );
    assert_eq!(topology.links().len(), 4);
    let Some(Node::Endpoint(h0)) = topology.node_named("h0") else { panic!("{}", imported.toml) };
    let endpoint = &topology.endpoints()[h0.index()];
    assert_eq!(endpoint.mac.to_string(), "00:02:00:00:aa:01");
    assert_eq!(endpoint.ip.to_string(), "192.0.2.1");
    assert_eq!(endpoint.ipv6, Some("2001:db8::1".parse().unwrap()));
    assert_eq!(topology.endpoint_with_ip(endpoint.ipv6.unwrap()), Some(h0));
    let leaf0 = topology.router_of(h0);
    assert_eq!(topology.port_name(leaf0, topology.port_of(h0)), Some("swp1"));
    let uplink = topology.port_named(leaf0, "swp49").unwrap();
    let peer = topology.peer(leaf0, uplink);
    let Node::Router(spine0) = peer.node else { panic!("{peer:?}") };
    assert_eq!((topology.name(peer.node), topology.port_name(spine0, peer.port)), ("spine0", Some("swp1")));
    assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
    assert!(imported.notes[0].contains("[forwarding]"));
}

#[test]
fn one_end_of_a_link_suffices() {
    let both = from_lldp(&LLDP).toml;
    assert_eq!(from_lldp(&LLDP[..2]).toml, both, "the spine need not report");
}

#[test]
fn ports_and_flows_of_open_vswitch_become_a_network() {
    let imported = from_ovs(OVS[0].1, OVS[0].2);
    let state = NetworkState::from_toml(&imported.toml, "imported").unwrap();
    let topology = state.topology();
    assert_eq!((topology.routers().len(), topology.endpoints().len(), topology.links().len()), (3, 2, 4));
    // Named by iface-id where it is set.
    assert!(topology.node_named("vm0").is_some() && topology.node_named("h1").is_some());
    let entries = state.forwarding().entries(topology).count();
    assert_eq!(entries, 6, "{}", imported.toml);
    assert!(state.links().all_up());
    let [note] = &imported.notes[..] else { panic!("{:?}", imported.notes) };
    assert!(note.starts_with("1 flows of leaf0 were left out"), "{note}");
}

#[test]
fn ports_that_are_down_are_links_that_are_down() {
    let show = OVS[0].1.replacen("state:      0", "state:      LINK_DOWN", 1);
    let state = NetworkState::from_toml(&from_ovs(&show, OVS[0].2).toml, "imported").unwrap();
    assert_eq!(state.links().failed().count(), 1);
}

#[test]
fn the_example_of_open_vswitch_is_what_the_import_prints() {
    const NOTE: &str = "# Three bridges of Open vSwitch, two hosts, and the flows of the bridges, as `thalweg topology import` prints them.\n\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/topologies/open-vswitch.toml");
    let expected = format!("{NOTE}{}", from_ovs(OVS[0].1, OVS[0].2).toml);
    if std::env::var_os("THALWEG_REFRESH_GOLDEN").is_some() {
        std::fs::write(path, &expected).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), expected);
}

#[test]
fn flows_may_name_ports() {
    let named = include_str!("golden/ovs/leaf0.named");
    assert!(named.contains("output:up0"));
    assert_eq!(from_ovs(OVS[0].1, named).toml, from_ovs(OVS[0].1, OVS[0].2).toml);
}

#[test]
fn one_neighbour_is_printed_without_an_array() {
    let one = r#"{"lldp": {"interface": {"Ethernet1": {"chassis": {"id": {"type": "mac", "value": "00:02:00:00:aa:01"}},
        "port": {"id": {"type": "ifname", "value": "eth7"}}}}}}"#;
    let mut discovery = Discovery::new(["a".to_owned()]);
    discovery.add_lldp("a", one, "one.json").unwrap();
    let text = discovery.build(LinkSpec::default()).unwrap().toml;
    assert!(text.contains("name = \"00:02:00:00:aa:01\"") && text.contains("port = \"Ethernet1\""), "{text}");
}

#[test]
fn what_is_not_a_report_is_refused() {
    let refused = |text: &str| switches().add_lldp("leaf0", text, "l.json").unwrap_err().to_string();
    for text in ["", "{}", "[1]", r#"{"lldp": {"interface": {"e": {}}}}"#] {
        let message = refused(text);
        assert!(message.starts_with("l.json: ") && message.contains("lldpcli -f json"), "{message}");
    }
    let other = LLDP[0].1.replace("swp49", "swp1");
    assert!(refused(&other).contains("port swp1 of leaf0 has two neighbours, h0:eth0 and spine0:swp1"));
    let none = Discovery::new([]).build(LinkSpec::default()).unwrap_err();
    assert!(none.to_string().contains("no endpoints"), "{none}");
}

#[test]
fn numbers_in_port_names_sort_as_numbers() {
    let mut names = ["Ethernet10", "Ethernet2", "Ethernet1/10", "Ethernet1/9", "lan"];
    names.sort_by_key(|name| natural(name));
    assert_eq!(names, ["Ethernet1/9", "Ethernet1/10", "Ethernet2", "Ethernet10", "lan"]);
}
