//! The messages of `os_ken_codec.py encode`.

use thalweg_wire::openflow::multipart::{FlowFilter, PortFilter, QueueFilter, Request};
use thalweg_wire::openflow::{
    Action, AsyncConfig, Body, Bucket, BufferId, FlowFlags, FlowMod, FlowModCommand, FragmentHandling,
    GroupId, GroupMod, GroupModCommand, GroupType, Hello, Instruction, Masked, Match, MatchField,
    MetadataWrite, PacketOut, PortNumber, QueueId, Role, RoleMasks, RoleRequest, SwitchConfig, TableId,
    VLAN_PRESENT,
};
use thalweg_wire::{MacAddress, Protocol};

/// Returns each message with its name in the script.
pub(crate) fn by_name() -> Vec<(&'static str, Body)> {
    let request = |request: Request| Body::MultipartRequest(request.into());
    let filter = FlowFilter::by_cookie(0x74, 0xff);
    let async_config = AsyncConfig {
        packet_in: RoleMasks { master: 3, slave: 0 },
        port_status: RoleMasks { master: 7, slave: 7 },
        flow_removed: RoleMasks { master: 15, slave: 0 },
    };
    vec![
        ("hello", Body::Hello(Hello::default())),
        ("echo", Body::EchoRequest(b"still there?".to_vec())),
        ("features", Body::FeaturesRequest),
        ("get_config", Body::GetConfigRequest),
        ("set_config", Body::SetConfig(SwitchConfig { flags: FragmentHandling::NORMAL, miss_send_len: 128 })),
        ("flow_mod", Body::FlowMod(flow_mod())),
        ("arp", Body::FlowMod(add(arp()))),
        ("ipv6", Body::FlowMod(add(ipv6()))),
        ("group", Body::GroupMod(failover())),
        ("select", Body::GroupMod(select())),
        ("packet_out", Body::PacketOut(PacketOut::new(PortNumber(4), b"a frame".to_vec()))),
        ("barrier", Body::BarrierRequest),
        ("role", Body::RoleRequest(RoleRequest { role: Role::MASTER, generation_id: 12 })),
        ("get_async", Body::GetAsyncRequest),
        ("set_async", Body::SetAsync(async_config)),
        ("desc", request(Request::Desc)),
        ("flows", request(Request::Flow(filter.clone()))),
        ("aggregate", request(Request::Aggregate(filter))),
        ("tables", request(Request::Table)),
        ("ports", request(Request::PortStats(PortFilter { port_no: PortNumber(3) }))),
        ("queues", request(Request::Queue(QueueFilter { port_no: PortNumber(3), queue_id: QueueId::ALL }))),
        ("groups", request(Request::GroupDesc)),
        ("port_desc", request(Request::PortDesc)),
    ]
}

fn flow_mod() -> FlowMod {
    let matching = Match::any()
        .with(MatchField::InPort(PortNumber(1)))
        .with(MatchField::Metadata(Masked::new(0x0123_4567 << 32, 0xffff_ffff << 32)))
        .with(MatchField::EthDst(Masked::new(
            MacAddress([2, 0x54, 0x57, 0, 0, 0]),
            MacAddress([0xff, 0xff, 0xff, 0xff, 0, 0]),
        )))
        .with(MatchField::EthSrc(MacAddress([2, 0x54, 0x57, 0, 0, 1]).into()))
        .with(MatchField::EthType(0x0800))
        .with(MatchField::VlanVid((VLAN_PRESENT | 5).into()))
        .with(MatchField::IpProto(Protocol::TCP))
        .with(MatchField::Ipv4Src(Masked::new([10, 0, 0, 0].into(), [255, 0, 0, 0].into())))
        .with(MatchField::Ipv4Dst(Masked { value: [10, 0, 1, 9].into(), mask: None }))
        .with(MatchField::TcpSrc(443))
        .with(MatchField::TcpDst(51_000));
    let rewrite = vec![
        Action::SetQueue(QueueId(7)),
        Action::PushVlan(0x8100),
        Action::SetField(MatchField::EthDst(MacAddress([2, 0x54, 0x57, 1, 0, 9]).into())),
        Action::PopVlan,
        Action::output(PortNumber(3)),
        Action::Group(GroupId(9)),
    ];
    FlowMod {
        cookie: 0x74,
        cookie_mask: 0xff,
        table_id: TableId(1),
        command: FlowModCommand::MODIFY_STRICT,
        idle_timeout: 10,
        hard_timeout: 300,
        priority: 0x8000,
        buffer_id: BufferId(77),
        out_port: PortNumber(5),
        out_group: GroupId(6),
        flags: FlowFlags::SEND_FLOW_REMOVED | FlowFlags::RESET_COUNTS,
        matching,
        instructions: vec![
            Instruction::ApplyActions(rewrite),
            Instruction::ClearActions,
            Instruction::WriteActions(vec![Action::output(PortNumber(4))]),
            Instruction::WriteMetadata(MetadataWrite { metadata: 5, mask: 0xff }),
            Instruction::GotoTable(TableId(2)),
        ],
    }
}

fn arp() -> Match {
    Match::any()
        .with(MatchField::EthType(0x0806))
        .with(MatchField::ArpOp(1))
        .with(MatchField::ArpSpa(Masked { value: [10, 0, 0, 1].into(), mask: None }))
        .with(MatchField::ArpTpa(Masked::new([10, 0, 0, 0].into(), [255, 0, 0, 0].into())))
}

fn ipv6() -> Match {
    let source = [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into();
    Match::any()
        .with(MatchField::EthType(0x86dd))
        .with(MatchField::IpProto(Protocol::UDP))
        .with(MatchField::UdpDst(53))
        .with(MatchField::Ipv6Src(Masked { value: source, mask: None }))
}

/// As os-ken adds an entry when it is told no more: at the default priority of its own, for all ports and groups.
fn add(matching: Match) -> FlowMod {
    FlowMod {
        priority: 0x8000,
        out_port: PortNumber(0),
        out_group: GroupId(0),
        matching,
        ..FlowMod::default()
    }
}

fn failover() -> GroupMod {
    let bucket = |port| Bucket { watch_port: port, ..Bucket::new(vec![Action::output(port)]) };
    GroupMod {
        command: GroupModCommand::ADD,
        group_type: GroupType::FAST_FAILOVER,
        group_id: GroupId(9),
        buckets: vec![bucket(PortNumber(1)), bucket(PortNumber(2))],
    }
}

fn select() -> GroupMod {
    let bucket = |weight| Bucket { weight, ..Bucket::new(vec![Action::output(PortNumber(weight.into()))]) };
    GroupMod {
        command: GroupModCommand::MODIFY,
        group_type: GroupType::SELECT,
        group_id: GroupId(10),
        buckets: vec![bucket(1), bucket(3)],
    }
}
