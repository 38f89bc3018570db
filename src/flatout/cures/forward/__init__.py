"""Filters and takes move towards the source, so that less is computed for elements that are dropped.

## What it does
Moves a filter before a stateless map if everything the filter reads passes through that map unchanged. Moves a take
before maps, prefetches and caches in memory.

## When it pays
When a filter drops many elements behind an expensive map. A take before a cache also lets the cache become complete:
a cache that is never read to its end is never used.

## What it changes
Exact: the same elements in the same order.

## In the source
```python
dataset = dataset.filter(is_wanted).map(decode)
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure

CURE = Cure(does="filter and take earlier in the pipeline", equivalence="exact", side="input", after=("tidy",))
