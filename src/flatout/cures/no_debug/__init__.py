"""Switches that were left on from debugging stay off.

## What it does
Lets these calls do nothing: `tf.config.run_functions_eagerly(True)`, `tf.debugging.enable_check_numerics()`,
`tf.debugging.experimental.enable_dump_debug_info(…)`, `tf.data.experimental.enable_debug_mode()`,
`tf.debugging.set_log_device_placement(True)`.

## When it pays
Whenever one of them is on: the first turns each `tf.function` back into Python, the next two add an operation
behind every other, debug mode runs the input in Python, and the last writes a line for each operation.

## What it changes
Reassociated: functions that ran eagerly run in a graph, and neighbours that a check kept apart may be fused.
What is lost is the check itself: a NaN is no longer caught where it arises, and nothing is dumped.

## In the source
Delete the line that switches it on.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._compiling import place
from flatout.model.case import Case, Equivalence
from flatout.observe.injection import Injection

EQUIVALENCE: Equivalence = "reassociated"
SIDE = "host"

SWITCHES = (
    ("config", "run_functions_eagerly"),
    ("config", "experimental_run_functions_eagerly"),
    ("debugging", "enable_check_numerics"),
    ("debugging", "set_log_device_placement"),
    ("debugging.experimental", "enable_dump_debug_info"),
    ("data.experimental", "enable_debug_mode"),
)
"""Public functions, left out where the program finds them: `tf.<holder>.<name>`."""


def skip(case: Case) -> str | None:
    names = {f"tf.{path}.{name}" for path, name in SWITCHES}
    on = [item for item in case.evidence_of("switch") if item.value in names and "False" not in item.data["given"]]
    return None if on else "no debugging switch is on"


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    for path, name in SWITCHES:
        holder: Any = module
        for part in path.split("."):
            holder = getattr(holder, part, None)
        original = getattr(holder, name, None)
        if original is not None:
            setattr(holder, name, _left_out(injection, f"tf.{path}.{name}", original))


def _left_out(injection: Injection, label: str, original: Any) -> Any:
    def switch(*args: Any, **kwargs: Any) -> Any:
        if any(value is False for value in (*args, *kwargs.values())):
            return original(*args, **kwargs)  # the program switches it off itself
        injection.changed(f"{label} left out{place()}")
        return _Writer() if name == "enable_dump_debug_info" else None

    name = label.rpartition(".")[2]
    switch.__name__ = name
    switch.__doc__ = original.__doc__
    switch.__module__ = getattr(original, "__module__", switch.__module__)
    switch.__wrapped__ = original  # type: ignore[attr-defined]
    return switch


class _Writer:
    """Stands for the writer of debug events; whatever it is asked to write, it does not."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None
