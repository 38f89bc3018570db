"""`parallel-map` in a running program: the serial maps of every dataset that the program iterates."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._spec import Hooks
from flatout.cures.parallel_map.dataset import serial_maps, with_calls
from flatout.observe.injection import Injection
from flatout.pipeline import iteration, recipes
from flatout.pipeline.rewriting import Proposal


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    calls = int(injection.value) if injection.value else int(module.data.AUTOTUNE)

    def rewrite(dataset: Any, iterated: iteration.Iterated) -> Proposal | None:
        found = [stage for stage in serial_maps(dataset) if "keras" not in getattr(stage, "_flatout_maker", "")]
        return Proposal(*with_calls(dataset, found, lambda stage: calls, recipes.replay)) if found else None

    iteration.rewrite_with(injection, rewrite)


HOOKS = Hooks(tensorflow=on_tensorflow)
