//! OpenFlow connections tested against Open vSwitch: its shown entries, its answers, and a log without complaints.
//!
//! Needs Open vSwitch (`apt-get install openvswitch-switch`), but neither root nor its kernel module. Prints that it
//! is skipped if Open vSwitch is missing.

mod fabric;
mod ovs;

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use crossbeam_channel::Receiver;
use ovs::{BRIDGE, Ovs};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use thalweg_actuators::openflow::{
    BackOff, Config, DownReason, Event, Failure, HandshakeError, ReadBack, Switches, Tls, Up,
};
use thalweg_wire::openflow::multipart::FlowFilter;
use thalweg_wire::openflow::{
    Action, Body, Bucket, BufferId, FlowFlags, FlowMod, FlowModCommand, FlowRemovedReason, GroupId, GroupMod,
    GroupModCommand, GroupType, Instruction, Masked, Match, MatchField, MetadataWrite, PacketInReason,
    PacketOut, PortNumber, PortReason, TableId, VLAN_PRESENT,
};
use thalweg_wire::{MacAddress, Nanos, Protocol};

/// First byte of the cookies of these tests.
const OURS: u64 = 0x74 << 56;
const OURS_MASK: u64 = 0xff << 56;
const REQUEST_TIMEOUT: Nanos = Nanos::from_secs(10);
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts Open vSwitch, or prints that the test is skipped.
fn ovs(test: &str, protocols: &str) -> Option<Ovs> {
    let ovs = Ovs::start(protocols);
    if ovs.is_none() {
        let line = format!("skipped: {test}: needs Open vSwitch (apt-get install openvswitch-switch)\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    ovs
}

fn config() -> Config {
    let back_off = BackOff { first: Nanos::from_millis(20), longest: Nanos::from_millis(200) };
    let read_back = ReadBack { cookie: OURS, mask: OURS_MASK };
    Config { read_back, back_off, ..Config::default() }
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Listens, and waits for the switch to connect.
fn connected(ovs: &Ovs) -> (Switches, Receiver<Event>, Up) {
    let (switches, events) = Switches::new(config());
    ovs.connect_to(switches.listen(local(0), None).unwrap());
    let up = next_up(&events);
    (switches, events, up)
}

fn next(events: &Receiver<Event>) -> Event {
    events.recv_timeout(TEST_TIMEOUT).expect("an event")
}

fn next_up(events: &Receiver<Event>) -> Up {
    loop {
        match next(events) {
            Event::Up(up) => return *up,
            // Expected while Open vSwitch starts and stops.
            Event::Refused {
                error: HandshakeError::Unreachable(_) | HandshakeError::Version { .. }, ..
            }
            | Event::Down { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Asserts that Open vSwitch logged no complaint.
fn check_log(ovs: &Ovs) {
    assert_eq!(ovs.complaints(), Vec::<String>::new());
}

fn mac(last: u8) -> MacAddress {
    MacAddress([2, 0x54, 0x57, 0, 0, last])
}

fn output(port: u32) -> Vec<Instruction> {
    vec![Instruction::ApplyActions(vec![Action::output(PortNumber(port))])]
}

/// Returns an entry for packets to this address.
fn to(last: u8, instructions: Vec<Instruction>) -> FlowMod {
    let matching = Match::any().with(MatchField::EthDst(mac(last).into()));
    FlowMod { cookie: OURS | u64::from(last), priority: 100, matching, instructions, ..FlowMod::default() }
}

fn group(command: GroupModCommand, group_id: u32, group_type: GroupType, buckets: Vec<Bucket>) -> Body {
    Body::GroupMod(GroupMod { command, group_type, group_id: GroupId(group_id), buckets })
}

fn send(up: &Up, messages: &[Body]) -> Result<(), Failure> {
    up.switch.send_batch(messages, REQUEST_TIMEOUT).unwrap().wait().result
}

#[test]
fn all_matches_and_actions_are_shown_as_sent() {
    let Some(ovs) = ovs("all_matches_and_actions", "OpenFlow13") else { return };
    let (_switches, _events, up) = connected(&ovs);
    let ports: Vec<_> = up.ports.iter().map(|port| (port.port_no, port.name.to_string())).collect();
    for (number, name) in [(1, "p1"), (2, "p2"), (3, "p3")] {
        assert!(ports.contains(&(PortNumber(number), name.into())), "{ports:?}");
    }
    assert_eq!((up.flows.len(), up.groups.len()), (0, 0));

    let bucket = |port: u32, weight, watch_port| Bucket {
        weight,
        watch_port,
        ..Bucket::new(vec![Action::output(PortNumber(port))])
    };
    let any = PortNumber::ANY;
    let add = GroupModCommand::ADD;
    let groups = [
        group(add, 1, GroupType::ALL, vec![bucket(1, 0, any), bucket(2, 0, any)]),
        group(add, 2, GroupType::SELECT, vec![bucket(1, 1, any), bucket(2, 3, any)]),
        group(add, 3, GroupType::INDIRECT, vec![bucket(3, 0, any)]),
        group(
            add,
            4,
            GroupType::FAST_FAILOVER,
            vec![bucket(1, 0, PortNumber(1)), bucket(2, 0, PortNumber(2))],
        ),
    ];
    assert_eq!(send(&up, &groups), Ok(()));

    let ip = Match::any().with(MatchField::EthType(0x0800));
    let ipv4 = |fields: Vec<MatchField>| fields.into_iter().fold(ip.clone(), Match::with);
    let tcp = ipv4(vec![
        MatchField::InPort(PortNumber(1)),
        MatchField::IpProto(Protocol::TCP),
        MatchField::Ipv4Src(Masked::new([10, 0, 0, 0].into(), [255, 0, 0, 0].into())),
        MatchField::Ipv4Dst(Masked { value: [10, 0, 1, 9].into(), mask: None }),
        MatchField::TcpSrc(443),
        MatchField::TcpDst(51_000),
    ]);
    let udp = ipv4(vec![MatchField::IpProto(Protocol::UDP), MatchField::UdpDst(53), MatchField::IpDscp(46)]);
    let sctp = ipv4(vec![
        MatchField::IpProto(Protocol::SCTP),
        MatchField::SctpSrc(9_899),
        MatchField::SctpDst(9_900),
    ]);
    let mark = vec![Action::SetField(MatchField::IpDscp(1)), Action::output(PortNumber::NORMAL)];
    let arp = Match::any()
        .with(MatchField::EthType(0x0806))
        .with(MatchField::ArpOp(1))
        .with(MatchField::ArpTpa(Masked { value: [10, 0, 0, 1].into(), mask: None }));
    let ipv6 = Match::any()
        .with(MatchField::EthType(0x86dd))
        .with(MatchField::Ipv6Dst(Masked { value: [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(), mask: None }));
    let vlan = Match::any()
        .with(MatchField::VlanVid((VLAN_PRESENT | 5).into()))
        .with(MatchField::EthSrc(Masked::new(mac(0), MacAddress([0xff, 0xff, 0xff, 0, 0, 0]))));
    let metadata = Match::any().with(MatchField::Metadata(Masked::new(5, 0xff)));
    let rewrite = vec![
        Action::SetField(MatchField::EthDst(mac(9).into())),
        Action::PushVlan(0x8100),
        Action::set_vlan(7),
        Action::SetQueue(thalweg_wire::openflow::QueueId(2)),
        Action::output(PortNumber(3)),
    ];
    let apply = |actions| vec![Instruction::ApplyActions(actions)];
    let next_table = vec![
        Instruction::WriteMetadata(MetadataWrite { metadata: 5, mask: 0xff }),
        Instruction::GotoTable(TableId(1)),
    ];
    let cases = [
        (
            0,
            tcp,
            apply(rewrite),
            "tcp,in_port=1,nw_src=10.0.0.0/8,nw_dst=10.0.1.9,tp_src=443,tp_dst=51000",
            "set_field:02:54:57:00:00:09->eth_dst,push_vlan:0x8100,set_field:4103->vlan_vid,set_queue:2,output:3",
        ),
        (0, udp, apply(vec![Action::Group(GroupId(2))]), "udp,nw_tos=184,tp_dst=53", "group:2"),
        (0, sctp, apply(mark), "sctp,tp_src=9899,tp_dst=9900", "set_field:1->ip_dscp,NORMAL"),
        (0, arp, apply(vec![Action::to_controller()]), "arp,arp_tpa=10.0.0.1,arp_op=1", "CONTROLLER:65535"),
        (0, ipv6, next_table, "ipv6,ipv6_dst=2001:db8::1", "write_metadata:0x5/0xff,goto_table:1"),
        (
            0,
            vlan,
            apply(vec![Action::PopVlan, Action::output(PortNumber::IN_PORT)]),
            "dl_vlan=5,dl_src=02:54:57:00:00:00/ff:ff:ff:00:00:00",
            "pop_vlan,IN_PORT",
        ),
        (
            1,
            metadata,
            vec![Instruction::ClearActions, Instruction::WriteActions(vec![Action::output(PortNumber(2))])],
            "metadata=0x5/0xff",
            "clear_actions,write_actions(output:2)",
        ),
    ];
    let mut flows = Vec::new();
    for ((table, matching, instructions, ..), cookie) in cases.iter().zip(1..) {
        flows.push(FlowMod {
            cookie: OURS | cookie,
            table_id: TableId(*table),
            priority: 100,
            hard_timeout: 300,
            flags: FlowFlags::SEND_FLOW_REMOVED,
            matching: matching.clone(),
            instructions: instructions.clone(),
            ..FlowMod::default()
        });
    }
    let messages: Vec<_> = flows.iter().cloned().map(Body::FlowMod).collect();
    assert_eq!(send(&up, &messages), Ok(()));

    let shown = ovs.ofctl("dump-flows");
    for ((table, .., matching, actions), cookie) in cases.iter().zip(1_u64..) {
        let cookie = format!("cookie={:#x}, ", OURS | cookie);
        let line = shown.lines().find(|line| line.contains(&cookie)).unwrap_or_else(|| panic!("{shown}"));
        let options = "hard_timeout=300, send_flow_rem priority=100,";
        for part in [&format!("table={table}, "), options, matching, &format!(" actions={actions}")] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }
    let shown = ovs.ofctl("dump-groups");
    for part in [
        "group_id=1,type=all,bucket=actions=output:1,bucket=actions=output:2",
        "group_id=2,type=select,bucket=actions=output:1,bucket=weight:3,actions=output:2",
        "group_id=3,type=indirect,bucket=actions=output:3",
        "group_id=4,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_port:2,actions=output:2",
    ] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }

    // The entries read back equal those sent.
    let mut read = up.switch.flows(FlowFilter::by_cookie(OURS, OURS_MASK), REQUEST_TIMEOUT).unwrap();
    read.sort_by_key(|flow| flow.cookie);
    assert_eq!(read.len(), flows.len());
    for (read, sent) in read.iter().zip(flows) {
        assert_eq!((read.cookie, read.table_id, read.flags), (sent.cookie, sent.table_id, sent.flags));
        assert_eq!(read.matching.clone().sorted(), sent.matching.sorted());
        assert_eq!(read.instructions, sent.instructions);
    }
    assert_eq!(up.switch.groups(REQUEST_TIMEOUT).unwrap().len(), 4);
    check_log(&ovs);
}

#[test]
fn entries_are_changed_and_deleted_strictly_and_by_cookie() {
    let Some(ovs) = ovs("entries_are_changed_and_deleted", "OpenFlow13") else { return };
    let (_switches, events, up) = connected(&ovs);
    let foreign = FlowMod { cookie: 1, ..to(9, output(3)) };
    let first = FlowMod { flags: FlowFlags::SEND_FLOW_REMOVED, ..to(1, output(1)) };
    let flows = [first.clone(), to(2, output(1)), to(3, output(1)), foreign].map(Body::FlowMod);
    assert_eq!(send(&up, &flows), Ok(()));
    let command = FlowModCommand::MODIFY_STRICT;
    let changed = Body::FlowMod(FlowMod { command, ..to(2, output(2)) });
    let deleted =
        Body::FlowMod(FlowMod { command: FlowModCommand::DELETE_STRICT, instructions: vec![], ..first });
    assert_eq!(send(&up, &[changed, deleted]), Ok(()));
    let removed = next(&events);
    let Event::FlowRemoved { flow, .. } = removed else { panic!("{removed:?}") };
    assert_eq!((flow.cookie, flow.reason), (OURS | 1, FlowRemovedReason::DELETE));
    let shown = ovs.ofctl("dump-flows");
    assert_eq!(shown.matches("cookie=").count(), 3, "{shown}");
    assert!(shown.contains("dl_dst=02:54:57:00:00:02 actions=output:2"), "{shown}");
    assert_eq!(send(&up, &[Body::FlowMod(FlowMod::delete_by_cookie(OURS, OURS_MASK))]), Ok(()));
    let shown = ovs.ofctl("dump-flows");
    assert_eq!(shown.matches("cookie=").count(), 1, "{shown}");
    assert!(shown.contains("cookie=0x1,"), "{shown}");
    check_log(&ovs);
}

#[test]
fn a_refused_message_is_reported_with_its_reason() {
    let Some(ovs) = ovs("a_refused_message", "OpenFlow13") else { return };
    let (_switches, _events, up) = connected(&ovs);
    let no_such_group = to(2, vec![Instruction::ApplyActions(vec![Action::Group(GroupId(77))])]);
    let refused = send(&up, &[to(1, output(1)), no_such_group, to(3, output(1))].map(Body::FlowMod));
    let Err(Failure::Refused { position: 1, error, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(error.to_string(), "bad action: bad out group (type 2, code 9)");
    assert_eq!(ovs.ofctl("dump-flows").matches("cookie=").count(), 2, "the others are installed");
}

#[test]
fn packets_pass_in_both_directions_and_new_ports_are_reported() {
    let Some(ovs) = ovs("packets_pass_in_both_directions", "OpenFlow13") else { return };
    let (_switches, events, up) = connected(&ovs);
    let to_us = to(1, vec![Instruction::ApplyActions(vec![Action::to_controller()])]);
    assert_eq!(send(&up, &[Body::FlowMod(to_us)]), Ok(()));
    let mut frame = vec![2, 0x54, 0x57, 0, 0, 1, 2, 0x54, 0x57, 0, 0, 2, 0x88, 0xb5];
    frame.resize(60, 0xab);
    let through_tables =
        PacketOut { in_port: PortNumber(2), ..PacketOut::new(PortNumber::TABLE, frame.clone()) };
    up.switch.send(&[Body::PacketOut(through_tables)]).unwrap();
    let event = next(&events);
    let Event::PacketIn { packet, .. } = event else { panic!("{event:?}") };
    assert_eq!((packet.data, packet.buffer_id), (frame, BufferId::NONE));
    assert_eq!((packet.reason, packet.cookie), (PacketInReason::ACTION, OURS | 1));
    assert_eq!(packet.matching.in_port(), Some(PortNumber(2)));
    ovs.add_port(4);
    loop {
        let event = next(&events);
        let Event::PortStatus { status, .. } = event else { panic!("{event:?}") };
        if status.reason == PortReason::ADD {
            assert_eq!((status.port.port_no, status.port.name.to_string()), (PortNumber(4), "p4".into()));
            break;
        }
    }
    let stats = up.switch.port_stats(PortNumber(2), REQUEST_TIMEOUT).unwrap();
    assert_eq!(stats.iter().map(|port| port.port_no).collect::<Vec<_>>(), [PortNumber(2)]);
    check_log(&ovs);
}

#[test]
fn a_restarted_switch_reconnects_without_entries() {
    let Some(mut ovs) = ovs("a_restarted_switch", "OpenFlow13") else { return };
    let (_switches, events, up) = connected(&ovs);
    let flows: Vec<_> = (1..=100).map(|last| Body::FlowMod(to(last, output(1)))).collect();
    assert_eq!(send(&up, &flows), Ok(()));
    ovs.kill_switch();
    let event = next(&events);
    let Event::Down { reason, .. } = event else { panic!("{event:?}") };
    assert!(matches!(reason, DownReason::Closed | DownReason::Broken(_)), "{reason}");
    ovs.start_switch();
    let again = next_up(&events);
    assert_eq!(again.features.datapath_id, up.features.datapath_id);
    assert_eq!(again.flows.len(), 0, "a restarted switch is empty");
    assert_eq!(send(&again, &flows), Ok(()));
    assert_eq!(ovs.ofctl("dump-flows").matches("cookie=").count(), 100);
    check_log(&ovs);
}

#[test]
fn a_restarted_controller_reads_its_installed_entries() {
    let Some(ovs) = ovs("a_restarted_controller", "OpenFlow13") else { return };
    let (switches, _events, up) = connected(&ovs);
    let foreign = FlowMod { cookie: 1, ..to(0, output(3)) };
    // More than fits into one answer message.
    let flows: Vec<_> = (0..2_000_u16)
        .map(|number| {
            let [high, low] = number.to_be_bytes();
            let matching = Match::any().with(MatchField::EthDst(MacAddress([2, 0, 0, 0, high, low]).into()));
            FlowMod { cookie: OURS | u64::from(number), matching, ..to(1, output(1)) }
        })
        .collect();
    let one_more = group(GroupModCommand::ADD, 5, GroupType::INDIRECT, vec![Bucket::new(vec![])]);
    let messages =
        [one_more, Body::FlowMod(foreign)].into_iter().chain(flows.iter().cloned().map(Body::FlowMod));
    assert_eq!(send(&up, &messages.collect::<Vec<_>>()), Ok(()));
    drop(switches);
    assert_eq!(ovs.ofctl("dump-flows").matches("cookie=").count(), 2_001, "the switch keeps forwarding");

    let (_switches, _events, up) = connected(&ovs);
    let mut read = up.flows;
    read.sort_by_key(|flow| flow.cookie);
    assert_eq!(read.len(), flows.len(), "all own entries, and no other");
    assert!(read.iter().zip(&flows).all(|(read, sent)| read.matching == sent.matching));
    assert_eq!(up.groups.iter().map(|group| group.group_id).collect::<Vec<_>>(), [GroupId(5)]);
}

#[test]
fn the_controller_connects_to_a_listening_switch() {
    let Some(mut ovs) = ovs("a_listening_switch", "OpenFlow13") else { return };
    // A port that is free now; closing the listener keeps it free.
    let port = TcpListener::bind(local(0)).unwrap().local_addr().unwrap().port();
    ovs.set_controller(&format!("ptcp:{port}:127.0.0.1"));
    let (switches, events) = Switches::new(config());
    switches.connect(local(port), None).unwrap();
    let up = next_up(&events);
    assert_eq!(send(&up, &[Body::FlowMod(to(1, output(1)))]), Ok(()));
    ovs.kill_switch();
    assert!(matches!(next(&events), Event::Down { .. }));
    ovs.start_switch();
    assert_eq!(send(&next_up(&events), &[Body::FlowMod(to(1, output(1)))]), Ok(()));
    check_log(&ovs);
}

#[test]
fn a_switch_connects_with_tls() {
    let Some(ovs) = ovs("a_switch_connects_with_tls", "OpenFlow13") else { return };
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Needs a name of its own: otherwise OpenSSL takes the certificates that it signs for self-signed.
    params.distinguished_name.push(DnType::CommonName, "authority");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(ovs.path("ca.pem"), authority.pem()).unwrap();
    for side in ["controller", "switch"] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".into()]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        std::fs::write(ovs.path(&format!("{side}.pem")), certificate.pem()).unwrap();
        std::fs::write(ovs.path(&format!("{side}.key")), key.serialize_pem()).unwrap();
    }
    let tls = Tls::from_files(&ovs.path("controller.pem"), &ovs.path("controller.key"), &ovs.path("ca.pem"))
        .unwrap();
    let (switches, events) = Switches::new(config());
    let address = switches.listen(local(0), Some(tls)).unwrap();
    let paths = ["switch.key", "switch.pem", "ca.pem"].map(|name| ovs.path(name).display().to_string());
    ovs.vsctl(&[&["set-ssl"][..], &paths.each_ref().map(String::as_str)].concat());
    ovs.set_controller(&format!("ssl:{address}"));
    let up = next_up(&events);
    let flows: Vec<_> = (1..=100).map(|last| Body::FlowMod(to(last, output(1)))).collect();
    assert_eq!(send(&up, &flows), Ok(()));
    assert_eq!(ovs.ofctl("dump-flows").matches("cookie=").count(), 100);
    check_log(&ovs);
}

#[test]
fn a_switch_with_only_1_0_is_refused() {
    let Some(ovs) = ovs("a_switch_with_only_1_0", "OpenFlow10") else { return };
    let (switches, events) = Switches::new(config());
    ovs.connect_to(switches.listen(local(0), None).unwrap());
    let event = next(&events);
    let Event::Refused { error, .. } = event else { panic!("{event:?}") };
    assert_eq!(error, HandshakeError::Version { highest: 1 });
    ovs.vsctl(&["set", "bridge", BRIDGE, "protocols=OpenFlow13"]);
    next_up(&events);
}
