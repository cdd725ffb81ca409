"""Box plots of many values in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

OUTLIERS = 100
"""Maximum number of outliers that a box keeps; others lie between these."""


@dataclass(frozen=True)
class Box:
    """A box plot as Tukey draws it.

    Attributes:
        count: Number of values.
        p25, p50, p75: Quartiles (type 7, as `statistics`).
        whisker_low, whisker_high: The farthest values within 1.5 times the interquartile range of the box.
        outliers: Values beyond the whiskers, in order; of more than `OUTLIERS`, evenly spaced ones with the first and the last.
    """

    count: int
    p25: float
    p50: float
    p75: float
    whisker_low: float
    whisker_high: float
    outliers: list[float]

    @classmethod
    def of(cls, values: npt.NDArray[np.float64]) -> Box:
        """Computes the box of one or more values."""
        ordered = np.sort(values)
        p25, p50, p75 = (float(at) for at in np.quantile(ordered, (0.25, 0.5, 0.75)))
        reach = 1.5 * (p75 - p25)
        is_within = (ordered >= p25 - reach) & (ordered <= p75 + reach)
        within, beyond = ordered[is_within], ordered[~is_within]
        if len(beyond) > OUTLIERS:
            beyond = beyond[np.linspace(0, len(beyond) - 1, OUTLIERS).round().astype(int)]
        return cls(len(ordered), p25, p50, p75, float(within[0]), float(within[-1]), beyond.tolist())
