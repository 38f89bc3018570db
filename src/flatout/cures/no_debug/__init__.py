"""Debugging switches that were left on stay off.

## What it does
Makes these calls do nothing: `tf.config.run_functions_eagerly(True)`, `tf.debugging.enable_check_numerics()`,
`tf.debugging.experimental.enable_dump_debug_info(…)`, `tf.data.experimental.enable_debug_mode()`,
`tf.debugging.set_log_device_placement(True)`.

## When it pays
Whenever one of them is on: the first runs each `tf.function` as Python, the next two add an operation behind every
other, debug mode runs the input in Python, and the last writes a line for each operation.

## What it changes
Reassociated: functions that ran eagerly run in a graph, and neighbours that a check kept apart may be fused. What is
lost is the check itself: a NaN is no longer caught where it arises, and nothing is dumped.

## In the source
Delete the line that switches it on.
"""

from __future__ import annotations

from flatout.cures import _frozen
from flatout.cures._spec import Cure
from flatout.model.case import Case
from flatout.model.evidence.program import Switch

SWITCHES = {
    "config.run_functions_eagerly": True,
    "config.experimental_run_functions_eagerly": True,
    "debugging.set_log_device_placement": True,
    "debugging.enable_check_numerics": False,
    "debugging.experimental.enable_dump_debug_info": False,
    "data.experimental.enable_debug_mode": False,
}
"""Functions of `tf`, and whether they switch by their argument (True) or by being called."""
TRACES = ("config.run_functions_eagerly", "config.experimental_run_functions_eagerly")
"""Those without which functions are traced that ran as Python."""


def skip(case: Case) -> str | None:
    names = {f"tf.{name}" for name in SWITCHES}
    on = [item for item in case.evidence_of(Switch) if item.name in names and not item.is_off]
    return None if on else "no debugging switch is on"


def by_hand(case: Case, value: str) -> str:
    return _frozen.told(_frozen.of_traced, case)


CURE = Cure(does="switch debugging off", equivalence="reassociated", side="host", skip=skip, by_hand=by_hand)
