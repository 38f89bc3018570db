"""The batches of a PyDataset are kept, where they are the same in every epoch.

## What it does
`fit` asks a `keras.utils.PyDataset` (or `Sequence`) for each of its batches anew in every epoch. This lever keeps
what `__getitem__` returned. Some batches of the second epoch are computed again and compared, bit by bit: if they
differ (random augmentation, a new order after each epoch), nothing is kept. At most a third of the free memory is
used; further batches are computed as before. For Keras 3 and tf_keras.

## When it pays
From the second epoch on, where Python code reads or prepares the batches. The trial begins to measure when all of
them are kept.

## What it changes
Exact: the same batches, computed once.

## In the source
```python
class Pictures(keras.utils.PyDataset):
    @functools.lru_cache(maxsize=1024)
    def __getitem__(self, index): ...
```
"""

from __future__ import annotations

from flatout.cures import _pipelines
from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    stages = [stage for pipeline in case.pipelines for stage in pipeline.stages]
    if queries.step_kind(case) != "fit" or not any(
        stage.detail.by_keras and stage.stateful == "python" for stage in stages
    ):
        return "no model is fitted to a PyDataset"
    return _pipelines.no_wait(case)


CURE = Cure(does="keep the batches of the PyDataset", equivalence="exact", side="input", skip=skip, fills=True)
