"""`thalweg flows` as it is typed: answers, formats, exit codes, help."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from planted import DAY, Transfer, record, records_of, write_archive

from thalweg import cli
from thalweg.cli.description import description
from thalweg.cli.reference import command_line

NOW = datetime(2026, 11, 23, tzinfo=UTC)
REFERENCE = Path(__file__).parents[2] / "docs/reference/flows-command-line.md"
DESCRIPTIONS = Path(__file__).parents[2] / "crates/thalweg/src/cli"

TRANSFERS = [
    Transfer("192.0.2.1", "198.51.100.1", 64500, 64501, DAY + timedelta(hours=1), minutes=2, flows=4, bytes=12 * 10**9),
    Transfer("192.0.2.1", "198.51.100.2", 64500, 64501, DAY + timedelta(hours=2), minutes=1, flows=1, bytes=2 * 10**9),
    Transfer("198.51.100.1", "192.0.2.7", 64501, 64500, DAY + timedelta(hours=3), minutes=3, flows=8, bytes=36 * 10**9),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The planted transfers, the first seen by two routers, and a small flow of UDP."""
    rows = records_of(TRANSFERS[0], ("192.0.2.254", "192.0.2.253"))
    rows += [row for transfer in TRANSFERS[1:] for row in records_of(transfer)]
    at = DAY + timedelta(hours=1, minutes=30)
    small = record(flow_start=at, flow_end=at + timedelta(seconds=1), src="2001:db8::1", dst="2001:db8::53")
    rows.append({**small, "protocol": 17, "tcp_flags": 0, "src_port": 5353, "dst_port": 53, "bytes": 90, "packets": 1})
    return str(write_archive(tmp_path_factory.mktemp("cli"), rows))


class Run:
    """What a command wrote, and how it ended."""

    def __init__(self, captured: Any, code: int) -> None:
        self.out, self.err = captured.readouterr()
        self.code = code

    def json(self) -> list[dict[str, Any]]:
        assert self.code == cli.COMPLETE, self.err
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def flows(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> Run:
        return Run(capsys, cli.main(arguments, NOW))

    return run


def test_top_counts_a_flow_once_or_once_per_router(flows: Any, data: str) -> None:
    by_records = flows("top", data, "--by", "pair", "-n", "1", "--json").json()[0]
    assert by_records["bytes"] == 36 * 10**9
    assert by_records["flow_start"] == "2026-11-22T03:00:00.000000000Z"
    question = ["top", data, "dst ip 198.51.100.1", "--json"]
    once = flows(*question, "--by", "pair").json()[0]
    assert (once["bytes"], once["flows"]) == (12 * 10**9, 8)
    of_flows = flows(*question, "--by", "pair", "--of", "flows").json()[0]
    assert (of_flows["bytes"], of_flows["flows"]) == (12 * 10**9, 4)
    twice = flows(*question, "--by", "pair", "--every-router").json()[0]
    assert (twice["bytes"], twice["flows"]) == (24 * 10**9, 16)
    by_router = flows(*question, "--by", "exporter").json()
    assert [(row["exporter"], row["bytes"]) for row in by_router] == [("192.0.2.253", 12 * 10**9), ("192.0.2.254", 12 * 10**9)]


@pytest.mark.parametrize("arguments", [["top"], ["top", "proto tcp"], ["series", "--every", "1h"], ["series", "proto tcp"]])
def test_records_that_do_not_count_are_counted_on_standard_error(flows: Any, data: str, arguments: list[str]) -> None:
    command, *rest = arguments
    run = flows(command, data, *rest)
    assert "by the records of the point that saw it longest: 8 records left out; --every-router counts all" in run.err
    assert "left out" not in run.out
    assert flows(command, data, *rest, "--every-router").err == ""
    assert flows(command, data, *rest, "--of", "flows").err == ""


def test_a_filter_can_be_anywhere_among_options(flows: Any, data: str) -> None:
    places = [
        ["top", data, "proto udp", "--by", "src", "--json"],
        ["top", data, "--by", "src", "proto udp", "--json"],
        ["top", "--by", "src", data, "--json", "proto udp"],
    ]
    answers = [flows(*arguments).json() for arguments in places]
    assert [row["src"] for row in answers[0]] == ["2001:db8::1"]
    assert answers[1] == answers[0] and answers[2] == answers[0]


def test_a_table_has_units_and_csv_is_exact(flows: Any, data: str) -> None:
    table = flows("top", data, "--by", "protocol").out.splitlines()
    assert [line.split()[0] for line in table] == ["protocol", "tcp", "udp"]
    assert "46.6 GiB" in table[1]
    rows = list(csv.DictReader(io.StringIO(flows("top", data, "--by", "protocol", "--csv").out)))
    assert [(row["protocol"], row["bytes"]) for row in rows] == [("6", "50000000000"), ("17", "90")]


def test_flows_and_flowsets_match_the_planted_ones(flows: Any, data: str) -> None:
    found = flows("flows", data, "--json").json()
    assert len(found) == 14
    assert sum(row["elephant"] for row in found) == 13
    assert len(flows("flows", data, "--elephants", "--json").json()) == 13
    sets = flows("flowsets", data, "--json", "--order", "bytes").json()
    assert [(row["flows"], row["bytes"], row["duration_ns"]) for row in sets] == [
        (8, 36 * 10**9, 183_500_000_000),
        (4, 12 * 10**9, 121_500_000_000),
        (1, 2 * 10**9, 60_000_000_000),
    ]
    assert sets[2]["rate_bps"] == 2e9 * 8 / 60
    assert [row["flows"] for row in flows("flowsets", data, "flows >= 4", "--json").json()] == [4, 8]
    assert len(flows("flowsets", data, "--tau", "1s", "--json").json()) == 6
    assert len(flows("flowsets", data, "--all-flows", "--json").json()) == 4
    assert flows("flowsets", data, "--threshold", "100GB", "--json").json() == []


def test_a_query_is_a_filter_or_sql(flows: Any, data: str) -> None:
    found = flows("query", data, "proto udp and bytes < 1k", "--json").json()
    assert [(row["src"], row["bytes"]) for row in found] == [("2001:db8::1", 90)]
    assert list(found[0])[:3] == ["received", "exporter", "observation_domain_id"]
    sql = "SELECT flows, sum(bytes) AS bytes FROM flowsets AS s WHERE s.flows > 1 GROUP BY ALL ORDER BY 1"
    assert flows("query", data, sql, "--json").json() == [{"flows": 4, "bytes": 12 * 10**9}, {"flows": 8, "bytes": 36 * 10**9}]
    with_cte = "WITH big AS (SELECT * FROM records WHERE bytes > 1000) SELECT count(*) AS n FROM big"
    assert flows("query", data, with_cte, "--json").json() == [{"n": 16 + 1 + 24}]


def test_a_truncated_table_is_ordered_and_says_so(flows: Any, data: str) -> None:
    run = flows("query", data, "any", "-n", "2")
    assert len(run.out.splitlines()) == 3
    assert "the first 2 rows" in run.err
    starts = [row["flow_start"] for row in flows("query", data, "any", "--json").json()]
    assert starts == sorted(starts)


def test_parquet_holds_timestamps(flows: Any, data: str, tmp_path: Path) -> None:
    path = tmp_path / "flowsets.parquet"
    assert flows("flowsets", data, "--parquet", str(path)).code == cli.COMPLETE
    table = pq.read_table(path)
    assert table.num_rows == 3
    assert str(table["flow_start"].type) == "timestamp[us, tz=UTC]"


def test_a_time_range_selects_by_reception(flows: Any, data: str) -> None:
    assert len(flows("query", data, "any", "--from", "2026-11-22T03:00", "--json").json()) == 24
    assert len(flows("query", data, "any", "--from", "now-23h", "--to", "2026-11-22T02:00", "--json").json()) == 17


def test_a_series_is_shown_as_bars_or_lines_or_a_plot(flows: Any, data: str, tmp_path: Path) -> None:
    rows = flows("series", data, "--every", "1h", "--json").json()
    assert [row["bytes"] for row in rows] == [12 * 10**9 + 90, 2 * 10**9, 36 * 10**9]
    every_router = flows("series", data, "--every", "1h", "--every-router", "--json").json()
    assert [row["bytes"] for row in every_router] == [24 * 10**9 + 90, 2 * 10**9, 36 * 10**9]
    bars = flows("series", data, "--every", "1h").out.splitlines()
    assert [line.split()[1] for line in bars] == ["01:00:00", "02:00:00", "03:00:00"]
    assert bars[2].count("█") > bars[0].count("█") > bars[1].count("█") > 0
    assert "33.5 GiB" in bars[2]
    lines = flows("series", data, "--every", "1h", "--by", "src-as", "-n", "1").out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["64501", "other"]
    picture = flows("series", data, "--every", "1m").out.splitlines()
    assert len(picture) == 9
    for name, begins in (("day.png", b"\x89PNG"), ("day.svg", b"<?xml")):
        assert flows("series", data, "--by", "protocol", "--plot", str(tmp_path / name)).code == cli.COMPLETE
        assert (tmp_path / name).read_bytes().startswith(begins)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["top", "DATA", "prot tcp"], cli.USAGE, "thalweg: filter, column 1: expected a term such as"),
        (["top", "DATA", "--by", "sauce"], cli.USAGE, "thalweg: invalid dimension 'sauce'"),
        (["top", "DATA", "--from", "yesterday"], cli.USAGE, "argument --from: invalid time 'yesterday': use 2026-11-22"),
        (["top", "DATA", "--memory", "much"], cli.USAGE, "argument --memory: invalid size 'much'"),
        (["top", "DATA", "-n", "0"], cli.USAGE, "argument -n/--limit: invalid number '0'"),
        (["top", "/nonexistent"], cli.FAILED, "thalweg: /nonexistent: no such file or directory"),
        (["top", "DATA", "--from", "2026-11-22", "--to", "2026-11-21"], cli.USAGE, "before its start"),
        (["flows", "DATA", "--window", "0s"], cli.USAGE, "thalweg: invalid window 0.0 s: expected at least"),
        (["series", "DATA", "--every", "0s"], cli.USAGE, "thalweg: every: expected an interval longer than 0"),
        (["series", "DATA", "--by", "address"], cli.USAGE, "thalweg: by: address counts each row for both ends"),
        (
            ["series", "DATA", "--plot", "day.txt"],
            cli.USAGE,
            "argument --plot: invalid plot file 'day.txt': expected a name ending in one of .png, .svg, .pdf",
        ),
        (
            ["query", "DATA", "SELECT * FROM elsewhere"],
            cli.USAGE,
            "expected a SELECT from one of records, flows, elephants, flowsets, got elsewhere",
        ),
        (["query", "DATA", "SELECT FROM WHERE"], cli.USAGE, "thalweg: query: "),
        (["query", "DATA", "SELECT nothing FROM records"], cli.USAGE, "nothing"),
        (["flowsets", "DATA", "in if 3"], cli.USAGE, "no column ingress_interface"),
        (
            ["report", "DATA", "--by", "prefix/33", "--output", "x"],
            cli.USAGE,
            "argument --by: invalid group 'prefix/33': expected asn, prefix/LEN",
        ),
        (["report", "DATA", "--by", "sites=/nonexistent", "--output", "x"], cli.USAGE, "argument --by: /nonexistent: No such file"),
        (["unheard-of"], cli.USAGE, "invalid choice: 'unheard-of'"),
        ([], cli.USAGE, "the following arguments are required: COMMAND"),
    ],
)
def test_errors_have_a_message_and_an_exit_code(flows: Any, data: str, arguments: list[str], code: int, message: str) -> None:
    run = flows(*(data if argument == "DATA" else argument for argument in arguments))
    assert message in run.err
    assert run.code == code
    assert run.out == ""


def test_help_is_on_standard_output_with_examples(flows: Any) -> None:
    for command in ([], ["report"], ["top"], ["series"], ["query"], ["flows"], ["flowsets"]):
        run = flows(*command, "--help")
        assert run.code == cli.COMPLETE
        assert "examples:" in run.out
        assert "thalweg flows" in run.out
        assert max(map(len, run.out.splitlines())) <= 100, command


def test_the_reference_page_matches_the_parser() -> None:
    if "THALWEG_REFRESH_GOLDEN" in os.environ:
        REFERENCE.write_text(command_line(), encoding="utf-8")
    assert REFERENCE.read_text(encoding="utf-8") == command_line(), (
        "docs/reference/flows-command-line.md is not what the program says; to rewrite it: "
        "THALWEG_REFRESH_GOLDEN=1 .venv/bin/pytest python/tests/test_cli.py"
    )


@pytest.mark.parametrize("program", ["flows", "transfers"])
def test_the_rust_description_matches_the_parser(program: str) -> None:
    path = DESCRIPTIONS / f"{program}.json"
    if "THALWEG_REFRESH_GOLDEN" in os.environ:
        path.write_text(description(program), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == description(program), (
        f"crates/thalweg/src/cli/{program}.json is out of date: THALWEG_REFRESH_GOLDEN=1 .venv/bin/pytest python/tests/test_cli.py"
    )


def test_a_closed_pipe_is_not_an_error(data: str) -> None:
    command = [sys.executable, "-m", "thalweg", "flows", "query", data, "any", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None and run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == cli.COMPLETE


def test_the_module_has_flows_and_transfers() -> None:
    run = subprocess.run([sys.executable, "-m", "thalweg", "watch"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (cli.USAGE, "usage: python -m thalweg flows|transfers COMMAND ...\n")
