"""Encodes and decodes OpenFlow 1.3 messages with os-ken, for the test beside this file.

    os_ken_codec.py encode     prints messages built by os-ken, a line each: NAME HEX
    os_ken_codec.py samples    prints the messages of switches and controllers in os-ken's tests: NAME HEX
    os_ken_codec.py decode     reads messages, a line of hex each, and prints them as JSON
"""

import json
import pathlib
import sys

import os_ken.tests
from os_ken.ofproto import ofproto_parser
from os_ken.ofproto import ofproto_v1_3 as proto
from os_ken.ofproto import ofproto_v1_3_parser as parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

SWITCH = ProtocolDesc(version=proto.OFP_VERSION)


def messages():
    """Yields a message of each kind that a controller sends, with all fields set."""
    match = parser.OFPMatch(
        in_port=1,
        metadata=(0x0123456700000000, 0xFFFFFFFF00000000),
        eth_dst=("02:54:57:00:00:00", "ff:ff:ff:ff:00:00"),
        eth_src="02:54:57:00:00:01",
        eth_type=0x0800,
        vlan_vid=proto.OFPVID_PRESENT | 5,
        ip_proto=6,
        ipv4_src=("10.0.0.0", "255.0.0.0"),
        ipv4_dst="10.0.1.9",
        tcp_src=443,
        tcp_dst=51000,
    )
    rewrite = [
        parser.OFPActionSetQueue(7),
        parser.OFPActionPushVlan(0x8100),
        parser.OFPActionSetField(eth_dst="02:54:57:01:00:09"),
        parser.OFPActionPopVlan(),
        parser.OFPActionOutput(3, 0),
        parser.OFPActionGroup(9),
    ]
    instructions = [
        parser.OFPInstructionActions(proto.OFPIT_APPLY_ACTIONS, rewrite),
        parser.OFPInstructionActions(proto.OFPIT_CLEAR_ACTIONS, []),
        parser.OFPInstructionActions(proto.OFPIT_WRITE_ACTIONS, [parser.OFPActionOutput(4, 0)]),
        parser.OFPInstructionWriteMetadata(5, 0xFF),
        parser.OFPInstructionGotoTable(2),
    ]
    yield "hello", parser.OFPHello(SWITCH)
    yield "echo", parser.OFPEchoRequest(SWITCH, b"still there?")
    yield "features", parser.OFPFeaturesRequest(SWITCH)
    yield "get_config", parser.OFPGetConfigRequest(SWITCH)
    yield "set_config", parser.OFPSetConfig(SWITCH, proto.OFPC_FRAG_NORMAL, 128)
    yield "flow_mod", parser.OFPFlowMod(
        SWITCH, 0x74, 0xFF, 1, proto.OFPFC_MODIFY_STRICT, 10, 300, 0x8000, 77, 5, 6,
        proto.OFPFF_SEND_FLOW_REM | proto.OFPFF_RESET_COUNTS, match, instructions,
    )  # fmt: skip
    arp = parser.OFPMatch(eth_type=0x0806, arp_op=1, arp_spa="10.0.0.1", arp_tpa=("10.0.0.0", "255.0.0.0"))
    yield "arp", parser.OFPFlowMod(SWITCH, match=arp, instructions=[])
    ipv6 = parser.OFPMatch(eth_type=0x86DD, ip_proto=17, ipv6_src="2001:db8::1", udp_dst=53)
    yield "ipv6", parser.OFPFlowMod(SWITCH, match=ipv6, instructions=[])
    failover = [
        parser.OFPBucket(0, port, proto.OFPG_ANY, [parser.OFPActionOutput(port, 0)]) for port in (1, 2)
    ]
    yield "group", parser.OFPGroupMod(SWITCH, proto.OFPGC_ADD, proto.OFPGT_FF, 9, failover)
    select = [
        parser.OFPBucket(weight, proto.OFPP_ANY, proto.OFPG_ANY, [parser.OFPActionOutput(weight, 0)])
        for weight in (1, 3)
    ]
    yield "select", parser.OFPGroupMod(SWITCH, proto.OFPGC_MODIFY, proto.OFPGT_SELECT, 10, select)
    output = [parser.OFPActionOutput(4, 0)]
    yield "packet_out", parser.OFPPacketOut(
        SWITCH, proto.OFP_NO_BUFFER, proto.OFPP_CONTROLLER, output, b"a frame"
    )
    yield "barrier", parser.OFPBarrierRequest(SWITCH)
    yield "role", parser.OFPRoleRequest(SWITCH, proto.OFPCR_ROLE_MASTER, 12)
    yield "get_async", parser.OFPGetAsyncRequest(SWITCH)
    yield "set_async", parser.OFPSetAsync(SWITCH, [3, 0], [7, 7], [15, 0])
    any_match = parser.OFPMatch()
    flows = (SWITCH, 0, proto.OFPTT_ALL, proto.OFPP_ANY, proto.OFPG_ANY, 0x74, 0xFF, any_match)
    yield "desc", parser.OFPDescStatsRequest(SWITCH, 0)
    yield "flows", parser.OFPFlowStatsRequest(*flows)
    yield "aggregate", parser.OFPAggregateStatsRequest(*flows)
    yield "tables", parser.OFPTableStatsRequest(SWITCH, 0)
    yield "ports", parser.OFPPortStatsRequest(SWITCH, 0, 3)
    yield "queues", parser.OFPQueueStatsRequest(SWITCH, 0, 3, proto.OFPQ_ALL)
    yield "groups", parser.OFPGroupDescStatsRequest(SWITCH, 0)
    yield "port_desc", parser.OFPPortDescStatsRequest(SWITCH, 0)


def encode():
    for name, message in messages():
        message.set_xid(0x01020304)
        message.serialize()
        print(name, bytes(message.buf).hex())


def samples():
    folder = pathlib.Path(os_ken.tests.__file__).parent / "packet_data" / "of13"
    for path in sorted(folder.glob("*.packet")):
        print(path.stem, path.read_bytes().hex())


def decode():
    for line in sys.stdin:
        data = bytearray.fromhex(line)
        version, kind, length, xid = ofproto_parser.header(data)
        decoded = ofproto_parser.msg(SWITCH, version, kind, length, xid, data)
        print(json.dumps(decoded.to_jsondict(), sort_keys=True, default=lambda data: data.hex()))


if __name__ == "__main__":
    {"encode": encode, "samples": samples, "decode": decode}[sys.argv[1]]()
