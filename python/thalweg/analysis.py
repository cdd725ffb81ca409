"""Computes flows and flowsets in one pass: with compiled code if it is installed and the records are whole files, otherwise with Ibis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .dataset import Dataset
from .flows import reconstruct
from .flowsets import flowsets
from .parameters import Parameters


@dataclass(frozen=True)
class Analysis:
    """Results of the analysis, computed once and kept by the engine.

    Attributes:
        flows: With the columns of `flows.COLUMNS`.
        flowsets: With the columns of `flowsets.COLUMNS`.
    """

    flows: Dataset
    flowsets: Dataset


def analyse(records: Dataset, parameters: Parameters = Parameters(), progress: Callable[..., object] | None = None) -> Analysis:
    """Computes flows and flowsets of flow records.

    Args:
        records: As `Engine.open` reads them.
        parameters: Definitions of flows, elephants and flowsets.
        progress: Called by compiled code as it goes on; SQL engines do not call it.
    """
    compiled = records.engine.compiled(records, ("flows", "flowsets"), progress, **parameters.rules())
    if compiled is not None:
        return Analysis(compiled["flows"], compiled["flowsets"])
    flows = reconstruct(records, gap=parameters.gap, threshold=parameters.threshold, window=parameters.window)
    flows = flows.materialised()
    sets = flowsets(flows, tau=parameters.tau, rule=parameters.rule, elephants_only=parameters.elephants_only)
    return Analysis(flows, sets.materialised())
