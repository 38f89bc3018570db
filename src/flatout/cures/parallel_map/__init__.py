"""Lets maps that keep state, or were told to make one call at a time, make several.

## What it does
A `map` without `num_parallel_calls` whose function has state (random operations, Python code, a lookup
table, a variable) gets `num_parallel_calls=tf.data.AUTOTUNE`: TensorFlow makes only stateless maps parallel
by itself. So does a map with `num_parallel_calls=1`. The elements come in their old order.

## When it pays
When such a map decodes, resizes or reads for each element and the machine has cores to spare. Python code
shares one interpreter lock and gains only while it has let go of it (files, sleeping, large numpy
routines). A map that waits needs threads for it as well: combine it with `threadpool`.

## What it changes
**Semantic** for random maps: which element gets which random number depends on the scheduling, so that a
seeded run is no longer repeatable; the distribution stays the same. Python code with state of its own sees
its calls in another order, and several at once. A stateless function gives the same elements.

## In the source
```python
dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
```
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures import _input
from flatout.model.case import Case
from flatout.observe.injection import Injection

EQUIVALENCE = "semantic"
SIDE = "input"


def skip(case: Case) -> str | None:
    serial = any(
        _input.is_map(stage) and (stage.parallelism == "1" or (stage.parallelism is None and stage.stateful))
        for _, _, stage in _input.stages(case)
    )
    return _input.no_wait(case) or (None if serial else "no map is left serial")


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    from flatout.observe import stages
    from flatout.pipeline import iteration, recipes

    calls = int(injection.value) if injection.value else module.data.AUTOTUNE

    def parallel(stage: Any) -> Any:
        """The stage with several calls at once, on an input that is treated alike; None where it is to stay."""
        recipe = recipes.recipe_of(stage)
        if recipe is None or recipe.method != "map" or "keras" in getattr(stage, "_flatout_maker", ""):
            return None
        kept = stages.states(stage)
        serial = stages.kind(stage) == "Map" and kept and not recipe.arguments.get("synchronous")
        if not serial and stages.setting(stage, "_num_parallel_calls") != 1:
            return None
        state = f" ({kept[0]})" if kept else ""
        places.append(f"{stages.place(stage)}{state}")
        before = recipes.upstream(stage)[0]
        inputs = {id(before): recipes.rebuild(before, parallel)}
        return recipes.replay(stage, inputs, {"num_parallel_calls": calls})

    places: list[str] = []

    def rewrite(dataset: Any, _: iteration.Iterated) -> tuple[Any, str] | None:
        places.clear()
        result = recipes.rebuild(dataset, parallel)
        return (result, f"several calls at once in the map at {' and '.join(reversed(places))}") if places else None

    iteration.rewrite_with(injection, rewrite)
