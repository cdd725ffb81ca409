"""Captures of link types and tunnels, made with Scapy: `python make.py`.

Each file has the same flows in another encapsulation: TCP and UDP, IPv4 and IPv6, each packet with ports of its own. Scapy builds all headers
that it has; the tags of VN-Tag, FabricPath and Frame Relay, NFLOG's attributes, and the header of L2TPv3, are written out here.
"""

import struct
from pathlib import Path

from scapy.all import (
    GRE,
    IP,
    L2TP,
    LLC,
    PPP,
    SNAP,
    TCP,
    UDP,
    VXLAN,
    Dot1AD,
    Dot1AH,
    Dot1Q,
    Dot11,
    Dot11QoS,
    Ether,
    GRE_PPTP,
    IPv6,
    Packet,
    RadioTap,
    Raw,
    raw,
    wrpcap,
)
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.contrib.nsh import NSH

HERE = Path(__file__).parent
A, B = "02:00:00:00:00:01", "02:00:00:00:00:02"


def flows() -> list[Packet]:
    packets = []
    for number in range(6):
        for network in (IP(src=f"10.1.0.{number + 1}", dst="10.2.0.9"), IPv6(src=f"2001:db8::{number + 1:x}", dst="2001:db8:1::9")):
            packets.append(network / TCP(sport=1000 + number, dport=443, flags="PA") / Raw(b"x" * (20 + number)))
            packets.append(network / UDP(sport=2000 + number, dport=5000 + number) / Raw(b"y" * (30 + number)))
    return packets


def ethertype(packet: Packet) -> int:
    return 0x0800 if packet.version == 4 else 0x86DD


def outer(port: int, source: int = 40000) -> Packet:
    return Ether(src=A, dst=B) / IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=source, dport=port)


def write(name: str, packets: list[bytes | Packet], link_type: int = 1) -> None:
    frames = [packet if isinstance(packet, bytes) else raw(packet) for packet in packets]
    wrpcap(str(HERE / f"{name}.pcap"), [Raw(frame) for frame in frames], linktype=link_type, nano=False)


def frame(packet: Packet) -> Packet:
    return Ether(src=A, dst=B, type=ethertype(packet)) / packet


def ppp(packet: Packet) -> bytes:
    return struct.pack(">H", 0x0021 if packet.version == 4 else 0x0057) + raw(packet)


def links(all_flows: list[Packet]) -> None:
    write("ppp", [b"\xff\x03" + ppp(p) for p in all_flows], 9)
    write("ppp-hdlc", [b"\xff\x03" + ppp(p) for p in all_flows], 50)
    write("cisco-hdlc", [struct.pack(">BBH", 0x0F, 0, ethertype(p)) + raw(p) for p in all_flows], 104)
    write("frame-relay", [b"\x18\x41\x03" + (b"\xcc" if p.version == 4 else b"\x8e") + raw(p) for p in all_flows], 107)
    snap = [LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(OUI=0, code=ethertype(p)) / p for p in all_flows]
    to_station = [Dot11(type=2, subtype=0, FCfield=2, addr1=A, addr2=B, addr3=B) / s for s in snap]
    with_qos = [Dot11(type=2, subtype=8, FCfield=1, addr1=A, addr2=B, addr3=B) / Dot11QoS() / s for s in snap]
    four = [Dot11(type=2, subtype=8, FCfield=3, addr1=A, addr2=B, addr3=B, addr4=A) / Dot11QoS() / s for s in snap]
    write("802.11", to_station + with_qos + four, 105)
    tapped = [RadioTap(present="TSFT+Flags+Rate+dBm_AntSignal", mac_timestamp=7, Rate=12, dBm_AntSignal=-50) / s for s in to_station + four]
    write("radiotap", tapped, 127)

    def attribute(kind: int, value: bytes) -> bytes:
        return struct.pack("<HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)

    def nflog(p: Packet) -> bytes:
        family = 2 if p.version == 4 else 10
        header = attribute(1, struct.pack(">HBB", ethertype(p), 1, 0)) + attribute(10, b"in: \0") + attribute(5, struct.pack(">I", 2))
        return struct.pack(">BBH", family, 0, 3) + header + attribute(9, raw(p))

    write("nflog", [nflog(p) for p in all_flows], 239)


def tags(all_flows: list[Packet]) -> None:
    addresses = bytes.fromhex(B.replace(":", "") + A.replace(":", ""))
    write("vn-tag", [addresses + struct.pack(">HIH", 0x8926, 0x00014002, ethertype(p)) + raw(p) for p in all_flows])
    write("vn-tag-vlan", [addresses + struct.pack(">HIHHH", 0x8926, 0x00014002, 0x8100, 7, ethertype(p)) + raw(p) for p in all_flows])
    fabric = bytes.fromhex("0200000a0001") + bytes.fromhex("0200000b0002")
    write("fabric-path", [fabric + struct.pack(">HH", 0x8903, 0x0420) + raw(frame(p)) for p in all_flows])
    write("pbb", [Ether(src=A, dst=B) / Dot1AD(vlan=100) / Dot1AH(isid=4711) / frame(p) for p in all_flows])
    nsh = [Ether(src=A, dst=B, type=0x894F) / NSH(mdtype=1, nextproto=1 if p.version == 4 else 2, context_header=b"\0" * 16) / p for p in all_flows]
    nsh += [Ether(src=A, dst=B, type=0x894F) / NSH(mdtype=1, nextproto=3, context_header=b"\0" * 16) / frame(p) for p in all_flows]
    write("nsh", nsh)
    write("qinq", [Ether(src=A, dst=B) / Dot1AD(vlan=5) / Dot1Q(vlan=6, type=ethertype(p)) / p for p in all_flows])


def tunnels(all_flows: list[Packet]) -> None:
    gtp = [outer(2152, 2152) / GTP_U_Header(teid=9) / p for p in all_flows]
    gtp += [outer(2152, 2152) / GTP_U_Header(teid=9, S=1, seq=3) / p for p in all_flows]
    gtp += [outer(2152, 2152) / GTP_U_Header(teid=9, E=1, next_ex=0x85) / GTPPDUSessionContainer(type=0, QFI=5) / p for p in all_flows]
    write("gtp-u", gtp)
    write("l2tp", [outer(1701, 1701) / L2TP(hdr=["length"], version=2, tunnel_id=5, session_id=6) / Raw(b"\xff\x03" + ppp(p)) for p in all_flows])
    v6 = [p for p in all_flows if p.version == 6]
    teredo = [outer(3544) / p for p in v6]
    teredo += [outer(3544) / Raw(b"\0\1\0\0" + b"n" * 8 + b"\0" + b"\0\0" + b"\x12\x34\x01\x02\x03\x04" + raw(p)) for p in v6]
    write("teredo", teredo)
    pptp = [
        Ether(src=A, dst=B)
        / IP(src="192.0.2.1", dst="192.0.2.2")
        / GRE_PPTP(call_id=7, seqnum_present=1, sequence_number=n, acknum_present=n % 2, ack_number=n if n % 2 else None)
        / Raw(b"\xff\x03" + ppp(p))
        for n, p in enumerate(all_flows)
    ]
    write("pptp", pptp)
    write("gre-in-udp", [outer(4754) / GRE(proto=ethertype(p)) / p for p in all_flows])
    v4 = [p for p in all_flows if p.version == 4]
    redirect = [Ether(src=A, dst=B) / IP(src="192.0.2.1", dst="192.0.2.2") / GRE(proto=0x883E) / Raw(b"\x80\x33\x01\x02" + raw(p)) for p in v4]
    write("wccp", redirect)
    gpe = [outer(4790) / VXLAN(flags=0x0C, vni=9, NextProtocol=1 if p.version == 4 else 2) / p for p in all_flows]
    write("vxlan-gpe", gpe)


def l2tpv3(all_flows: list[Packet]) -> None:
    """Data messages with every length of cookie and sublayer, over IP and UDP. File names tell tshark what a capture cannot."""
    addresses = Ether(src=A, dst=B) / IP(src="192.0.2.1", dst="192.0.2.2")

    def hdlc(packet: Packet) -> bytes:
        return struct.pack(">BBH", 0x0F, 0, ethertype(packet)) + raw(packet)

    def tagged(packet: Packet) -> bytes:
        return raw(Ether(src=A, dst=B) / Dot1Q(vlan=7, type=ethertype(packet)) / packet)

    payloads = {"eth": lambda p: raw(frame(p)), "vlan": tagged, "hdlc": hdlc, "ppp": lambda p: b"\xff\x03" + ppp(p), "ip": raw}
    for payload, encode in payloads.items():
        for cookie in (0, 4, 8):
            for sublayer in (0, 4):
                before = bytes((0xC0 + 37 * n) % 256 for n in range(cookie)) + struct.pack(">I", 0x40000000)[:sublayer]
                data = [struct.pack(">I", 4711) + before + encode(p) for p in all_flows]
                over_ip = [addresses.copy() / Raw(d) for d in data]
                for packet in over_ip:
                    packet[IP].proto = 115
                over_udp = [outer(1701, 1701) / Raw(b"\0\3\0\0" + d) for d in data]
                write(f"l2tpv3-{payload}-cookie{cookie}-sublayer{sublayer}", over_ip + over_udp)


def main() -> None:
    all_flows = flows()
    links(all_flows)
    tags(all_flows)
    tunnels(all_flows)
    l2tpv3(all_flows)


if __name__ == "__main__":
    main()
