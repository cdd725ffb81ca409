"""Which observation points of a flow count, and the note about it. Without slow imports: native answers use it."""

from __future__ import annotations

from collections.abc import Sequence

from .dimensions import Dimension
from .keys import KEY, POINT
from .units import count


def identity(per_router: bool) -> tuple[list[str], list[str]]:
    """Returns the columns that identify what counts once, and those that distinguish the observation points of it."""
    return ([*KEY, "exporter"], [name for name in POINT if name != "exporter"]) if per_router else ([*KEY], [*POINT])


def is_per_router(by: Sequence[Dimension]) -> bool:
    """Whether groups belong to routers, so that a flow counts once at each router."""
    return any("exporter" in dimension.columns for dimension in by)


def note(points: int, left_out: int) -> str:
    """Returns the note for readers of rows that count each flow once; empty if that left nothing out."""
    if not left_out:
        return ""
    return (
        f"a flow that several of {count(points)} observation points exported counts once, by the records of the point that saw it longest: "
        f"{count(left_out)} records left out; --every-router counts all"
    )
