"""Parallel flowsets: flows between two hosts that start together (the dissertation, section 2.2, equations 2.1 to 2.3).

The identifier of a flowset is (src, dst), eq. 2.1. Flows with the same identifier are sorted by
(flow_start, flow_end, src_port, dst_port, protocol). With f for a start, eq. 2.2 requires of the flows k_n ... k_n+u of a set:

    f(k_n+u) - f(k_n) <= tau,    f(k_n) - f(k_n-1) > tau,    f(k_n+u+1) - f(k_n+u) > tau

A chain of starts with gaps of at most tau that together last longer than tau cannot satisfy this, neither whole nor divided.
So a rule is needed:

- `span` (the default): a set starts with the first flow that is not in a set yet, and contains all flows that start at most tau
  later. The first condition always holds, the other two may not.
- `chain`: a flow joins the set if it starts at most tau after the flow before it. The last two conditions always hold, the first
  may not.

Where eq. 2.2 can be satisfied, both rules satisfy it and agree. All data are one input, so sets may cross midnight.

Size, duration and rate of a set follow eq. 2.3, with one difference: the duration ends with the flow that ends last, not with the
flow that *starts* last. If an earlier flow ends later, the duration by the equation would be too short and the rate too high.
"""

from __future__ import annotations

import math

import ibis
import ibis.expr.types as ir

from .dataset import Dataset
from .engines import Engine
from .parameters import TAU_S, checked_set_rules
from .saturation import product, total

COLUMNS = {
    "src": "string",
    "dst": "string",
    "flow_start_us": "int64",
    "flow_end_us": "int64",
    "flows": "int64",
    "bytes": "int64",
    "packets": "int64",
    "duration_ns": "int64",
    "rate_bps": "float64",
    "src_as": "int64",
    "dst_as": "int64",
}
"""Columns of flowsets. `flows` is N (1: a single flow, Table 2.4); `bytes` is S; `duration_ns` is D; `rate_bps` is R, in doubles
(S * 8) * 10^9 / D, null where D is 0; AS numbers are the greatest of its flows."""

_PAIR = ["src", "dst"]
_CHAIN = [*_PAIR, "chain"]
_ORDER = ["flow_start_us", "flow_end_us", "src_port", "dst_port", "protocol"]


def flowsets(flows: Dataset, *, tau: float = TAU_S, rule: str = "span", elephants_only: bool = True) -> Dataset:
    """Groups flows into flowsets, with the columns of `COLUMNS`, in any order.

    Args:
        flows: The result of `reconstruct`.
        tau: Seconds within which the flows of a set start; not negative.
        rule: `span` or `chain`.
        elephants_only: Considers only elephant flows, as in the dissertation.

    Raises:
        ValueError: If a parameter is out of its range.
    """
    tau_us = int(checked_set_rules(tau, rule)["tau_us"])
    members = flows.table.filter(flows.table.elephant) if elephants_only else flows.table
    sets = chained = _chains(members, tau_us).mutate(part=ibis.literal(0, "int64"))
    if rule == "span":
        chained = flows.engine.materialise(chained)
        sets = _divided(flows.engine, chained, tau_us)
    return flows.derive(_characterised(sets))


def _chains(flows: ir.Table, tau_us: int) -> ir.Table:
    """Adds the number `chain` of each flow's chain within its pair of hosts."""
    of_pair = {"group_by": _PAIR, "order_by": _ORDER}
    before = flows.mutate(previous_us=flows.flow_start_us.lag().over(ibis.window(**of_pair)))
    begins = (before.flow_start_us - before.previous_us > tau_us).ifelse(1, 0)
    numbered = before.mutate(chain=begins.sum().over(ibis.window(rows=(None, 0), **of_pair)).cast("int64"))
    return numbered.select(*_CHAIN, *_ORDER, "bytes", "packets", "src_as", "dst_as")


def _divided(engine: Engine, chained: ir.Table, tau_us: int) -> ir.Table:
    """Splits chains that span more than tau by the rule `span`."""
    spans = chained.group_by(*_CHAIN).aggregate(span_us=chained.flow_start_us.max() - chained.flow_start_us.min(), members=chained.count())
    long = engine.materialise(spans.filter(spans.span_us > tau_us).mutate(number=ibis.row_number().over(order_by=_CHAIN)))
    # Parts of a chain start more than tau apart, each with a flow.
    most = long.aggregate(parts=ibis.least(long.members, long.span_us // max(tau_us, 1) + 1).max().cast("int64"))
    parts = engine.to_pyarrow(most)["parts"][0].as_py()
    if parts is None:
        return chained
    positions = engine.materialise(_positions(chained, long, tau_us))
    leaders = _leaders(engine, positions, parts)
    led = positions.left_join(leaders, ["number", "position"])
    begins = led.select(positions, leads=leaders.leads.fill_null(0))
    in_chain = ibis.window(group_by="number", order_by="position", rows=(None, 0))
    cut = begins.mutate(part=begins.leads.sum().over(in_chain).cast("int64")).select(*chained.columns)
    return chained.anti_join(long, _CHAIN).select(*chained.columns).union(engine.materialise(cut))


def _positions(chained: ir.Table, long: ir.Table, tau_us: int) -> ir.Table:
    """Adds to flows of long chains their `position`, from 0, and `next`: that of the first that starts more than tau later."""
    flows = chained.inner_join(long.select(*_CHAIN, "number", "members"), _CHAIN)
    flows = flows.select(*chained.columns, "number", "members")
    up_to_tau = ibis.range_window(group_by="number", order_by="flow_start_us", preceding=None, following=tau_us)
    return flows.mutate(
        position=ibis.row_number().over(ibis.window(group_by="number", order_by=_ORDER)).cast("int64"),
        next=flows.count().over(up_to_tau).cast("int64"),
    )


def _leaders(engine: Engine, positions: ir.Table, parts: int) -> ir.Table:
    """Positions at which parts begin: 0, next(0), next(next(0)), ...; in passes that each double how far they reach.

    After k passes `reached` has the first 2^k of them, and `hops` leads from a position to that 2^k parts on, if there is one.
    """
    reached = positions.filter(positions.position == 0).select("number", "position")
    hops = positions.filter(positions.next < positions.members).select("number", "position", "next")
    for _ in range(math.ceil(math.log2(parts))):
        landed = reached.inner_join(hops, ["number", "position"]).select("number", position="next")
        reached = engine.materialise(reached.union(landed))
        then = hops.select("number", next="position", after="next")
        doubled = hops.inner_join(then, ["number", "next"])
        hops = engine.materialise(doubled.select("number", "position", next="after"))
    return reached.mutate(leads=ibis.literal(1))


def _characterised(sets: ir.Table) -> ir.Table:
    """Computes equation 2.3 for each flowset."""
    summed = sets.group_by(*_CHAIN, "part").aggregate(
        flow_start_us=sets.flow_start_us.min(),
        flow_end_us=sets.flow_end_us.max(),
        flows=sets.count(),
        bytes=total(sets.bytes),
        packets=total(sets.packets),
        src_as=sets.src_as.max(),
        dst_as=sets.dst_as.max(),
    )
    timed = summed.mutate(length_us=summed.flow_end_us - summed.flow_start_us)
    bits = product(timed.bytes, 8).cast("float64")
    rated = timed.mutate(
        duration_ns=product(timed.length_us, 1000),
        rate_bps=bits * 1e6 / timed.length_us.nullif(0).cast("float64"),
    )
    return rated.select(*COLUMNS).cast(COLUMNS)
