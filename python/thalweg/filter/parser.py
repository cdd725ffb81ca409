"""A recursive descent parser: one method per rule of the grammar in the package's documentation."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn, TypeAlias, TypeVar, cast

from ..nearest import suggestion
from ..protocols import NUMBERS as PROTOCOLS
from .terms import (
    AddressIn,
    Always,
    Both,
    Comparison,
    Either,
    Family,
    Flags,
    MplsLabel,
    Network,
    Not,
    Number,
    NumberIn,
    Term,
    Text,
)
from .tokens import FilterSyntaxError, Token, shown, tokens

MAX_DEPTH = 100
"""Maximum depth of nested parentheses and negations."""

_NUMBER = re.compile(r"0x(?P<hex>[0-9a-f]+)|(?P<decimal>[0-9]+)(?P<scale>[kmgt]?)")
_PREFIX = re.compile(r"(?P<address>[^/]+)/(?P<bits>[0-9]{1,3})")
_SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_LARGEST = 2**63 - 1
_DIGITS = 20
"""More digits than `_LARGEST` has."""
_SHORTEST_MISSPELT = 3
"""A shorter word gets no suggestion."""
_COMPARISONS = {
    "==": "=",
    "eq": "=",
    "lt": "<",
    "gt": ">",
    "le": "<=",
    "ge": ">=",
    **{sign: sign for sign in ("=", "!=", "<", "<=", ">", ">=")},
}
_FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16, "U": 32, "X": 63}
_ENDS = ("src", "dst")
_DIRECTIONS = {"ingress": 0, "egress": 1}
_MACS = {"in": {"src": "src_mac", "dst": "dst_mac"}, "out": {"src": "post_src_mac", "dst": "post_dst_mac"}}
"""Columns of the MAC addresses of incoming and outgoing packets."""
_MAC = re.compile(r"[0-9a-f]{1,2}(?P<sign>[:-])[0-9a-f]{1,2}(?:(?P=sign)[0-9a-f]{1,2}){4}")
_STATUSES = {"unknown": 0, "forwarded": 1, "forw": 1, "dropped": 2, "drop": 2, "consumed": 3}
"""Classes of the forwarding status (RFC 7270), 64 numbers each."""
_MPLS = re.compile(r"label([1-9]|10)|exp([1-9]|10)|eos")
_MPLS_WORDS = (*(f"{part}{position}" for part in ("label", "exp") for position in range(1, 11)), "eos", "any")
_SIGNS = set("()[],<>=!&|")
_MEASURES = ("packets", "bytes", "flows", "duration", "pps", "bps", "bpp")

TERMS = (
    *("any", "ipv4", "ipv6", "host", "net", "port", "proto", "flags", "bytes", "packets", "in bytes", "in packets", "flows"),
    *("duration", "bps", "pps", "bpp", "icmp-type", "icmp-code", "tos", "as", "mask", "if", "vlan", "customer vlan", "mac", "ttl"),
    *("min ttl", "max ttl", "fwdstat", "mpls label1", "mpls exp1", "mpls eos", "mpls any", "vrf", "vrf name", "if name", "next ip"),
    *("bgpnext ip", "next as", "prev as", "geo", "router ip", "router name", "flowdir", "observation domain id"),
    *("observation point id",),
)
"""The terms of flow records, in the order in which messages list them."""

_QUALIFIED = ("ip", "host", "net", "port", "as", "mask", "vlan", "mac", "geo")
_FOREIGN = frozenset(
    (
        *("app", "asa", "cheetah", "client", "count", "egress", "engine-id", "engine-type", "event", "ident", "ingress", "nat", "nip"),
        *("nport", "payload", "pblock", "pf", "server", "sysid", "tun", "tunip", "version", "xip", "xnet", "xport"),
    )
)
"""Terms that flow records do not have: those of nfdump and of live flows."""

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
            self._expected("'and', 'or' or the end", near=("and", "or"))
        return term

    def _or(self) -> Term:
        terms = [self._and()]
        while self._take("or", "||"):
            terms.append(self._and())
        return _joined(Either, terms)

    def _and(self) -> Term:
        terms = [self._not()]
        while self._take("and", "&&"):
            terms.append(self._not())
        return _joined(Both, terms)

    def _not(self) -> Term:
        if not self._at("not", "!", "("):
            return self._primitive()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail("too_deep", f"more than {MAX_DEPTH} nested parentheses and negations")
        if self._take("("):
            term = self._or()
            if not self._take(")"):
                self._expected("'and', 'or' or ')'", near=("and", "or"))
        else:
            self._next += 1
            self._is_negated = not self._is_negated
            term = Not(self._not())
            self._is_negated = not self._is_negated
        self._depth -= 1
        return term

    def _primitive(self) -> Term:
        first = self._here
        ends = self._ends()
        if ends is None and first.key in ("in", "out"):
            self._next += 1
            return self._directed(first)
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
            case "vlan":
                return self._over(ends, {"src": "vlan_id", "dst": "post_vlan_id"}, lambda column: self._equal(column, 0xFFF))
            case "geo":
                return self._over(ends, "_country", self._country)
            case "mac":
                return self._mac(("in", "out"), ends)
            case "tos" if ends is None or len(ends[0]) == 1:
                return self._compared("post_tos" if ends and ends[0] == ("dst",) else "tos", 0xFF)
        if ends is not None:
            self._expected(f"one of {', '.join(_QUALIFIED)}", word, near=_QUALIFIED)
        return self._plain(word)

    def _directed(self, first: Token) -> Term:
        """Parses a term after `in` or `out`."""
        ends = self._ends()
        if ends is not None:
            self._must("mac")
            return self._mac((first.key,), ends)
        word = self._step()
        match word.key:
            case "if":
                return self._interface(("ingress" if first.key == "in" else "egress",))
            case "mac":
                return self._mac((first.key,), None)
            case "bytes" | "packets" if first.key == "in":
                return self._compared(word.key, _LARGEST)
            case "bytes" | "packets":
                self._not_known_here(f"out {word.key}", first)
        self._expected("'if', 'mac', 'bytes' or 'packets'", word)

    def _plain(self, word: Token) -> Term:
        """Parses terms without qualifier, and refuses all others."""
        match word.key:
            case "any":
                return Always()
            case "ipv4" | "inet":
                return Family(4)
            case "ipv6" | "inet6":
                return Family(6)
            case "proto":
                return Number("protocol", "=", self._protocol())
            case "flags":
                return self._flags()
            case "icmp-type" | "icmp-code":
                return self._equal(word.key, 0xFF)
            case "flowdir" | "dir":
                return Number("flow_direction", "=", self._direction())
            case "ttl":
                return self._each(("min_ttl", "max_ttl"), lambda column: self._compared(column, 0xFF))
            case "fwdstat":
                return self._forwarding_status()
            case "mpls":
                return self._mpls()
            case measure if measure in _MEASURES:
                return self._compared(measure, _LARGEST)
        return self._of_router(word)

    def _of_router(self, word: Token) -> Term:
        """Parses interfaces, VRFs and terms of several words, and refuses all others."""
        match word.key:
            case "if":
                return self._interface(("ingress", "egress"))
            case "vrf":
                return self._vrf(("ingress", "egress"))
            case "ingress" | "egress" if self._take("vrf"):
                return self._vrf((word.key,))
            case "next" | "prev" if word.key == "prev" or self._at("as"):
                self._must("as")
                return self._number_or_list("next_as" if word.key == "next" else "previous_as", 0xFFFF_FFFF)
            case "router" if self._take("name"):
                return self._text_in("exporter_name")
            case "next" | "bgpnext" | "router":
                self._must("ip")
                return self._addresses({"next": "next_hop", "bgpnext": "bgp_next_hop", "router": "exporter"}[word.key])
            case "min" | "max":
                self._must("ttl")
                return self._compared(f"{word.key}_ttl", 0xFF)
            case "customer":
                self._must("vlan")
                return self._equal("customer_vlan_id", 0xFFF)
            case "observation":
                return self._observation()
        self._refuse_term(word)

    def _observation(self) -> Term:
        column, largest = ("observation_point_id", _LARGEST) if self._take("point") else ("observation_domain_id", 0xFFFF_FFFF)
        if column == "observation_domain_id":
            self._must("domain")
        self._must("id")
        return self._equal(column, largest)

    def _refuse_term(self, word: Token) -> NoReturn:
        if word.key in _FOREIGN:
            self._not_known_here(shown(word.text), word)
        example = self._example_with(word)
        if example:
            self._expected(f"a term such as '{example}'", word)
        near = (*TERMS, "ip", "not", "src", "dst")
        self._expected("a term such as 'src ip 192.0.2.1', 'port 443' or 'bytes > 1m'", word, near=near)

    def _example_with(self, word: Token) -> str | None:
        """Returns the term that a bare value probably means."""
        if word.key in PROTOCOLS:
            return f"proto {word.key}"
        network = _network_in(word.key)
        if network is not None:
            return f"{'net' if '/' in word.key else 'ip'} {_written(network)}"
        match = _NUMBER.fullmatch(word.key)
        value = _LARGEST if match is None else _value(match)
        return f"port {value}" if value <= 0xFFFF else None

    # --- Qualifiers

    def _ends(self) -> _Ends | None:
        first = self._here.key
        if first not in _ENDS:
            return None
        self._next += 1
        if self._at("or", "and"):
            second = self._tokens[self._next + 1].key
            if second in _ENDS and second != first:
                join = Either if self._at("or") else Both
                self._next += 2
                return (first, second), join
        return (first,), Either

    def _over(self, ends: _Ends | None, columns: str | Mapping[str, str], leaf: Callable[[str], Term]) -> Term:
        """Applies a term to one end or to both; `columns` are those of the ends, or how their names end."""
        names, join = ends or (_ENDS, Either)
        named = [f"{name}{columns}" if isinstance(columns, str) else columns[name] for name in names]
        return self._each(named, leaf, join)

    def _interface(self, directions: Sequence[str]) -> Term:
        if self._take("name"):
            return self._each([f"{direction}_interface_name" for direction in directions], self._text_in)
        return self._each([f"{direction}_interface" for direction in directions], lambda column: self._equal(column, 0xFFFF_FFFF))

    def _vrf(self, directions: Sequence[str]) -> Term:
        if self._take("name"):
            return self._each([f"{direction}_vrf_name" for direction in directions], self._text_in)
        return self._each([f"{direction}_vrf_id" for direction in directions], lambda column: self._equal(column, 0xFFFF_FFFF))

    def _mac(self, sides: Sequence[str], ends: _Ends | None) -> Term:
        """Parses the address of `mac`, of incoming packets, of outgoing ones, or of both."""
        word = self._step()
        if not _MAC.fullmatch(word.key):
            self._expected("a MAC address such as 02:00:00:00:00:01", word)
        numbers = [int(part, 16) for part in re.split("[:-]", word.key)]
        text = ":".join(f"{number:02x}" for number in numbers) if any(numbers) else ""
        names, join = ends or (_ENDS, Either)
        of_ends = [_joined(Either, [Text(_MACS[side][name], text) for side in sides]) for name in names]
        return _joined(join, of_ends)

    def _mpls(self) -> Term:
        word = self._step()
        if word.key == "any":
            self._take("=", "==", "eq")
            return MplsLabel("mpls_labels", self._number_of(self._step(), 0xF_FFFF))
        if not _MPLS.fullmatch(word.key):
            self._expected("'label1' to 'label10', 'exp1' to 'exp10', 'eos' or 'any'", word, near=_MPLS_WORDS)
        return self._compared(f"mpls {word.key}", 7 if word.key.startswith("exp") else 0xF_FFFF)

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
            network = _network_in(word.text)
        else:
            network = _network_with_mask(word.text, self._here.text)
            self._next += network is not None
        if network is None:
            self._expected("a prefix such as 192.0.2.0/24, or an IPv4 address and its netmask", word)
        return network

    def _network_of(self, word: Token) -> Network:
        network = _network_in(word.text)
        if network is None:
            self._expected("an IP address or a prefix such as 192.0.2.0/24 (names are not looked up)", word)
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
        if word.key in _COMPARISONS or word.key[:1] in tuple("0123456789"):
            return Both(Number("protocol", "=", 6), self._compared("tcp_flags", 0xFF))
        self._step()
        letters = word.key.upper() if word.key.isascii() else word.key
        if not letters or len(set(letters)) < len(letters) or not set(letters) <= set(_FLAGS):
            self._expected("TCP flags: letters of FSRPAU, each once, X for all, or a number", word)
        mask = 0
        for letter in letters:
            mask |= _FLAGS[letter]
        return Flags(mask, self._is_negated)

    def _protocol(self) -> int:
        word = self._step()
        if word.key[:1] in tuple("0123456789"):
            return self._number_of(word, 0xFF)
        if word.key not in PROTOCOLS:
            self._expected("an IP protocol: a number, or a name such as tcp", word, near=tuple(PROTOCOLS))
        return PROTOCOLS[word.key]

    def _forwarding_status(self) -> Term:
        """Parses a number, or one of the four classes of RFC 7270."""
        if self._here.key not in _STATUSES:
            return self._compared("forwarding_status", 0xFF)
        first = 64 * _STATUSES[self._step().key]
        return Both(Number("forwarding_status", ">=", first), Number("forwarding_status", "<=", first + 63))

    def _text_in(self, column: str) -> Term:
        word = self._step()
        quote = word.text[:1]
        if quote and quote in "\"'":
            text, _, rest = word.text[1:].rpartition(quote)
            return Text(column, text, rest == "*")
        if set(word.text) <= _SIGNS or set(word.text) & set("\"'"):
            self._expected("a name, in quotes if it has blanks or signs", word)
        return Text(column, word.text.removesuffix("*"), word.text.endswith("*"))

    def _country(self, column: str) -> Term:
        word = self._step()
        if len(word.text) != 2 or not (word.text.isascii() and word.text.isalpha()):
            self._expected("the two letters of a country, such as DE", word)
        return Text(column, word.text.upper())

    def _direction(self) -> int:
        word = self._step()
        return _DIRECTIONS[word.key] if word.key in _DIRECTIONS else self._number_of(word, 0xFF)

    def _number_of(self, word: Token, largest: int) -> int:
        match = _NUMBER.fullmatch(word.key)
        if match is None:
            self._expected("a number", word)
        value = _value(match)
        if value > largest:
            self._fail("too_large", f"{shown(word.text)} is above the maximum of {largest}", word)
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
            self._fail("empty_list", "the list is empty")
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
            self._expected(f"'{key}'", near=(key,))

    def _step(self) -> Token:
        """Returns the current word and advances, except past the end."""
        word = self._here
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return word

    def _expected(self, what: str, word: Token | None = None, near: Sequence[str] = ()) -> NoReturn:
        """Refuses a word, and suggests the most similar one of `near`."""
        word = word or self._here
        end = suggestion(word.key, near) if len(word.key) >= _SHORTEST_MISSPELT else ""
        self._fail("expected", f"expected {what}, found {word.quoted}{end}", word)

    def _not_known_here(self, term: str, word: Token) -> NoReturn:
        self._fail("not_known_here", f"'{term}' is not known here; known: {', '.join(TERMS)}", word)

    def _fail(self, kind: str, message: str, word: Token | None = None) -> NoReturn:
        raise FilterSyntaxError(self._text, (word or self._here).start, kind, message)


def _joined(join: _Join, terms: Sequence[Term]) -> Term:
    """The terms as a balanced tree, so that a long chain is not a deep one."""
    if len(terms) == 1:
        return terms[0]
    half = (len(terms) + 1) // 2
    return join(_joined(join, terms[:half]), _joined(join, terms[half:]))


def _value(match: re.Match[str]) -> int:
    """A number; one beyond 64 bits reads as a number beyond `_LARGEST`."""
    hexadecimal, decimal, scale = match.groups()
    if hexadecimal:
        return int(hexadecimal, 16)
    digits = decimal.lstrip("0") or "0"
    return _LARGEST + 1 if len(digits) > _DIGITS else int(digits) * _SCALES[scale]


def _network_in(text: str) -> Network | None:
    """An address, or a prefix, whose trailing zero octets may be left out if it is of IPv4."""
    if "%" in text:
        return None
    if "/" in text:
        match = _PREFIX.fullmatch(text)
        if match is None:
            return None
        missing = 0 if ":" in text else 3 - match["address"].count(".")
        text = f"{match['address']}{'.0' * missing}/{match['bits']}"
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
    mapped = network.network_address.ipv4_mapped if isinstance(network, ipaddress.IPv6Network) else None
    if mapped is not None and network.prefixlen >= 96:
        return ipaddress.IPv4Network((mapped, network.prefixlen - 96))
    return network


def _network_with_mask(address: str, mask: str) -> Network | None:
    """An IPv4 address and its netmask, whose ones come before its zeros."""
    try:
        bits = int(ipaddress.IPv4Address(mask))
        length = 32 - (bits ^ 0xFFFF_FFFF).bit_length()
        return ipaddress.IPv4Network((int(ipaddress.IPv4Address(address)), length), strict=False) if _is_mask(bits) else None
    except ValueError:
        return None


def _is_mask(bits: int) -> bool:
    zeros = bits ^ 0xFFFF_FFFF
    return zeros & (zeros + 1) == 0


def _written(network: Network) -> str:
    is_address = network.prefixlen == network.max_prefixlen
    return str(network.network_address) if is_address else str(network)
