"""`vectorize-map` in a running program: every dataset that the program iterates, compared on its own data."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._spec import Hooks
from flatout.cures.vectorize_map.dataset import on_batches
from flatout.observe import stages
from flatout.observe.injection import Injection
from flatout.pipeline import iteration
from flatout.pipeline.rewriting import Proposal


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    def rewrite(dataset: Any, iterated: iteration.Iterated) -> Proposal | None:
        if stages.from_arrays(dataset):
            return None
        found = on_batches(dataset, again=False, may_round=True)
        for text in (*found.left_alone, *found.rounded):
            injection.note(text)
        return found.proposal

    iteration.rewrite_with(injection, rewrite)


HOOKS = Hooks(tensorflow=on_tensorflow)
