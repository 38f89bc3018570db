"""`autotune` on a dataset: options that switch TensorFlow's tuning off are switched on again."""

from __future__ import annotations

from typing import Any

from flatout.cures.autotune import SWITCHES
from flatout.observe import stages
from flatout.pipeline import options
from flatout.pipeline.rewriting import Context, Proposal


def rewrite(dataset: Any, context: Context) -> Proposal | None:
    return switched_on(dataset)


def switched_on(dataset: Any) -> Proposal | None:
    off = [switch for switch in SWITCHES if options.value(dataset, switch) is False]
    if not off:
        return None
    result = options.changed(dataset, dict.fromkeys(off, True))
    names = " and ".join(switch.removeprefix("experimental_optimization.") for switch in off)
    return Proposal(result, f"{names} switched on again for the pipeline of {stages.location(dataset)}")
