"""A model of throughput for paths on which dynamic parameters dominate (the dissertation, section 5.3, names one and leaves it open).

    log rate = b0 + b1 log streams + b2 log buffers + b3 log RTT + b4 log loss + b5 nothing to send + b6 window closed + ...

Ordinary least squares over the transfers of one path, with prediction intervals by Student's distribution (statsmodels' OLS). Logarithms,
because limits multiply and rates have a long tail: residuals of log rates are closer to normal. Parameters that do not vary on the path are
left out. The aspiration of a transfer is the prediction for its static parameters with idle hosts: with the least load and loss that
the path's transfers have had, so that nothing is extrapolated.

`TooFewError` says how many transfers are missing. At most `SAMPLE` transfers of a path are read, spread evenly by identifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
import numpy.typing as npt
import pandas as pd

from ..dataset import Dataset
from .evidence import MEASURED, numbers
from .peers import PATH
from .verdict import measured

SAMPLE = 5000
"""Maximum number of transfers that a model is fitted to. The error of a coefficient falls with the root of the number; more would not
narrow an interval that single transfers' noise makes."""

PER_PARAMETER, MIN_TRANSFERS = 10, 30
"""Transfers that a model needs for each parameter, and in all: the usual rule for regressions."""

LEVEL = 0.9
"""Level of the intervals."""

MIN_SPREAD = 1e-3
"""Smallest standard deviation of a parameter that can explain rates: a thousandth in logarithms or shares of time. It is also the smallest
part of a parameter that others do not already explain."""

DYNAMIC_PARAMETERS = (
    *("log round-trip time", "log loss", "nothing to send", "receive window closed"),
    *("sender's processor denied", "receiver's processor denied"),
)
"""Parameters that lower rates, as parts of the time. The use of a processor or a disk is none of them: it grows with the rate."""


class TooFewError(ValueError):
    """Too few transfers for a model."""


@dataclass(frozen=True)
class Prediction:
    """A predicted rate.

    Attributes:
        rate_bps: The median prediction.
        lower_bps: Lower end of the interval within which `LEVEL` of transfers with these parameters are.
        upper_bps: Upper end.
    """

    rate_bps: float
    lower_bps: float
    upper_bps: float


class Model:
    """A fitted model of one path."""

    def __init__(self, fitted: Any, names: list[str], idle: dict[str, float], transfers: int) -> None:
        self._fitted = fitted
        self._idle = idle
        self.names = names
        self.transfers = transfers

    @property
    def r_squared(self) -> float:
        """The part of the variance of log rates that the parameters explain."""
        return float(self._fitted.rsquared)

    def coefficients(self) -> dict[str, tuple[float, float, float]]:
        """Returns each coefficient with the ends of its interval of `LEVEL`."""
        ends = np.asarray(self._fitted.conf_int(alpha=1 - LEVEL))
        values = np.asarray(self._fitted.params)
        return {
            name: (float(value), float(low), float(high))
            for name, value, (low, high) in zip(["constant", *self.names], values, ends, strict=True)
        }

    def predict(self, parameters: pd.DataFrame) -> list[Prediction]:
        """Predicts the rates of transfers with the columns of `parameters_of`."""
        design = np.column_stack([np.ones(len(parameters)), *(parameters[name] for name in self.names)])
        frame = self._fitted.get_prediction(design).summary_frame(alpha=1 - LEVEL)
        columns = [np.exp(frame[name].to_numpy()) for name in ("mean", "obs_ci_lower", "obs_ci_upper")]
        return [Prediction(*(float(value) for value in row)) for row in zip(*columns, strict=True)]

    def aspire(self, parameters: pd.DataFrame) -> list[Prediction]:
        """Predicts the rates of the same transfers on idle hosts and an idle path."""
        return self.predict(parameters.assign(**{name: self._idle[name] for name in self.names if name in self._idle}))


def sample(transfers: Dataset, path: tuple[str, str]) -> dict[str, npt.NDArray[np.float64]]:
    """Returns the evidence of at most `SAMPLE` transfers of a path, as `evidence.numbers`."""
    table = transfers.table
    usable = (table["rate_bps"] > 0) & (table["error"] == "") & (table["send_connection_us"] > 0)
    table = table.filter(usable & (table[PATH[0]] == path[0]) & (table[PATH[1]] == path[1]))
    # Identifiers are digests, so that their order is as good as random.
    columns = ("transfer", "application", *MEASURED)
    return numbers(transfers.engine.to_pyarrow(table.select(*columns).order_by(ibis.asc("transfer")).limit(SAMPLE)))


def parameters_of(rows: dict[str, npt.NDArray[np.float64]]) -> pd.DataFrame:
    """Returns the parameters of the model for rows of evidence."""
    parts = measured(rows)
    frame = pd.DataFrame(
        {
            "log streams": np.log(parts["streams"]),
            "log send buffer": np.log(np.maximum(rows["send_window_bytes"], 1)),
            "log receive buffer": np.log(np.maximum(rows["receive_window_bytes"], 1)),
            "log round-trip time": np.log(np.maximum(parts["rtt"], 1)),
            # A segment in a million is no loss.
            "log loss": np.log(parts["loss"] + 1e-6),
        }
    )
    frame["nothing to send"], frame["receive window closed"] = parts["starved"], parts["window_closed"]
    for side, name in (("send", "sender's"), ("receive", "receiver's")):
        frame[f"{name} processor denied"] = parts[f"{side}_wait"] + parts[f"{side}_throttled"]
    return frame


def fit(rows: dict[str, npt.NDArray[np.float64]]) -> Model:
    """Fits the model to rows of evidence of one path.

    Raises:
        TooFewError: If there are too few transfers for the parameters that vary.
        ModuleNotFoundError: If statsmodels is not installed.
    """
    parameters = parameters_of(rows)
    names = _independent(parameters)
    needed = max(MIN_TRANSFERS, PER_PARAMETER * (len(names) + 1))
    if len(parameters) < needed:
        raise TooFewError(f"{len(parameters)} transfers with samples, and a model of {len(names)} parameters needs {needed}")
    from statsmodels.regression.linear_model import OLS

    design = np.column_stack([np.ones(len(parameters)), *(parameters[name] for name in names)])
    fitted = OLS(np.log(rows["rate_bps"]), design).fit()
    idle = {name: float(np.quantile(parameters[name], 0.05)) for name in DYNAMIC_PARAMETERS}
    return Model(fitted, names, idle, len(parameters))


def _independent(parameters: pd.DataFrame) -> list[str]:
    """Returns the parameters that vary, each of them not only together with those before."""
    names: list[str] = []
    if len(parameters) < 2:
        return names
    columns = [np.ones(len(parameters))]
    for name in parameters.columns:
        values = parameters[name].to_numpy(dtype=float)
        spread = float(values.std())
        if spread > MIN_SPREAD:
            design = np.column_stack([*columns, (values - values.mean()) / spread])
            # The smallest singular value of a design of equal scales tells how much of the last column is new.
            if np.linalg.svd(design, compute_uv=False)[-1] > MIN_SPREAD * np.sqrt(len(values)):
                names.append(str(name))
                columns.append(design[:, -1])
    return names
