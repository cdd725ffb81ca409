"""A recursive descent parser: one method per rule of the grammar in the package's documentation."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from typing import NoReturn, TypeAlias, TypeVar, cast

from ..protocols import NUMBERS as PROTOCOLS
from .terms import (
    AddressIn,
    Always,
    Both,
    Comparison,
    Either,
    Family,
    Flags,
    Network,
    Not,
    Number,
    NumberIn,
    Term,
)
from .tokens import FilterSyntaxError, Token, tokens

MAX_DEPTH = 100
"""Maximum depth of nested parentheses and negations."""

_NUMBER = re.compile(r"(?P<hex>0x[0-9a-f]+)|(?P<decimal>\d+)(?P<scale>[kmgt]?)")
_SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_LARGEST = 2**63 - 1
_COMPARISONS = {
    "==": "=",
    "eq": "=",
    "lt": "<",
    "gt": ">",
    "le": "<=",
    "ge": ">=",
    **{sign: sign for sign in ("=", "!=", "<", "<=", ">", ">=")},
}
_FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16, "U": 32}
_ENDS = ("src", "dst")
_DIRECTIONS = {"ingress": 0, "egress": 1}
_MEASURES = ("packets", "bytes", "flows", "duration", "pps", "bps", "bpp")
_NOT_KEPT = frozenset(
    (
        *("ident", "sysid", "engine-type", "engine-id", "version", "bgpnext", "prev", "mac", "mpls", "tun", "fwdstat"),
        *("client", "server", "app", "nat", "event", "asa", "xip", "xport", "ingress", "egress", "pf"),
    )
)
"""nfdump's keywords for data that flow records do not have."""

T = TypeVar("T")
_Join: TypeAlias = type[Both] | type[Either]
_Ends: TypeAlias = tuple[tuple[str, ...], _Join]


def parse(text: str) -> Term:
    """Parses `text`; the empty text matches every row.

    Raises:
        FilterSyntaxError: If it is not in the language.
    """
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._next = 0
        self._depth = 0
        self._is_negated = False

    # --- Rules

    def whole(self) -> Term:
        if self._at(""):
            return Always()
        term = self._or()
        if not self._at(""):
            self._expected("'and', 'or' or the end")
        return term

    def _or(self) -> Term:
        term = self._and()
        while self._take("or", "||"):
            term = Either(term, self._and())
        return term

    def _and(self) -> Term:
        term = self._not()
        while self._take("and", "&&"):
            term = Both(term, self._not())
        return term

    def _not(self) -> Term:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(f"more than {MAX_DEPTH} nested parentheses or negations")
        if self._take("not", "!"):
            self._is_negated = not self._is_negated
            term: Term = Not(self._not())
            self._is_negated = not self._is_negated
        elif self._take("("):
            term = self._or()
            if not self._take(")"):
                self._expected("'and', 'or' or ')'")
        else:
            term = self._primitive()
        self._depth -= 1
        return term

    def _primitive(self) -> Term:
        start = self._next
        ends = self._ends()
        interfaces = self._interfaces() if ends is None else None
        word = self._step()
        match word.key:
            case "ip" | "host":
                return self._over(ends, "", self._addresses)
            case "net":
                return self._over(ends, "", lambda column: AddressIn(column, (self._network(),)))
            case "port":
                return self._over(ends, "_port", lambda column: self._number_or_list(column, 0xFFFF))
            case "as":
                return self._over(ends, "_as", lambda column: self._number_or_list(column, 0xFFFF_FFFF))
            case "mask":
                return self._over(ends, "_prefix_length", lambda column: self._equal(column, 128))
            case "tos" | "vlan" if ends is None or ends[0] == ("src",):
                column, largest = ("tos", 0xFF) if word.key == "tos" else ("vlan_id", 0xFFF)
                return self._compared(column, largest)
            case "if":
                columns = interfaces or ("ingress_interface", "egress_interface")
                return self._each(columns, lambda column: self._equal(column, 0xFFFF_FFFF))
        if ends is not None:
            self._expected("what to compare: ip, net, port, as or mask", word)
        if interfaces is not None and not (word.key in ("packets", "bytes") and interfaces[0].startswith("in")):
            self._fail("'in' and 'out' only work with 'if': each record counts one direction", self._tokens[start])
        return self._plain(word)

    def _plain(self, word: Token) -> Term:
        """Parses primitives without qualifier."""
        match word.key:
            case "any":
                return Always()
            case "ipv4" | "inet":
                return Family(4)
            case "ipv6" | "inet6":
                return Family(6)
            case "proto":
                return Number("protocol", "=", self._protocol())
            case "next" | "router":
                self._must("ip")
                return self._addresses("next_hop" if word.key == "next" else "exporter")
            case "flags":
                return self._flags()
            case "icmp-type" | "icmp-code":
                return self._equal(word.key, 0xFF)
            case "flowdir" | "dir":
                return Number("flow_direction", "=", self._direction())
            case "observation":
                self._must("domain")
                self._must("id")
                return self._equal("observation_domain_id", 0xFFFF_FFFF)
            case measure if measure in _MEASURES:
                return self._compared(measure, _LARGEST)
        if word.key in _NOT_KEPT:
            self._fail(f"'{word.text}' is not stored in flow records", word)
        if word.key in PROTOCOLS:
            self._expected(f"a primitive such as 'proto {word.key}'", word)
        self._expected("a primitive such as 'src ip 192.0.2.1', 'port 443' or 'bytes > 1m'", word)

    # --- Qualifiers

    def _ends(self) -> _Ends | None:
        first = self._here.key
        if first not in _ENDS:
            return None
        self._next += 1
        if self._at("or", "and"):
            second = self._tokens[self._next + 1].key
            if second in _ENDS and second != first:
                self._next += 2
                return (first, second), Either if self._tokens[self._next - 2].key == "or" else Both
        return (first,), Either

    def _interfaces(self) -> tuple[str, ...] | None:
        if self._take("in"):
            return ("ingress_interface",)
        return ("egress_interface",) if self._take("out") else None

    def _over(self, ends: _Ends | None, suffix: str, leaf: Callable[[str], Term]) -> Term:
        """Applies a term to one end or to both."""
        names, join = ends or (_ENDS, Either)
        return self._each([f"{name}{suffix}" for name in names], leaf, join)

    def _each(self, columns: Iterable[str], leaf: Callable[[str], Term], join: _Join = Either) -> Term:
        """Parses the rest once and applies it to each column."""
        start = self._next
        term: Term | None = None
        for column in columns:
            self._next = start
            found = leaf(column)
            term = found if term is None else join(term, found)
        return cast(Term, term)

    # --- Values

    def _addresses(self, column: str) -> Term:
        if self._take("in"):
            return AddressIn(column, tuple(self._list(self._network_of)))
        return AddressIn(column, (self._network_of(self._step()),))

    def _network(self) -> Network:
        """Parses a prefix, or an address and its netmask."""
        word = self._step()
        if "/" in word.text:
            return self._network_of(word)
        mask = self._step()
        return self._network_of(Token(f"{word.text}/{mask.text}", word.start))

    def _network_of(self, word: Token) -> Network:
        try:
            network = ipaddress.ip_network(word.text, strict=False)
        except ValueError:
            self._expected("an IP address or a prefix as 192.0.2.0/24; names are not looked up", word)
        mapped = network.network_address.ipv4_mapped if isinstance(network, ipaddress.IPv6Network) else None
        if mapped is not None and network.prefixlen >= 96:
            return ipaddress.IPv4Network((mapped, network.prefixlen - 96))
        return network

    def _number_or_list(self, column: str, largest: int) -> Term:
        if self._take("in"):
            return NumberIn(column, tuple(self._list(lambda word: self._number_of(word, largest))))
        return self._compared(column, largest)

    def _compared(self, quantity: str, largest: int) -> Term:
        comparison = "="
        if self._here.key in _COMPARISONS:
            comparison = _COMPARISONS[self._step().key]
        return Number(quantity, cast(Comparison, comparison), self._number_of(self._step(), largest))

    def _equal(self, quantity: str, largest: int) -> Term:
        self._take("=", "==", "eq")
        return Number(quantity, "=", self._number_of(self._step(), largest))

    def _flags(self) -> Term:
        word = self._here
        if word.key in _COMPARISONS or word.text[:1].isdigit():
            return Both(Number("protocol", "=", 6), self._compared("tcp_flags", 0xFF))
        self._next += 1
        letters = word.text.upper()
        if letters == "X":
            return Flags(0x3F, self._is_negated)
        if not letters or len(set(letters)) < len(letters) or not set(letters) <= set(_FLAGS):
            self._expected("TCP flags: letters of FSRPAU, each once, X, or a number", word)
        return Flags(sum(_FLAGS[letter] for letter in letters), self._is_negated)

    def _protocol(self) -> int:
        word = self._step()
        if word.key in PROTOCOLS:
            return PROTOCOLS[word.key]
        if not word.text[:1].isdigit():
            self._expected("an IP protocol, by number or a name such as tcp", word)
        return self._number_of(word, 0xFF)

    def _direction(self) -> int:
        word = self._step()
        return _DIRECTIONS[word.key] if word.key in _DIRECTIONS else self._number_of(word, 0xFF)

    def _number_of(self, word: Token, largest: int) -> int:
        match = _NUMBER.fullmatch(word.key)
        if match is None:
            self._expected("a number", word)
        hexadecimal, decimal, scale = match.groups()
        value = int(hexadecimal, 16) if hexadecimal else int(decimal) * _SCALES[scale]
        if value > largest:
            self._fail(f"{word.text} is above the maximum of {largest}", word)
        return value

    def _list(self, item: Callable[[Token], T]) -> list[T]:
        self._must("[")
        items: list[T] = []
        while not self._take("]"):
            if self._at(""):
                self._expected("']'")
            if items:
                self._take(",")
            items.append(item(self._step()))
        if not items:
            self._next -= 1
            self._fail("the list is empty")
        return items

    # --- Words

    @property
    def _here(self) -> Token:
        return self._tokens[self._next]

    def _at(self, *keys: str) -> bool:
        return self._here.key in keys

    def _take(self, *keys: str) -> bool:
        if not self._at(*keys):
            return False
        self._next += 1
        return True

    def _must(self, key: str) -> None:
        if not self._take(key):
            self._expected(f"'{key}'")

    def _step(self) -> Token:
        """Returns the current word and advances, except past the end."""
        word = self._here
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return word

    def _expected(self, what: str, word: Token | None = None) -> NoReturn:
        word = word or self._here
        found = f"'{word.text}'" if word.text else "the end"
        self._fail(f"expected {what}, found {found}", word)

    def _fail(self, message: str, word: Token | None = None) -> NoReturn:
        raise FilterSyntaxError(self._text, (word or self._here).start, message)
