//! Messages encoded by hand from the specification.

use super::*;
use crate::mac_address::MacAddress;
use crate::protocol::Protocol;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Checks that the message encodes to these bytes, and that they decode to it.
fn check(body: Body, hex: &str) {
    let message = Message { xid: Xid(0x0102_0304), body };
    assert_eq!(encoded(&message), bytes(hex));
    assert_eq!(Message::decode(&bytes(hex)), Ok(message));
}

#[test]
fn a_hello_announces_version_1_3() {
    check(Body::Hello(Hello::supported()), "04 00 0010 01020304  0001 0008 00000010");
}

#[test]
fn a_barrier_is_only_a_header() {
    check(Body::BarrierRequest, "04 14 0008 01020304");
    check(Body::BarrierReply, "04 15 0008 01020304");
}

#[test]
fn a_flow_mod_has_match_and_rewrite_actions() {
    let matching = Match::any()
        .with(MatchField::InPort(PortNumber(1)))
        .with(MatchField::EthDst(Masked::new(
            MacAddress([2, 0x54, 0x57, 0, 0, 0]),
            MacAddress([0xff, 0xff, 0xff, 0xff, 0, 0]),
        )))
        .with(MatchField::EthType(0x0800))
        .with(MatchField::VlanVid((VLAN_PRESENT | 5).into()))
        .with(MatchField::IpProto(Protocol::TCP))
        .with(MatchField::Ipv4Src(Masked::new([10, 0, 0, 0].into(), [255, 0, 0, 0].into())))
        .with(MatchField::TcpDst(80));
    let actions = vec![
        Action::SetField(MatchField::EthDst(MacAddress([2, 0x54, 0x57, 1, 0, 9]).into())),
        Action::output(PortNumber(3)),
        Action::Group(GroupId(8)),
    ];
    let flow = FlowMod {
        cookie: 0x7468_616c_0000_0001,
        table_id: TableId(1),
        idle_timeout: 10,
        hard_timeout: 300,
        priority: 0x8000,
        flags: FlowFlags::SEND_FLOW_REMOVED | FlowFlags::RESET_COUNTS,
        matching,
        instructions: vec![Instruction::ApplyActions(actions), Instruction::GotoTable(TableId(2))],
        ..FlowMod::default()
    };
    check(
        Body::FlowMod(flow),
        "04 0e 00a8 01020304
         7468616c00000001 0000000000000000  01 00 000a 012c 8000  ffffffff ffffffff ffffffff 0005 0000
         0001 003f
           8000 00 04 00000001
           8000 07 0c 025457000000 ffffffff0000
           8000 0a 02 0800
           8000 0c 02 1005
           8000 14 01 06
           8000 17 08 0a000000 ff000000
           8000 1c 02 0050
           00
         0004 0030 00000000
           0019 0010 8000 06 06 025457010009 0000
           0000 0010 00000003 0000 000000000000
           0016 0008 00000008
         0001 0008 02 000000",
    );
}

#[test]
fn a_group_mod_has_buckets_with_watched_ports() {
    let bucket = |watch_port, port| Bucket {
        watch_port: PortNumber(watch_port),
        ..Bucket::new(vec![Action::output(PortNumber(port))])
    };
    let group = GroupMod {
        command: GroupModCommand::ADD,
        group_type: GroupType::FAST_FAILOVER,
        group_id: GroupId(9),
        buckets: vec![bucket(1, 1), bucket(2, 2)],
    };
    check(
        Body::GroupMod(group),
        "04 0f 0050 01020304  0000 03 00 00000009
         0020 0000 00000001 ffffffff 00000000  0000 0010 00000001 0000 000000000000
         0020 0000 00000002 ffffffff 00000000  0000 0010 00000002 0000 000000000000",
    );
}

#[test]
fn a_packet_in_has_two_bytes_of_padding_before_its_data() {
    let packet = PacketIn {
        buffer_id: BufferId::NONE,
        total_len: 60,
        reason: PacketInReason::ACTION,
        table_id: TableId(0),
        cookie: 5,
        matching: Match::any().with(MatchField::InPort(PortNumber(2))),
        data: vec![0xde, 0xad, 0xbe],
    };
    assert_eq!(packet.matching.in_port(), Some(PortNumber(2)));
    check(
        Body::PacketIn(packet),
        "04 0a 002d 01020304  ffffffff 003c 01 00 0000000000000005
         0001 000c 8000 00 04 00000002 00000000  0000  deadbe",
    );
}

#[test]
fn a_packet_out_has_the_length_of_its_actions() {
    check(
        Body::PacketOut(PacketOut::new(PortNumber(4), vec![1, 2])),
        "04 0d 002a 01020304  ffffffff fffffffd 0010 000000000000
         0000 0010 00000004 0000 000000000000  0102",
    );
}

#[test]
fn a_flow_request_by_cookie_is_56_bytes() {
    let request = multipart::Request::Flow(multipart::FlowFilter::by_cookie(0x74, 0xff));
    check(
        Body::MultipartRequest(request.into()),
        "04 12 0038 01020304  0001 0000 00000000
         ff 000000 ffffffff ffffffff 00000000 0000000000000074 00000000000000ff  0001 0004 00000000",
    );
}

#[test]
fn an_error_has_type_code_and_the_causing_message() {
    let error = ErrorMessage { error_type: ErrorType::FLOW_MOD_FAILED, code: 1, data: vec![4, 14] };
    check(Body::Error(error), "04 01 000e 01020304  0005 0001 040e");
}

#[test]
fn a_port_is_64_bytes() {
    let port = Port {
        port_no: PortNumber(1),
        hw_addr: MacAddress([2, 0, 0, 0, 0, 1]),
        name: Text::new("s1-eth1"),
        config: PortConfig(0),
        state: PortState::LIVE,
        curr: PortFeatures::FULL_10_GBIT | PortFeatures::COPPER,
        advertised: PortFeatures(0),
        supported: PortFeatures(0),
        peer: PortFeatures(0),
        curr_speed: 10_000_000,
        max_speed: 0,
    };
    assert!(port.is_up());
    check(
        Body::PortStatus(PortStatus { reason: PortReason::MODIFY, port }),
        "04 0c 0050 01020304  02 00000000000000
         00000001 00000000 020000000001 0000 73312d65746831000000000000000000
         00000000 00000004  00000840 00000000 00000000 00000000  00989680 00000000",
    );
}
