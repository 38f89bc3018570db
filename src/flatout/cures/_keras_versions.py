"""What versions of Keras do differently in the methods that cures write."""

from __future__ import annotations

import re

from flatout.model.case import Case

RESETS_SINCE = (3, 15)
"""Keras before this version adds metrics up over the calls for single batches."""


def that_adds_metrics_up(case: Case) -> str:
    """The version, where `train_on_batch` and `test_on_batch` return metrics of all batches so far. Nothing where they
    return those of their batch."""
    version = str(case.environment.get("keras_version") or "")
    return version if version and tuple(map(int, re.findall(r"\d+", version)[:2])) < RESETS_SINCE else ""
