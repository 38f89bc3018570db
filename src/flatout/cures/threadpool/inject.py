"""`threadpool` in a running program: every dataset with functions that the program iterates."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._spec import Hooks
from flatout.cures.threadpool import SETTING, SIZES
from flatout.observe import stages
from flatout.observe.injection import Injection
from flatout.pipeline import iteration, options
from flatout.pipeline.rewriting import Proposal


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    size = int(injection.value or SIZES[0])

    def rewrite(dataset: Any, iterated: iteration.Iterated) -> Proposal | None:
        if stages.from_arrays(dataset) or options.value(dataset, SETTING) == size:
            return None
        if not any(stage._functions() for stage, _ in stages.chain(dataset)):
            return None
        what = f"{size} threads for the pipeline of {stages.location(dataset)}"
        return Proposal(options.changed(dataset, {SETTING: size}), what)

    iteration.rewrite_with(injection, rewrite)


HOOKS = Hooks(tensorflow=on_tensorflow)
