"""GPU memory is allocated as needed instead of all at once.

## What it does
Calls `tf.config.experimental.set_memory_growth` for every GPU before the program uses one.

## When it pays
When several programs share a GPU. It makes no step faster by itself; it may cost a little where memory grows while
steps run.

## What it changes
Nothing: exact.

## In the source
```python
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    if not queries.gpus_in_use(case):
        return "the program uses no GPU"
    growth = (case.environment.get("tensorflow") or {}).get("memory_growth") or {}
    return "memory growth is already on" if growth and all(growth.values()) else None


CURE = Cure(does="allocate GPU memory as needed", equivalence="exact", side="runtime", skip=skip, by_default=False)
