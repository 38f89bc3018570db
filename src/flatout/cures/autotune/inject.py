"""`autotune` in a running program: every dataset that the program iterates gets its tuning back."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._spec import Hooks
from flatout.cures.autotune.dataset import switched_on
from flatout.observe import stages
from flatout.observe.injection import Injection
from flatout.pipeline import iteration
from flatout.pipeline.rewriting import Proposal


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    def rewrite(dataset: Any, iterated: iteration.Iterated) -> Proposal | None:
        return None if stages.from_arrays(dataset) else switched_on(dataset)

    iteration.rewrite_with(injection, rewrite)


HOOKS = Hooks(tensorflow=on_tensorflow)
