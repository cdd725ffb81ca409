"""nfdump's filter language: against a plain reading of it, against nfdump itself, and where it refuses."""

from __future__ import annotations

import ipaddress
import random
from pathlib import Path
from typing import Any

import ibis
import nfdump_oracle
import pyarrow as pa
import pytest
from filter_oracle import holds
from hypothesis import given, settings
from hypothesis import strategies as st
from nfdump_oracle import Nfdump

from thalweg.filter import FilterError, FilterSyntaxError, compile_filter, parse
from thalweg.filter.addresses import is_within
from thalweg.schema import ADDED, unreported

BASE_US = 1_790_000_000_000_000

V4 = ["10.0.0.1", "10.1.2.3", "10.1.2.131", "10.200.0.0", "100.1.2.3", "192.0.2.1", "192.0.2.255", "1.0.0.0"]
V6 = [
    "2001:db8::1",
    "2001:db8:0:1::",
    "2001:db8:8000::1",
    "::1",
    "fe80::1:2:3:4",
    "1:2:3:4:5:6:7:8",
    "a0::",
    "::a:0:0:1",
]
PREFIXES = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.128/25", "10.1.2.0/30", "192.0.2.0/24", "0.0.0.0/1", "0.0.0.0/0"]
PREFIXES += [
    "100.0.0.0/6",
    "2001:db8::/32",
    "2001:db8::/33",
    "2001:db8:0:1::/64",
    "a0::/11",
    "::/8",
    "1:2:3:4:5:6::/100",
]


def row(number: int, **columns: Any) -> dict[str, Any]:
    """A record whose start, in milliseconds, is its number."""
    start_us = BASE_US + 1000 * number
    record = {
        "src": "10.1.2.3",
        "dst": "192.0.2.1",
        "next_hop": "",
        "exporter": "127.0.0.1",
        "observation_domain_id": 7,
        "sampling_interval": 0,
        "flow_start_us": start_us,
        "flow_end_us": start_us + 2_000_000,
        "src_port": 1000,
        "dst_port": 80,
        "protocol": 6,
        "tcp_flags": 0x1B,
        "tos": 0,
        "icmp_type_code": 0,
        "bytes": 1000,
        "packets": 10,
        "ingress_interface": 1,
        "egress_interface": 3,
        "src_as": 100,
        "dst_as": 200,
        "src_prefix_length": 24,
        "dst_prefix_length": 16,
        "vlan_id": 5,
        "flow_direction": 0,
        **{name: unreported(name) for name in ADDED},
    }
    assert columns.keys() <= record.keys() | {"length_us"}
    length_us = columns.pop("length_us", 2_000_000)
    return {**record, "flow_end_us": start_us + length_us, **columns}


def table(rows: list[dict[str, Any]]) -> Any:
    """These rows as flow records."""
    return ibis.memtable(pa.Table.from_pylist(rows))


def found(text: str, records: Any) -> set[int]:
    """Starts of the rows that match, in milliseconds."""
    kept = records.filter(compile_filter(text, records)).select("flow_start_us").execute()
    return {int(start) // 1000 for start in kept["flow_start_us"]}


def words(*choices: str) -> st.SearchStrategy[str]:
    return st.sampled_from(choices)


def joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(" ".join)


END = words("", "", "src", "dst", "src or dst", "src and dst", "DST")
COMPARE = words("", "=", "==", "<", ">", "<=", ">=", "eq", "lt", "GT")
ADDRESSES = words(*V4, *V6)
PORTS = words("53", "80", "1000", "0x35", "65535")
PRIMITIVES = st.one_of(
    words("any", "ipv4", "inet6", "proto tcp", "proto UDP", "proto 17", "flowdir ingress", "dir 1", "tos 184", "vlan 5"),
    words(
        "flags S",
        "flags SA",
        "flags X",
        "flags 27",
        "flags > 2",
        "icmp-type 8",
        "icmp-code 3",
        "mask 24",
        "dst mask 16",
    ),
    words("if 1", "in if 2", "out if 2", "router ip 127.0.0.1", "next ip in [10.0.0.0/8 192.0.2.9]", "src tos 0"),
    joined(END, words("ip", "host", "IP"), ADDRESSES),
    joined(END, st.just("net"), words(*PREFIXES)),
    joined(END, st.just("ip in ["), ADDRESSES, words(" ", ","), words(*PREFIXES), st.just("]")),
    joined(END, st.just("port"), COMPARE, PORTS),
    joined(END, st.just("port in ["), PORTS, PORTS, st.just("]")),
    joined(words("bytes", "in bytes"), COMPARE, words("1k", "1000", "1024", "1M", "0", "2g")),
    joined(st.just("packets"), COMPARE, words("1", "10", "0")),
    joined(st.just("duration"), COMPARE, words("0", "1", "2000", "2k")),
    joined(st.just("bps"), COMPARE, words("0", "4k", "1143998857", "1g")),
    joined(st.just("pps"), COMPARE, words("0", "5", "1k")),
    joined(st.just("bpp"), COMPARE, words("0", "100", "341")),
    joined(st.just("flows"), COMPARE, words("0", "1")),
)
FILTERS = st.recursive(
    PRIMITIVES,
    lambda inner: st.one_of(
        inner.map("not {}".format),
        inner.map("( {} )".format),
        st.tuples(inner, words("and", "or", "&&", "OR"), inner).map(" ".join),
    ),
    max_leaves=6,
)
ROWS = st.builds(
    dict,
    addresses=st.sampled_from([V4, V6]).flatmap(lambda pool: st.tuples(st.sampled_from(pool), st.sampled_from(pool))),
    src_port=st.sampled_from([0, 53, 1000, 65535]),
    dst_port=st.sampled_from([0, 53, 80]),
    protocol=st.sampled_from([1, 6, 17]),
    tcp_flags=st.sampled_from([0, 2, 0x12, 0x1B, 0x3F]),
    tos=st.sampled_from([0, 184]),
    icmp_type_code=st.sampled_from([0, 2048, 771]),
    bytes=st.sampled_from([0, 1, 1000, 1024, 1_000_999, 3_000_000_000]),
    packets=st.sampled_from([0, 1, 3, 10]),
    length_us=st.sampled_from([0, 1000, 7000, 2_000_000]),
    ingress_interface=st.sampled_from([1, 2]),
    src_prefix_length=st.sampled_from([16, 24]),
    vlan_id=st.sampled_from([0, 5]),
    flow_direction=st.sampled_from([0, 1]),
    next_hop=st.sampled_from(["", "10.9.9.9"]),
)


def rows_of(drawn: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for number, columns in enumerate(drawn):
        source, destination = columns.pop("addresses")
        if ":" in source:
            columns["next_hop"] = ""
        rows.append(row(number, src=source, dst=destination, **columns))
    return rows


@settings(max_examples=60, deadline=None)
@given(text=FILTERS, drawn=st.lists(ROWS, min_size=1, max_size=12), sampling=st.sampled_from([0, 1, 1000]))
def test_filters_match_a_simple_evaluation(text: str, drawn: list[dict[str, Any]], sampling: int) -> None:
    rows = [{**record, "sampling_interval": sampling} for record in rows_of(drawn)]
    expected = {record["flow_start_us"] // 1000 for record in rows if holds(parse(text), record)}
    assert found(text, table(rows)) == expected


def test_ipv6_prefixes_match_the_standard_library() -> None:
    chance = random.Random(20140601)
    texts = {str(near) for text in V6 for near in neighbours(ipaddress.IPv6Address(text))}
    records = ibis.memtable({"address": [*sorted(text for text in texts if "." not in text), "10.0.0.1", ""]})
    networks = [ipaddress.IPv6Network((text, length), strict=False) for text in V6 for length in range(129)]
    for chosen in (chance.sample(networks, 24) for _ in range(8)):
        answers = {str(number): is_within(records.address, [network]) for number, network in enumerate(chosen)}
        frame = records.mutate(**answers).execute()
        for number, network in enumerate(chosen):
            inside = frame["address"][frame[str(number)]]
            assert sorted(inside) == sorted(text for text in frame["address"] if ":" in text and is_in(text, network)), network


def neighbours(address: ipaddress.IPv6Address) -> list[ipaddress.IPv6Address]:
    """Addresses that differ in one bit, so that each prefix length leaves some of them out."""
    return [address, *(ipaddress.IPv6Address(int(address) ^ (1 << bit)) for bit in range(128))]


def is_in(text: str, network: ipaddress.IPv6Network) -> bool:
    return ipaddress.ip_address(text) in network


def test_ipv4_prefixes_match_the_standard_library() -> None:
    centre = int(ipaddress.ip_address("100.90.161.77"))
    addresses = sorted({str(ipaddress.ip_address(centre ^ (1 << bit))) for bit in range(32)})
    records = ibis.memtable({"address": addresses})
    for length in range(33):
        network = ipaddress.IPv4Network((centre, length), strict=False)
        inside = records.filter(is_within(records.address, [network])).execute()["address"]
        assert sorted(inside) == [text for text in addresses if ipaddress.ip_address(text) in network], network


NFDUMP_FILTERS = [
    "any",
    "ipv4",
    "ipv6",
    "proto 6 or proto 17 and port 53",
    "not proto 6 and port 53",
    "not (proto 6 or port 53)",
    "proto icmp and icmp-type 8",
    "icmp-code 0",
    "src ip 10.1.2.3",
    "host 2001:db8::1",
    "ip in [10.1.2.0/30, 2001:db8::2]",
    "dst ip in [192.0.2.0/24 10.1.2.4]",
    "src net 10.0.0.0/8",
    "src and dst net 10.1.0.0/16",
    "net 10.1.2.0 255.255.255.128",
    "net 2001:db8::/33",
    "net 2001:db8::/97",
    "src port 53",
    "src and dst port 53",
    "port in [53 1000]",
    "dst port < 80 and src port >= 1000",
    "proto tcp and port > 1008",
    "flags S and not flags AFRPU",
    "flags SA",
    "not (flags FR or port 53)",
    "not (not flags FR and port 80)",
    "not flags 0x1b",
    "flags 0x1b",
    "flags X",
    "tos 184",
    "if 2",
    "in if 2",
    "out if 1",
    "src mask 24",
    "dst mask 24",
    "vlan 5",
    "next ip 10.9.9.9",
    "router ip 127.0.0.1",
    "flowdir egress",
    "bytes > 1k",
    "bytes = 1k",
    "bytes 1024",
    "bytes > 1m and packets < 8",
    "packets 0",
    "duration > 0 and duration <= 2k",
    "duration 0",
    "bps = 4000",
    "bps 1143998857",
    "bps > 1143998856",
    "bps < 1",
    "pps 1000",
    "pps < 1",
    "bpp 341",
    "bpp > 341",
    "bpp 0",
    "flows 1",
    "src host 10.1.2.3 and not (dst port 80 or dst port 53) # of all",
]


def nfdump_rows() -> list[dict[str, Any]]:
    """Records that the filters above tell apart."""
    v6 = {"src": "2001:db8::1", "dst": "2001:db8::2"}
    return [
        row(0),
        row(1, protocol=17, dst_port=53, tcp_flags=0),
        row(2, protocol=17, tcp_flags=0x12),
        row(3, **v6, dst_prefix_length=24),
        row(4, length_us=0, bytes=1500, packets=1),
        row(5, bytes=1024, packets=3),
        row(6, bytes=1_000_999, packets=7, length_us=7000),
        row(7, protocol=1, src_port=0, dst_port=0, icmp_type_code=2048, tcp_flags=0),
        row(8, protocol=1, src_port=0, dst_port=0, icmp_type_code=771, tcp_flags=0),
        row(9, protocol=17, src_port=53, dst_port=53, ingress_interface=2, egress_interface=1),
        row(10, tcp_flags=0x02),
        row(11, flow_direction=1, tos=184, vlan_id=0),
        row(12, dst="10.1.2.4", bytes=0, packets=0),
        row(13, src="2001:db8:8000::", dst="fe80::1", src_prefix_length=64),
        row(14, src="10.1.2.200", next_hop="10.9.9.9", tcp_flags=0x3F, src_port=1009),
    ]


def test_filters_match_nfdump(tmp_path: Path) -> None:
    if not nfdump_oracle.is_there():
        pytest.skip("nfdump is not installed")
    rows = nfdump_rows()
    (tmp_path / "nfdump").mkdir()
    theirs, ours = Nfdump(rows, tmp_path / "nfdump"), table(rows)
    start_ms = BASE_US // 1000
    for text in NFDUMP_FILTERS:
        expected = sorted(start - start_ms for start in theirs.matching(text))
        assert sorted(start - start_ms for start in found(text, ours)) == expected, text


def test_nfdump_filters_keep_some_records_and_drop_others() -> None:
    rows = nfdump_rows()
    for text in NFDUMP_FILTERS:
        kept = sum(holds(parse(text), record) for record in rows)
        trivial = text in ("any", "flows 1", "router ip 127.0.0.1")
        assert (kept == len(rows)) if trivial else (0 < kept < len(rows)), text


def test_an_error_shows_the_line_with_a_mark_under_the_column() -> None:
    with pytest.raises(FilterSyntaxError) as rejected:
        parse("src port 443 or port https")
    assert str(rejected.value) == (
        "filter, column 22: expected a number, found 'https'\n  src port 443 or port https\n                       ^"
    )


def test_syntax_errors_in_several_lines_have_a_line() -> None:
    with pytest.raises(FilterSyntaxError, match="line 2, column 8: expected 'and'"):
        parse("port 80 # web\nor any 5")


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="srcdtandporinet0123456789.:/[]()<>=! \n&|#", max_size=60))
def test_any_text_parses_or_is_a_syntax_error(text: str) -> None:
    try:
        parse(text)
    except FilterSyntaxError as rejected:
        assert rejected.column >= 1


def test_missing_columns_are_named() -> None:
    flows = ibis.table({"src_port": "int32", "dst_port": "int32"}, name="flows")
    compile_filter("port 80", flows)
    with pytest.raises(FilterError, match="no column ingress_interface"):
        compile_filter("in if 3", flows)


def test_autonomous_systems_are_compared_without_a_database() -> None:
    records = table([row(0), row(1, src_as=300), row(2, dst_as=300)])
    start_ms = BASE_US // 1000
    assert found("as 300", records) == {start_ms + 1, start_ms + 2}
    assert found("src as in [300 400]", records) == {start_ms + 1}
    assert found("dst as < 250", records) == {start_ms, start_ms + 1}


def test_ipv4_written_as_ipv6_is_ipv4() -> None:
    assert found("src ip ::ffff:10.1.2.3", table([row(0)])) == {BASE_US // 1000}
