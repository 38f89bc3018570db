"""How precisely the parts of a step are known, computed from the single steps of the kept trace.

A part is known from a few dozen traced steps, the step itself from all steps, so the interval of a part is wider. A
case without its trace (only `case.json` was copied) has the parts but not their errors; repeated runs show those too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from flatout.measure.steady import block_length, stationary_blocks
from flatout.model.case import Case
from flatout.model.errors import FlatoutError

RESAMPLES = 300
FEWEST = 5


def part_errors(case: Case, directory: Path) -> dict[str, float]:
    """Standard error of each part in milliseconds; empty without a trace."""
    if case.steps is None or case.steps.split_ms is None or case.logdir is None:
        return {}
    shares = _shares(directory)
    if shares is None:
        return {}
    totals = np.sum(list(shares.values()), axis=0)
    rows = stationary_blocks(len(totals), block_length(totals), RESAMPLES)
    whole = totals[rows].sum(axis=1)
    median = case.steps.ms.median
    return {name: float((values[rows].sum(axis=1) / whole).std(ddof=1)) * median for name, values in shares.items()}


def _shares(directory: Path) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]] | None:
    """Time of each part in each marked step, in the same way as the case was computed."""
    from flatout.observe.reading.graphs import Graphs
    from flatout.observe.reading.recording import load
    from flatout.trace.host_steps import split_steps
    from flatout.trace.xplane import load as load_trace

    recording = load(directory)
    paths = [fact["path"] for fact in recording.all("window-close") if fact.get("path")]
    if not paths or Path(paths[-1]).is_absolute() or ".." in Path(paths[-1]).parts:
        return None
    try:
        split = split_steps(load_trace(directory / paths[-1]), Graphs(recording).pipeline_op_names)
    except (FlatoutError, OSError, KeyError, TypeError, ValueError):
        return None
    if split is None or len(split.start) < FEWEST:
        return None
    span = (split.end - split.start) / split.steps
    usual = span <= 3 * np.median(span)
    return {name: values[usual].astype(np.float64) for name, values in split.parts.items()}
