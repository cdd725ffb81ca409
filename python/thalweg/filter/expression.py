"""Compiles filter terms to conditions on rows."""

from __future__ import annotations

import operator
from collections.abc import Callable

import ibis
import ibis.expr.types as ir

from .. import counts
from .addresses import is_v4, is_v6, is_within
from .terms import AddressIn, Always, Both, Either, Family, Flags, MplsLabel, Not, Number, NumberIn, Term, Text
from .tokens import FilterError

_COMPARE: dict[str, Callable[[ir.Value, int], ir.Value]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TCP = 6
_ICMP = (1, 58)


def expression(term: Term, table: ir.Table) -> ir.BooleanValue:
    """Compiles `term` to a condition on the rows of `table`.

    Raises:
        FilterError: If it asks for a column that `table` lacks.
    """
    match term:
        case Always():
            return ibis.literal(True)
        case Not(inner):
            return ~expression(inner, table)
        case Both(left, right):
            return expression(left, table) & expression(right, table)
        case Either(left, right):
            return expression(left, table) | expression(right, table)
        case Number(quantity, comparison, value):
            condition = _COMPARE[comparison](_quantity(table, quantity), value)
            return _restricted(table, quantity, condition)
        case NumberIn(quantity, values):
            return _column(table, quantity).isin(sorted(set(values)))
        case AddressIn(column, networks):
            return is_within(_column(table, column), networks)
        case Text(column, text, is_prefix):
            found = _column(table, column)
            return found.startswith(text) & (found != "") if is_prefix else found == text
        case MplsLabel(column, label):
            return _column(table, column).re_search(f"(^| ){label}-")
        case Family(version):
            address = _column(table, "src")
            return is_v4(address) if version == 4 else is_v6(address)
        case Flags(mask, is_any):
            flags = _column(table, "tcp_flags") & mask
            return (_column(table, "protocol") == _TCP) & (flags != 0 if is_any else flags == mask)


def _restricted(table: ir.Table, quantity: str, condition: ir.BooleanValue) -> ir.BooleanValue:
    """Restricts to ICMP: only the protocol distinguishes an ICMP type and code of 0 from none."""
    if quantity in ("icmp-type", "icmp-code"):
        return _column(table, "protocol").isin(_ICMP) & condition
    return condition


def _quantity(table: ir.Table, name: str) -> ir.NumericValue:
    """Returns a column, or a value computed from columns."""
    match name:
        case "flows":
            return counts.flows(table)
        case "bytes":
            return counts.byte_count(table)
        case "packets":
            return counts.packets(table)
        case "duration":
            return (_duration_us(table) / 1000).floor()
        case "bps":
            return _ratio((counts.byte_count(table) * 8).cast("float64") * 1e6, _duration_us(table))
        case "pps":
            return _ratio(counts.packets(table).cast("float64") * 1e6, _duration_us(table))
        case "bpp":
            return _ratio(counts.byte_count(table).cast("float64"), counts.packets(table))
        case "icmp-type":
            return (_column(table, "icmp_type_code") / 256).floor()
        case "icmp-code":
            return _column(table, "icmp_type_code") % 256
    if name.startswith("mpls "):
        return _of_labels(_column(table, "mpls_labels"), name.removeprefix("mpls "))
    return _column(table, name)


def _of_labels(labels: ir.StringValue, part: str) -> ir.IntegerValue:
    """Returns a number of the MPLS labels, such as `label2`, `exp1` or `eos`; 0 if there is none. Their text is `16-0-0 100-5-1`."""
    if part == "eos":
        pattern = "([0-9]+)-[0-9]-1"
    else:
        position = part.removeprefix("label").removeprefix("exp")
        skipped = "^" + "[0-9-]+ " * (int(position) - 1)
        pattern = f"{skipped}([0-9]+)-" if part.startswith("label") else f"{skipped}[0-9]+-([0-9])-"
    return labels.re_extract(pattern, 1).nullif("").cast("int64").fill_null(0)


def _duration_us(table: ir.Table) -> ir.IntegerValue:
    """Returns the duration in microseconds; 0 if the end is before the start."""
    return ibis.greatest(_column(table, "flow_end_us") - _column(table, "flow_start_us"), 0)


def _ratio(numerator: ir.FloatingValue, denominator: ir.IntegerValue) -> ir.NumericValue:
    """Divides, rounded down; 0 if the divisor is 0."""
    quotient = numerator / ibis.greatest(denominator, 1).cast("float64")
    return ibis.ifelse(denominator > 0, quotient.floor(), 0)


def _column(table: ir.Table, name: str) -> ir.NumericValue:
    if name not in table.columns:
        raise FilterError(f"filter: these rows have no column {name}; the filter needs flow records")
    return table[name]
