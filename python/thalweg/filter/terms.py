"""What a filter says: a tree whose leaves each compare one column."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Literal, TypeAlias

Comparison: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]
Network: TypeAlias = IPv4Network | IPv6Network
Term: TypeAlias = "Always | Not | Both | Either | Number | NumberIn | AddressIn | Family | Flags"


@dataclass(frozen=True, slots=True)
class Always:
    """Every row."""


@dataclass(frozen=True, slots=True)
class Not:
    """The rows that `term` leaves."""

    term: Term


@dataclass(frozen=True, slots=True)
class Both:
    """The rows of both."""

    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Either:
    """The rows of either."""

    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Number:
    """A column or a measure (`expression.MEASURES`) compared with a number."""

    quantity: str
    comparison: Comparison
    value: int


@dataclass(frozen=True, slots=True)
class NumberIn:
    """A column that is one of these numbers."""

    quantity: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddressIn:
    """A column whose address is in one of these prefixes."""

    column: str
    networks: tuple[Network, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """Flows of IP version 4 or 6."""

    version: int


@dataclass(frozen=True, slots=True)
class Flags:
    """TCP flows with all of these flags set (`tcpControlBits`), or any of them."""

    mask: int
    is_any: bool
