//! Compares the OpenFlow codec with that of os-ken, a controller framework in Python.
//!
//! Requires `python3` with os-ken (`pip install os-ken`); otherwise the tests are skipped with a message.

mod expected;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use thalweg_wire::openflow::multipart::{FlowStats, MultipartReply, PortStats, Reply};
use thalweg_wire::openflow::{
    Action, Body, BufferId, Capabilities, DatapathId, ErrorMessage, ErrorType, FlowFlags, FlowRemoved,
    FlowRemovedReason, Instruction, Match, MatchField, Message, PacketIn, PacketInReason, Port, PortConfig,
    PortFeatures, PortNumber, PortReason, PortState, PortStatus, SwitchFeatures, TableId, Text, Xid,
};
use thalweg_wire::{MacAddress, Protocol};

/// Returns the lines that `os_ken_codec.py` prints for a task and input, or `None` without os-ken.
fn os_ken(test: &str, task: &str, input: &str) -> Option<Vec<String>> {
    // Debian's package is for the system Python, which may not be first in the path.
    let has_os_ken = |python: &&str| {
        let status = Command::new(python).args(["-c", "import os_ken.tests"]).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(has_os_ken) else {
        skipped(test, "python3 with os-ken (pip install os-ken)");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/openflow_os_ken/os_ken_codec.py");
    let mut python = Command::new(python)
        .arg(script)
        .arg(task)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A few kilobytes fit into the pipe.
    python.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "os_ken_codec.py {task} failed");
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

fn skipped(test: &str, needs: &str) {
    std::io::stderr().write_all(format!("skipped: {test}: needs {needs}\n").as_bytes()).unwrap();
}

fn named_bytes(line: &str) -> (&str, Vec<u8>) {
    let (name, hex) = line.split_once(' ').unwrap();
    let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
    (name, bytes.collect())
}

fn encoded(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(&mut out).unwrap();
    out
}

#[test]
fn controller_messages_are_encoded_as_by_os_ken() {
    let Some(lines) = os_ken("controller_messages_are_encoded_as_by_os_ken", "encode", "") else { return };
    let mut expected = expected::by_name();
    for line in &lines {
        let (name, bytes) = named_bytes(line);
        let at = expected.iter().position(|(known, _)| *known == name);
        let (_, body) = expected.swap_remove(at.unwrap_or_else(|| panic!("{name} is not expected")));
        let message = Message { xid: Xid(0x0102_0304), body };
        assert_eq!(Message::decode(&bytes), Ok(message.clone()), "{name}");
        assert_eq!(encoded(&message), bytes, "{name}");
    }
    assert!(expected.is_empty(), "missing from os-ken: {expected:?}");
}

#[test]
fn messages_of_other_switches_and_controllers_round_trip() {
    const TEST: &str = "messages_of_other_switches_and_controllers_round_trip";
    let Some(lines) = os_ken(TEST, "samples", "") else { return };
    if lines.is_empty() {
        // Debian's package does not include them.
        return skipped(TEST, "the test messages of os-ken (pip install os-ken)");
    }
    assert!(lines.len() >= 100, "{} messages", lines.len());
    for line in &lines {
        let (name, bytes) = named_bytes(line);
        let message = Message::decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(encoded(&message), bytes, "{name}: {message:?}");
    }
}

#[test]
fn os_ken_decodes_switch_messages() {
    let port = Port {
        port_no: PortNumber(3),
        hw_addr: MacAddress([2, 0x54, 0x57, 0, 0, 3]),
        name: Text::new("s1-eth3"),
        config: PortConfig::NO_FWD,
        state: PortState::LIVE,
        curr: PortFeatures::FULL_10_GBIT,
        advertised: PortFeatures::COPPER,
        supported: PortFeatures::PAUSE,
        peer: PortFeatures(0),
        curr_speed: 10_000_000,
        max_speed: 40_000_000,
    };
    let matching = Match::any()
        .with(MatchField::InPort(PortNumber(3)))
        .with(MatchField::EthType(0x0800))
        .with(MatchField::IpProto(Protocol::UDP))
        .with(MatchField::UdpDst(53));
    let features = SwitchFeatures {
        datapath_id: DatapathId(0xabcd),
        n_buffers: 256,
        n_tables: 254,
        auxiliary_id: 0,
        capabilities: Capabilities::FLOW_STATS | Capabilities::PORT_STATS,
    };
    let packet = PacketIn {
        buffer_id: BufferId(9),
        total_len: 1_514,
        reason: PacketInReason::ACTION,
        table_id: TableId(2),
        cookie: 0x74,
        matching: matching.clone(),
        data: b"frame".to_vec(),
    };
    let removed = FlowRemoved {
        cookie: 0x74,
        priority: 100,
        reason: FlowRemovedReason::HARD_TIMEOUT,
        table_id: TableId(1),
        duration_sec: 60,
        duration_nsec: 5,
        idle_timeout: 10,
        hard_timeout: 60,
        packet_count: 1_000,
        byte_count: 1_500_000,
        matching: matching.clone(),
    };
    let flow = FlowStats {
        table_id: TableId(1),
        duration_sec: 3,
        duration_nsec: 4,
        priority: 100,
        idle_timeout: 0,
        hard_timeout: 0,
        flags: FlowFlags::SEND_FLOW_REMOVED,
        cookie: 0x74,
        packet_count: 5,
        byte_count: 6_000,
        matching,
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNumber(4))])],
    };
    let counters = PortStats {
        port_no: PortNumber(3),
        rx_packets: 1,
        tx_packets: 2,
        rx_bytes: 3,
        tx_bytes: 4,
        rx_dropped: 5,
        tx_dropped: 6,
        rx_errors: 7,
        tx_errors: 8,
        rx_frame_err: 9,
        rx_over_err: 10,
        rx_crc_err: 11,
        collisions: 12,
        duration_sec: 13,
        duration_nsec: 14,
    };
    let error = ErrorMessage { error_type: ErrorType::BAD_MATCH, code: 6, data: vec![4, 14, 0, 56] };
    let answer = |reply| Body::MultipartReply(MultipartReply { more: true, reply });
    // Messages, and parts of the expected result.
    let messages: Vec<(Body, &[&str])> = vec![
        (
            Body::FeaturesReply(features),
            &["\"datapath_id\": 43981", "\"n_tables\": 254", "\"capabilities\": 5"],
        ),
        (
            Body::PacketIn(packet),
            &["\"total_len\": 1514", "\"data\": \"ZnJhbWU=\"", "\"udp_dst\"", "\"cookie\": 116"],
        ),
        (Body::FlowRemoved(removed), &["\"byte_count\": 1500000", "\"reason\": 1", "\"udp_dst\""]),
        (
            Body::PortStatus(PortStatus { reason: PortReason::DELETE, port }),
            &["\"name\": \"s1-eth3\"", "02:54:57:00:00:03", "\"reason\": 1", "\"max_speed\": 40000000"],
        ),
        (
            answer(Reply::Flow(vec![flow.clone(), flow])),
            &["\"flags\": 1", "OFPActionOutput", "\"byte_count\": 6000"],
        ),
        (answer(Reply::PortStats(vec![counters])), &["\"collisions\": 12", "\"rx_crc_err\": 11"]),
        (answer(Reply::PortDesc(vec![port, port])), &["\"curr_speed\": 10000000", "\"config\": 32"]),
        (Body::Error(error), &["\"type\": 4", "\"code\": 6"]),
        (Body::EchoReply(vec![1, 2, 3]), &["\"data\": \"AQID\""]),
        (Body::BarrierReply, &["OFPBarrierReply"]),
    ];
    let mut input = String::new();
    for (body, _) in &messages {
        let bytes = encoded(&Message { xid: Xid(1), body: body.clone() });
        bytes.iter().for_each(|byte| input.push_str(&format!("{byte:02x}")));
        input.push('\n');
    }
    let Some(decoded) = os_ken("os_ken_decodes_switch_messages", "decode", &input) else { return };
    assert_eq!(decoded.len(), messages.len());
    for (line, (body, parts)) in decoded.iter().zip(&messages) {
        for part in *parts {
            assert!(line.contains(part), "{part} is not in {line} for {body:?}");
        }
    }
}
