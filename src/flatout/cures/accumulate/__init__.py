"""A batch is taken in several smaller ones, whose gradients are summed before the weights change.

## What it does
Divides the batches of a Keras `fit` by its setting (`accumulate=4`) and gives the optimizer
`gradient_accumulation_steps`, so that as many samples as before make one update.

## When it pays
When a batch does not fit into memory. It saves the activations of all but one part; it is rarely faster.

## What it changes
**Semantic**, if little: the mean of the parts' gradients is that of the batch, summed in another order, but
batch normalisation sees the smaller parts, and Keras moves a schedule of the learning rate on with each part, so
that it runs ahead. Tried only when it is asked for.

## In the source
```python
model.compile(optimizer=keras.optimizers.Adam(gradient_accumulation_steps=4), loss="mse")
model.fit(features, targets, batch_size=64)        # instead of 256
```
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from flatout.model import queries as reading
from flatout.model.case import Case, Equivalence
from flatout.observe.injection import Injection

EQUIVALENCE: Equivalence = "semantic"
SIDE = "compute"
CONFLICTS = ("batch-size",)
UNASKED = False


def skip(case: Case) -> str | None:
    return None if reading.step_kind(case) == "fit" else "the steps are not those of a Keras fit"


def values(case: Case) -> Sequence[str]:
    return ("2", "4")


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    from flatout.cures import _batches

    _batches.resize_datasets(injection, lambda size: _part(injection, size))


def on_keras(injection: Injection, module: ModuleType) -> None:
    from flatout.cures import _batches
    from flatout.observe.private_names import patch

    _batches.resize_arrays(injection, "fit", lambda size: _part(injection, size))

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def compile(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            optimizer = self.optimizer
            if getattr(optimizer, "gradient_accumulation_steps", 0) is None and not optimizer.built:
                optimizer.gradient_accumulation_steps = _parts(injection)
            else:
                injection.note("an optimizer does not accumulate: it is smaller batches that are measured")
            return result

        return compile

    patch("compile", wrap)


def _parts(injection: Injection) -> int:
    return max(int(injection.value or 2), 2)


def _part(injection: Injection, size: int) -> int | None:
    """Only a batch that divides evenly: parts of unequal size would not weigh the same."""
    return size // _parts(injection) if size % _parts(injection) == 0 else None
