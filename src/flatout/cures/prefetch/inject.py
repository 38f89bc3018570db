"""`prefetch` in a running program: every dataset that the program iterates gets one."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._spec import Hooks
from flatout.cures.prefetch.dataset import prefetched
from flatout.observe import stages
from flatout.observe.injection import Injection
from flatout.pipeline import iteration, recipes
from flatout.pipeline.rewriting import Proposal


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    def rewrite(dataset: Any, iterated: iteration.Iterated) -> Proposal | None:
        return None if stages.from_arrays(dataset) else prefetched(dataset, recipes.replay)

    iteration.rewrite_with(injection, rewrite)


HOOKS = Hooks(tensorflow=on_tensorflow)
