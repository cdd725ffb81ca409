//! Messages of every kind with its own structure, and some invalid ones.

use thalweg_wire::MacAddress;
use thalweg_wire::openflow::multipart::{
    FlowFilter, FlowStats, GroupDescription, MultipartReply, PortFilter, QueueFilter, Reply, Request,
};
use thalweg_wire::openflow::{
    Action, AsyncConfig, Body, Bucket, BufferId, Capabilities, DatapathId, ErrorMessage, ErrorType,
    Experimenter, FlowFlags, FlowMod, FlowRemoved, FlowRemovedReason, FragmentHandling, GroupId, GroupMod,
    GroupModCommand, GroupType, Hello, Instruction, Masked, Match, MatchField, Message, MetadataWrite,
    OtherField, PacketIn, PacketInReason, PacketOut, Port, PortConfig, PortFeatures, PortNumber, PortReason,
    PortState, PortStatus, QueueId, Role, RoleMasks, RoleRequest, SwitchConfig, SwitchFeatures, TableId,
    Text, Xid,
};

pub(crate) fn streams() -> Vec<(&'static str, Vec<u8>)> {
    let ask = |request: Request| Body::MultipartRequest(request.into());
    let answer = |reply| Body::MultipartReply(MultipartReply { more: true, reply });
    let removed = FlowRemoved {
        cookie: 1,
        priority: 100,
        reason: FlowRemovedReason::IDLE_TIMEOUT,
        table_id: TableId(0),
        duration_sec: 3,
        duration_nsec: 4,
        idle_timeout: 10,
        hard_timeout: 0,
        packet_count: 5,
        byte_count: 6_000,
        matching: matching(),
    };
    let packet = PacketIn {
        buffer_id: BufferId::NONE,
        total_len: 5,
        reason: PacketInReason::ACTION,
        table_id: TableId(0),
        cookie: 1,
        matching: Match::any().with(MatchField::InPort(PortNumber(1))),
        data: b"frame".to_vec(),
    };
    let buckets = vec![Bucket::new(vec![Action::output(PortNumber(1))]); 2];
    let (group_type, group_id) = (GroupType::SELECT, GroupId(1));
    let group = GroupMod { command: GroupModCommand::ADD, group_type, group_id, buckets: buckets.clone() };
    let described = GroupDescription { group_type, group_id, buckets };
    let masks = RoleMasks { master: 3, slave: 0 };
    let bodies = [
        ("hello", vec![Body::Hello(Hello::supported())]),
        (
            "error",
            vec![Body::Error(ErrorMessage { error_type: ErrorType::BAD_MATCH, code: 6, data: vec![4] })],
        ),
        ("echo", vec![Body::EchoRequest(vec![1, 2, 3]), Body::EchoReply(vec![])]),
        (
            "experimenter",
            vec![Body::Experimenter(Experimenter { experimenter: 1, exp_type: 2, data: vec![3] })],
        ),
        ("features", vec![Body::FeaturesRequest, Body::FeaturesReply(features())]),
        (
            "config",
            vec![
                Body::GetConfigRequest,
                Body::SetConfig(SwitchConfig { flags: FragmentHandling::DROP, miss_send_len: 128 }),
            ],
        ),
        ("packet-in", vec![Body::PacketIn(packet)]),
        ("flow-removed", vec![Body::FlowRemoved(removed)]),
        ("port-status", vec![Body::PortStatus(PortStatus { reason: PortReason::ADD, port: port() })]),
        ("packet-out", vec![Body::PacketOut(PacketOut::new(PortNumber(1), b"frame".to_vec()))]),
        ("flow-mod", vec![Body::FlowMod(flow_mod())]),
        ("group-mod", vec![Body::GroupMod(group)]),
        ("barrier", vec![Body::BarrierRequest, Body::BarrierReply]),
        ("role", vec![Body::RoleRequest(RoleRequest { role: Role::MASTER, generation_id: 9 })]),
        (
            "async",
            vec![Body::SetAsync(AsyncConfig { packet_in: masks, port_status: masks, flow_removed: masks })],
        ),
        (
            "questions",
            vec![
                ask(Request::Desc),
                ask(Request::Flow(FlowFilter::all())),
                ask(Request::PortStats(PortFilter { port_no: PortNumber::ANY })),
                ask(Request::Queue(QueueFilter { port_no: PortNumber::ANY, queue_id: QueueId::ALL })),
                ask(Request::Other { kind: 12, body: vec![] }),
            ],
        ),
        (
            "answers",
            vec![
                answer(Reply::Flow(vec![flow_stats(); 2])),
                answer(Reply::GroupDesc(vec![described; 2])),
                answer(Reply::PortDesc(vec![port(); 2])),
            ],
        ),
        ("unknown", vec![Body::Other { kind: 29, body: vec![0; 8] }]),
    ];
    let mut seeds: Vec<_> = bodies.into_iter().map(|(name, bodies)| (name, stream(bodies))).collect();
    let mut empty_action = stream(vec![Body::FlowMod(flow_mod())]);
    let at = empty_action.len() - 14;
    empty_action[at..at + 2].fill(0);
    seeds.push(("length-of-zero", empty_action));
    seeds.push(("hello-of-1-0", vec![1, 0, 0, 8, 0, 0, 0, 1]));
    seeds.push(("length-below-header", vec![4, 0, 0, 7, 0, 0, 0, 1]));
    seeds
}

fn stream(bodies: Vec<Body>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (body, xid) in bodies.into_iter().zip(1..) {
        Message { xid: Xid(xid), body }.encode(&mut bytes).unwrap();
    }
    bytes
}

fn features() -> SwitchFeatures {
    let capabilities = Capabilities::FLOW_STATS;
    SwitchFeatures { datapath_id: DatapathId(1), n_buffers: 0, n_tables: 1, auxiliary_id: 0, capabilities }
}

fn matching() -> Match {
    let unknown = OtherField { class: 1, field: 2, has_mask: false, payload: vec![3] };
    Match::any()
        .with(MatchField::InPort(PortNumber(1)))
        .with(MatchField::EthDst(Masked::new(MacAddress([2, 0, 0, 0, 0, 0]), MacAddress([0xff; 6]))))
        .with(MatchField::EthType(0x0800))
        .with(MatchField::Ipv4Src(Masked::new([10, 0, 0, 0].into(), [255, 0, 0, 0].into())))
        .with(MatchField::Other(unknown))
}

fn instructions() -> Vec<Instruction> {
    let actions = vec![
        Action::SetField(MatchField::EthDst(MacAddress([2, 0, 0, 0, 0, 1]).into())),
        Action::PushVlan(0x8100),
        Action::Other { kind: 11, body: vec![0; 4] },
        Action::output(PortNumber(3)),
    ];
    vec![
        Instruction::WriteMetadata(MetadataWrite { metadata: 1, mask: 0xff }),
        Instruction::ApplyActions(actions),
        Instruction::ClearActions,
        Instruction::GotoTable(TableId(1)),
        Instruction::WriteActions(vec![Action::PopVlan]),
    ]
}

fn flow_mod() -> FlowMod {
    FlowMod {
        cookie: 1,
        priority: 100,
        matching: matching(),
        instructions: instructions(),
        ..FlowMod::default()
    }
}

fn flow_stats() -> FlowStats {
    FlowStats {
        table_id: TableId(0),
        duration_sec: 1,
        duration_nsec: 2,
        priority: 100,
        idle_timeout: 0,
        hard_timeout: 0,
        flags: FlowFlags::SEND_FLOW_REMOVED,
        cookie: 1,
        packet_count: 2,
        byte_count: 3,
        matching: matching(),
        instructions: instructions(),
    }
}

fn port() -> Port {
    Port {
        port_no: PortNumber(1),
        hw_addr: MacAddress([2, 0, 0, 0, 0, 1]),
        name: Text::new("p1"),
        config: PortConfig::default(),
        state: PortState::LIVE,
        curr: PortFeatures::FULL_10_GBIT,
        advertised: PortFeatures::default(),
        supported: PortFeatures::default(),
        peer: PortFeatures::default(),
        curr_speed: 10_000_000,
        max_speed: 10_000_000,
    }
}
