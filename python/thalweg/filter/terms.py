"""The syntax tree of a filter; each leaf examines one column."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Literal, TypeAlias

Comparison: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]
Network: TypeAlias = IPv4Network | IPv6Network
Term: TypeAlias = "Always | Not | Both | Either | Number | NumberIn | AddressIn | Text | Family | Flags | MplsLabel"


@dataclass(frozen=True, slots=True)
class Always:
    """Matches every row."""


@dataclass(frozen=True, slots=True)
class Not:
    """Matches the rows that `term` does not."""

    term: Term


@dataclass(frozen=True, slots=True)
class Both:
    """Matches the rows of both terms."""

    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Either:
    """Matches the rows of either term."""

    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Number:
    """Compares a column or a measure (`expression.MEASURES`) with a number."""

    quantity: str
    comparison: Comparison
    value: int


@dataclass(frozen=True, slots=True)
class NumberIn:
    """Matches a column with one of these numbers."""

    quantity: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddressIn:
    """Matches a column with an address in one of these prefixes."""

    column: str
    networks: tuple[Network, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """Compares a column with a text, or with how it begins; no text begins an empty one."""

    column: str
    text: str
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class MplsLabel:
    """Matches a column of MPLS labels with this label at any position."""

    column: str
    label: int


@dataclass(frozen=True, slots=True)
class Family:
    """Matches flows of IP version 4 or 6."""

    version: int


@dataclass(frozen=True, slots=True)
class Flags:
    """Matches TCP flags (`tcpControlBits`) with all, or any, of these set."""

    mask: int
    is_any: bool


def columns_of(term: Term) -> set[str]:
    """Returns the columns and measures that a filter compares with values."""
    match term:
        case Not(inner):
            return columns_of(inner)
        case Both(left, right) | Either(left, right):
            return columns_of(left) | columns_of(right)
        case Number(name) | NumberIn(name) | AddressIn(name) | Text(name) | MplsLabel(name):
            return {name}
    return set()
