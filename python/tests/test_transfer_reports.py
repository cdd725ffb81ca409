"""PRCA reports, the files for the daemon, and the command line of `thalweg transfers`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from made_transfers import SECOND, START, Limits, Store, add, make
from test_transfers import PATH, entry

from thalweg import cli
from thalweg.archive import Archive
from thalweg.cli.reference import command_line
from thalweg.dataset import Dataset
from thalweg.engines import Engine
from thalweg.sources import TimeRange
from thalweg.transfers import Stored, Transfers
from thalweg.transfers.store import PeriodError, write

DAY = datetime.fromtimestamp(START // SECOND, UTC)
REFERENCE = Path(__file__).parents[2] / "docs/reference/transfers-command-line.md"
NOW = DAY + timedelta(days=1, hours=3)
HOSTILE = '<script>alert("1")</script> & $x^2$'


class Page(HTMLParser):
    """Finds scripts and external resources."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data")
    make([4]).write(directory)
    return directory


@pytest.fixture(scope="module")
def archives() -> dict[Any, Archive]:
    """Archives by directory and range: their evidence is computed once."""
    return {}


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    engine_of: Callable[[str], Engine],
    archives: dict[Any, Archive],
) -> Any:
    def opened(records: Dataset, *, directory: Path, within: TimeRange) -> Archive:
        return archives.setdefault((directory, within), Archive(records, directory=directory, within=within))

    monkeypatch.setattr(cli.transfers, "connect", lambda *_, **__: nullcontext(engine_of("duckdb")))
    monkeypatch.setattr(cli.transfers, "Archive", opened)

    def runs(*arguments: str) -> tuple[int, str, str]:
        code = cli.main([*arguments, *(["--engine", "duckdb"] if len(arguments) > 1 else [])], NOW, "transfers")
        found = capsys.readouterr()
        return code, found.out, found.err

    return runs


def test_a_list_is_a_table_or_exact(run: Any, data: Path) -> None:
    code, out, _ = run("list", str(data), "-n", "3")
    assert code == cli.COMPLETE
    assert out.splitlines()[0].split()[:3] == ["start", "transfer", "application"]
    rows = [json.loads(line) for line in run("list", str(data), "--cause", "receiver_disk", "--json")[1].splitlines()]
    assert len(rows) >= 12
    assert {row["cause"] for row in rows} == {"receiver_disk"}
    slow = run("list", str(data), "--slow", "--host", "dtn-10.4.0.1", "--csv")[1].splitlines()
    assert len(slow) > 5


def test_why_is_text_or_json(run: Any, data: Path) -> None:
    transfer = json.loads(run("list", str(data), "--cause", "sender_cpu", "--json")[1].splitlines()[0])["transfer"]
    text = run("why", str(data), transfer)[1]
    assert text.startswith("The sending process lacks processor time")
    found = json.loads(run("why", str(data), transfer, "--json")[1])
    assert (found["transfer"], found["cause"]) == (transfer, "sender_cpu")
    assert {"facts", "alternatives", "missing", "peers", "advice", "confidence"} <= found.keys()


def test_peers_are_listed(run: Any, data: Path) -> None:
    rows = [json.loads(line) for line in run("peers", str(data), "--by", "prefix/16", "--json")[1].splitlines()]
    assert [(row["src_group"], row["transfers"]) for row in rows] == [("10.4.0.0/16", 225)]


def test_a_report_has_everything_in_json_and_nothing_external(run: Any, data: Path, tmp_path: Path) -> None:
    code, out, _ = run("report", str(data), "-o", str(tmp_path / "all"))
    assert (code, out.strip()) == (cli.COMPLETE, str(tmp_path / "all" / "index.html"))
    found = json.loads((tmp_path / "all" / "report.json").read_text())
    assert found["totals"]["transfers"] == 225
    assert sum(row["transfers"] for row in found["causes"]) == 225
    assert found["slowest"] and found["clusters"] and found["hosts"]
    page = Page((tmp_path / "all" / "index.html").read_text())
    assert "script" not in page.tags
    assert all(link.startswith("#") for link in page.links)
    assert page.tags.count("svg") == 2
    host = json.loads(run("report", str(data), "--host", "dtn-10.4.0.1", "--json")[1])
    assert 0 < host["totals"]["transfers"] < 225


def test_names_from_data_are_escaped(engine_of: Callable[[str], Engine], tmp_path: Path) -> None:
    store, random = Store(), np.random.default_rng(1)
    for index in range(12):
        rate = 9e8 if index % 2 else 3e8
        start = START + index * 1000 * SECOND
        entry(
            store,
            f"<b>{index:05}",
            user=HOSTILE,
            application=HOSTILE,
            streams=1 + index % 2,
            start=start,
            end=start + 80 * SECOND,
            bytes=int(rate * 10),
        )
    add(store, random, PATH, Limits(network=1e9), "aaaa0001", start_us=START, seconds=20)
    store.write(tmp_path)
    transfers = Transfers(Stored(engine_of("duckdb"), tmp_path))
    transfers.report(tmp_path / "out", user=HOSTILE)
    text = (tmp_path / "out" / "index.html").read_text()
    assert "script" not in Page(text).tags and "b" not in Page(text).tags
    assert "&lt;script&gt;" in text
    assert "<script" in transfers.why("<b>00000").text(), "a terminal is no browser"


@pytest.fixture
def daily(engine_of: Callable[[str], Engine], data: Path, tmp_path: Path) -> Callable[[], tuple[Transfers, Any]]:
    for name in ("transfers", "connections", "host-metrics", "hosts"):
        (tmp_path / name).symlink_to(data / name)

    def runs() -> tuple[Transfers, Any]:
        transfers = Transfers(Stored(engine_of("duckdb"), tmp_path, TimeRange(DAY, DAY + timedelta(days=1))))
        return transfers, write(transfers, reports=2)

    return runs


def files(directory: Path) -> set[str]:
    return {
        str(path.relative_to(directory))
        for part in ("verdicts", "reports", "flowsets")
        for path in (directory / part).rglob("*")
        if path.is_file()
    }


def test_a_scheduled_run_writes_verdicts_and_an_index_and_can_be_repeated(daily: Any) -> None:
    transfers, written = daily()
    directory = transfers.stored.directory
    assert (written.verdicts, written.flowsets) == (225, None)
    assert written.reports == 5 and written.left_out > 0
    first = files(directory)
    assert not any(name.endswith(".tmp") for name in first)
    index = json.loads(written.index.read_text())
    assert [entry["subject"] for entry in index["reports"]] == ["all", "host", "host", "user", "user"]
    for entry_ in index["reports"]:
        assert (written.index.parent / entry_["html"]).is_file() and (written.index.parent / entry_["json"]).is_file()
    verdicts = sorted(directory.glob("verdicts/date=*/hour=*/analysis.parquet"))
    assert sum(pq.read_metadata(path).num_rows for path in verdicts) == 225
    assert pq.read_schema(verdicts[0]).names[:2] == ["received", "made"]
    daily()
    assert files(directory) == first
    again = json.loads(written.index.read_text())
    assert [entry["html"] for entry in again["reports"]] == [entry["html"] for entry in index["reports"]]


def test_a_run_needs_whole_hours(engine_of: Callable[[str], Engine], data: Path) -> None:
    for within in (TimeRange(), TimeRange(DAY, DAY + timedelta(minutes=90))):
        with pytest.raises(PeriodError, match="whole hours"):
            write(Transfers(Stored(engine_of("duckdb"), data, within)))


def test_the_command_line_writes_yesterday_into_the_store(run: Any, data: Path, tmp_path: Path) -> None:
    for name in ("transfers", "connections", "host-metrics", "hosts"):
        (tmp_path / name).symlink_to(data / name)
    code, out, err = run("report", str(tmp_path), "--store", "--reports", "1")
    assert (code, out.strip()) == (cli.COMPLETE, str(tmp_path / "reports" / "index.json")), err
    assert "got no report" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["why", "DATA", "ffff"], cli.USAGE, "thalweg: transfer 'ffff' is not in the store"),
        (["why", "DATA", "ff"], cli.USAGE, "expected at least 4 characters"),
        (["list", "/nonexistent"], cli.FAILED, "thalweg: /nonexistent: no such directory"),
        (["list", "DATA", "--cause", "magic"], cli.USAGE, "thalweg: invalid cause 'magic': expected one of streams,"),
        (["list", "DATA", "--by", "prefix/40"], cli.USAGE, "argument --by: invalid group 'prefix/40'"),
        (["list", "DATA", "--by", "sites=/nonexistent"], cli.USAGE, "argument --by: /nonexistent: No such file"),
        (["list", "DATA", "--by", "asn"], cli.FAILED, "AS numbers come from flow records"),
        (["report", "DATA"], cli.USAGE, "one of the arguments -o/--output --json --store is required"),
        (["report", "DATA", "--json", "--user", "nobody"], cli.USAGE, "thalweg: no transfers of user 'nobody'"),
        (["report", "DATA", "--store", "--user", "u"], cli.USAGE, "leave out --user and --host"),
        (["report", "DATA", "--store", "--from", "2026-11-22T00:30"], cli.USAGE, "thalweg: invalid period"),
        (["list", "DATA", "--from", "2026-11-22", "--to", "2026-11-21"], cli.USAGE, "before its start"),
        ([], cli.USAGE, "the following arguments are required: COMMAND"),
    ],
)
def test_errors_have_a_message_and_an_exit_code(run: Any, data: Path, arguments: list[str], code: int, message: str) -> None:
    found, out, err = run(*(str(data) if argument == "DATA" else argument for argument in arguments))
    assert message in err
    assert (found, out) == (code, "")


def test_help_is_on_standard_output_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ([], ["list"], ["why"], ["peers"], ["report"]):
        assert cli.main([*command, "--help"], NOW, "transfers") == cli.COMPLETE
        out = capsys.readouterr().out
        assert "examples:" in out and "thalweg transfers" in out
        assert max(map(len, out.splitlines())) <= 100, command


def test_the_reference_page_matches_the_parser() -> None:
    if "THALWEG_REFRESH_GOLDEN" in os.environ:
        REFERENCE.write_text(command_line("transfers"), encoding="utf-8")
    assert REFERENCE.read_text(encoding="utf-8") == command_line("transfers"), (
        "docs/reference/transfers-command-line.md is out of date: THALWEG_REFRESH_GOLDEN=1 .venv/bin/pytest "
        "python/tests/test_transfer_reports.py"
    )
