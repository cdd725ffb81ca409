"""Flows and flowsets in one go: by compiled code where it is there and the records are those of whole files, else by Ibis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .dataset import Dataset
from .flows import GAP_S, THRESHOLD_OCTETS, WINDOW_S, checked_flow_rules, reconstruct
from .flowsets import TAU_S, checked_set_rules, flowsets


@dataclass(frozen=True)
class Parameters:
    """What the analyses take, with the dissertation's numbers; see `flows.reconstruct` and `flowsets.flowsets`.

    Attributes:
        gap: Seconds without a flow after which a record is another flow's.
        threshold: A cheetah sends more than so many octets ...
        window: ... within so many seconds.
        tau: Seconds within which flows of a set start.
        rule: `span` or `chain`.
        cheetahs_only: Whether flowsets are of cheetah flows alone.

    Raises:
        ValueError: If one is out of its range.
    """

    gap: float = GAP_S
    threshold: int = THRESHOLD_OCTETS
    window: float = WINDOW_S
    tau: float = TAU_S
    rule: str = "span"
    cheetahs_only: bool = True

    def __post_init__(self) -> None:
        self.rules()

    def rules(self) -> dict[str, int | str | bool]:
        """As compiled code takes them: times in microseconds."""
        of_flows = checked_flow_rules(self.gap, self.threshold, self.window)
        return of_flows | checked_set_rules(self.tau, self.rule) | {"cheetahs_only": self.cheetahs_only}


@dataclass(frozen=True)
class Analysis:
    """What the records tell, computed once and kept by the engine.

    Attributes:
        flows: With the columns of `flows.COLUMNS`.
        flowsets: With the columns of `flowsets.COLUMNS`.
    """

    flows: Dataset
    flowsets: Dataset


def analyse(records: Dataset, parameters: Parameters = Parameters(), progress: Callable[..., object] | None = None) -> Analysis:
    """Flows and flowsets of flow records.

    Args:
        records: As `Engine.open` reads them.
        parameters: What is a flow, a cheetah, a flowset.
        progress: Called by compiled code as it goes on; SQL engines do not call it.
    """
    compiled = records.engine.compiled(records, ("flows", "flowsets"), progress, **parameters.rules())
    if compiled is not None:
        return Analysis(compiled["flows"], compiled["flowsets"])
    flows = reconstruct(records, gap=parameters.gap, threshold=parameters.threshold, window=parameters.window)
    flows = flows.materialised()
    sets = flowsets(flows, tau=parameters.tau, rule=parameters.rule, cheetahs_only=parameters.cheetahs_only)
    return Analysis(flows, sets.materialised())
