"""Parameters of the analyses: the definitions of flows, elephants and flowsets."""

from __future__ import annotations

from dataclasses import dataclass

GAP_S, WINDOW_S, THRESHOLD_BYTES = 60.0, 60.0, 1_000_000_000
"""The values of the dissertation: more than 1 GB within 60 s, the active timeout of its routers."""
TAU_S = 10.0
"""The value of the dissertation: flows of a flowset start within 10 s."""
RULES = ("span", "chain")
"""Rules for chains of starts that together last longer than tau (equation 2.2); see `flowsets`."""


@dataclass(frozen=True)
class Parameters:
    """Parameters of the analyses; the defaults are the dissertation's. See `flows.reconstruct` and `flowsets.flowsets`.

    Attributes:
        gap: Seconds of silence after which a record with the same 5-tuple belongs to a new flow.
        threshold: Bytes that an elephant flow exceeds within `window`.
        window: Seconds within which an elephant flow sends more than `threshold`.
        tau: Seconds within which the flows of a flowset start.
        rule: `span` or `chain`.
        elephants_only: Whether flowsets consist of elephant flows only.

    Raises:
        ValueError: If a value is out of range.
    """

    gap: float = GAP_S
    threshold: int = THRESHOLD_BYTES
    window: float = WINDOW_S
    tau: float = TAU_S
    rule: str = "span"
    elephants_only: bool = True

    def __post_init__(self) -> None:
        self.rules()

    def rules(self) -> dict[str, int | str | bool]:
        """Returns the parameters for compiled code: times in microseconds."""
        of_flows = checked_flow_rules(self.gap, self.threshold, self.window)
        return of_flows | checked_set_rules(self.tau, self.rule) | {"elephants_only": self.elephants_only}


def checked_flow_rules(gap: float, threshold: int, window: float) -> dict[str, int | str | bool]:
    """Validates parameters of `flows.reconstruct` and converts them for engines.

    Raises:
        ValueError: If a value is out of range.
    """
    if threshold < 0:
        raise ValueError(f"invalid threshold {threshold} bytes: expected 0 or more")
    return {
        "gap_us": in_microseconds("gap", gap, 0),
        "threshold_bytes": threshold,
        "window_us": in_microseconds("window", window, 1),
    }


def in_microseconds(name: str, seconds: float, min_us: int) -> int:
    """Converts a parameter to whole microseconds.

    Raises:
        ValueError: If it is less than `min_us`.
    """
    value_us = round(seconds * 1e6)
    if value_us < min_us:
        raise ValueError(f"invalid {name} {seconds} s: expected at least {min_us / 1e6} s")
    return value_us


def checked_set_rules(tau: float, rule: str) -> dict[str, int | str | bool]:
    """Validates parameters of `flowsets.flowsets` and converts them for engines.

    Raises:
        ValueError: If a value is out of range.
    """
    if rule not in RULES:
        raise ValueError(f"unknown rule {rule!r}: expected one of {', '.join(RULES)}")
    return {"tau_us": in_microseconds("tau", tau, 0), "rule": rule}
