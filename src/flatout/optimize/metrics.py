"""Which direction of a metric is the good one, as its name tells."""

from __future__ import annotations

import re

_LOWER = re.compile(
    r"error|loss|entropy|perplexity|mse|mae|mape|msle|divergence|hinge|poisson|log_?cosh|false|distance", re.I
)


def lower_is_better(metric: str | None) -> bool:
    return bool(metric and _LOWER.search(metric.rpartition(":")[2]))
