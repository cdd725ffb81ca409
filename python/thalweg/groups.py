"""Groups of hosts by AS number, by prefix, or by a list of sites.

Prefixes are matched here, once per distinct address, and the result is joined: engines differ in their support of IPv6.
"""

from __future__ import annotations

import abc
import csv
import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from .dataset import Dataset

OTHER = ""
"""The group of hosts outside all groups. Tables omit it."""

_ENDS = (("to", "dst"), ("from", "src"))


class SiteError(ValueError):
    """An invalid list of sites, with file and line."""


class Grouping(abc.ABC):
    """A grouping of hosts."""

    def sides(self, flowsets: Dataset) -> Dataset:
        """Returns each flowset twice: `direction` "to" with the `group` of its destination, "from" with that of its source.

        Ends that are in no group are left out.
        """
        parts = [self._grouped(flowsets, end).mutate(direction=ibis.literal(direction)) for direction, end in _ENDS]
        columns = ["group", "direction", *flowsets.table.columns]
        both = parts[0].select(*columns).union(parts[1].select(*columns))
        return flowsets.derive(both.filter(both["group"] != OTHER))

    def paths(self, flowsets: Dataset) -> Dataset:
        """Returns flowsets with `src_group` and `dst_group`, if both ends are in a group."""
        from_source = self._grouped(flowsets, "src").rename(src_group="group")
        both = self._grouped(flowsets.derive(from_source), "dst").rename(dst_group="group")
        return flowsets.derive(both.filter((both.src_group != OTHER) & (both.dst_group != OTHER)))

    @abc.abstractmethod
    def _grouped(self, flowsets: Dataset, end: str) -> ir.Table:
        """Returns flowsets with the `group` of their `end`, "src" or "dst"."""


@dataclass(frozen=True)
class ByAs(Grouping):
    """Groups by AS number. AS 0 (unknown) is no group.

    Attributes:
        names: Names by number; others are called `AS` and the number.
    """

    names: Mapping[int, str] = field(default_factory=dict)

    def _grouped(self, flowsets: Dataset, end: str) -> ir.Table:
        table = flowsets.table
        number = table[f"{end}_as"]
        name = ibis.literal("AS").concat(number.cast("string"))
        named = ibis.cases((number == 0, OTHER), *((number == at, text) for at, text in sorted(self.names.items())), else_=name)
        return table.mutate(group=named)


@dataclass(frozen=True)
class ByPrefix(Grouping):
    """Groups by prefix of a fixed length.

    Attributes:
        v4: Length for IPv4, in bits.
        v6: Length for IPv6, in bits.
    """

    v4: int = 24
    v6: int = 48

    def _grouped(self, flowsets: Dataset, end: str) -> ir.Table:
        return _by_address(flowsets, end, self.name_of)

    def name_of(self, address: str) -> str:
        """Returns the prefix of an address.

        Raises:
            ValueError: If it is not an address.
        """
        if not address:
            return OTHER
        length = self.v6 if ":" in address else self.v4
        return str(ipaddress.ip_network(f"{address}/{length}", strict=False))


class Sites(Grouping):
    """Groups by a list of prefixes and site names; the longest prefix applies."""

    def __init__(self, prefixes: Iterable[tuple[str, str]]) -> None:
        """
        Args:
            prefixes: Prefixes and names. The same prefix twice: the last counts.

        Raises:
            ValueError: If a prefix is invalid or has bits set beyond its length.
        """
        self._names: dict[tuple[int, int], dict[int, str]] = {}
        for prefix, name in prefixes:
            network = ipaddress.ip_network(prefix)
            of_length = self._names.setdefault((network.version, network.prefixlen), {})
            of_length[int(network.network_address)] = name
        self._longest_first = sorted(self._names, key=lambda key: -key[1])

    @classmethod
    def read(cls, path: str | Path) -> Sites:
        """Reads a list of sites from a CSV file: a prefix and a name per line. Empty lines and lines starting with `#` are skipped.

        Raises:
            SiteError: If a line is not a prefix and a name.
            OSError: If the file cannot be read.
        """
        found: list[tuple[str, str]] = []
        with open(path, newline="", encoding="utf-8") as file:
            rows = csv.reader(file, skipinitialspace=True)
            for row in rows:
                if not row or row[0].startswith("#") or [cell.strip() for cell in row] == ["prefix", "name"]:
                    continue
                try:
                    prefix, name = (cell.strip() for cell in row)
                    ipaddress.ip_network(prefix)
                except ValueError as wrong:
                    raise SiteError(f"{path}: line {rows.line_num}: expected prefix,name: {wrong}") from wrong
                found.append((prefix, name))
        return cls(found)

    def name_of(self, address: str) -> str:
        """Returns the site of an address, or `OTHER`."""
        if not address:
            return OTHER
        parsed = ipaddress.ip_address(address)
        number, bits = int(parsed), parsed.max_prefixlen
        for version, length in self._longest_first:
            if version == parsed.version:
                name = self._names[version, length].get(number >> (bits - length) << (bits - length))
                if name is not None:
                    return name
        return OTHER

    def _grouped(self, flowsets: Dataset, end: str) -> ir.Table:
        return _by_address(flowsets, end, self.name_of)


def _by_address(flowsets: Dataset, end: str, name_of: Callable[[str], str]) -> ir.Table:
    distinct = flowsets.engine.to_pyarrow(flowsets.table.select(end).distinct())[end].to_pylist()
    names = pa.table({end: pa.array(distinct, pa.string()), "group": pa.array([name_of(each) for each in distinct], pa.string())})
    named = flowsets.engine.from_arrow(names).table
    return flowsets.table.inner_join(named, end)
