"""Maps before a shuffle move behind it, and behind the batch that follows.

## What it does
`map(to_float).shuffle(n).batch(m)` becomes `shuffle(n).batch(m).map(to_float)`, for stateless maps that give the same
on a batch. The form on batches is compared first, as `vectorize-map` does.

## When it pays
When a map makes elements larger, as bytes to floats does: the shuffle then holds and copies the small form, and the
map is called once for a batch instead of once for an element.

## What it changes
Exact, as compared: a shuffle moves elements whatever they are. A map behind a shuffle can no longer be cached, so
`flatout data tune` also tries a cache in place of this.

## In the source
```python
dataset = dataset.shuffle(2000).batch(64).map(to_float)
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure

CURE = Cure(
    does="map after shuffle and batch",
    equivalence="exact",
    side="input",
    after=("decode-and-crop", "generator-process", "parallel-reads"),
)
