"""Maps with state, or with `num_parallel_calls=1`, make several calls at once.

## What it does
A `map` without `num_parallel_calls` whose function has state (random operations, Python code, a lookup table, a
variable) gets `num_parallel_calls=tf.data.AUTOTUNE`: TensorFlow makes only stateless maps parallel by itself. So does
a map with `num_parallel_calls=1`. The elements keep their order.

## When it pays
When such a map decodes, resizes or reads for each element and the machine has cores to spare. Python code shares one
interpreter lock and gains only while that is released (files, sleeping, large NumPy routines). A map that waits needs
threads for it as well: combine it with `threadpool`.

## What it changes
**Semantic** for random maps: which element gets which random number depends on the scheduling, so that a seeded run
is no longer repeatable; the distribution stays the same. Python code with state of its own sees its calls in another
order, and several at once. A stateless function gives the same elements.

## In the source
```python
dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
```
"""

from __future__ import annotations

from flatout.cures import _pipelines
from flatout.cures._spec import Cure
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    serial = any(
        _pipelines.is_map(stage) and (stage.parallelism == "1" or (stage.parallelism is None and stage.stateful))
        for _, _, stage in _pipelines.stages(case)
    )
    return _pipelines.no_wait(case) or (None if serial else "no map is left serial")


CURE = Cure(
    does="run calls of map in parallel",
    equivalence="semantic",
    side="input",
    # A map that works on whole batches is the one to make parallel.
    after=("vectorize-map",),
    skip=skip,
)
