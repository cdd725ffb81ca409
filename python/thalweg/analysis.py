"""Flows and flowsets in one go: by compiled code where it is there and the records are those of whole files, else by Ibis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .dataset import Dataset
from .flows import reconstruct
from .flowsets import flowsets
from .parameters import Parameters


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
