"""Files that are read one after the other are read several at a time.

## What it does
Turns a reader of several files (`TFRecordDataset(files)`, `flat_map` or a serial `interleave` over files) into an
`interleave` with parallel calls, of up to eight files.

## When it pays
When a single stream from disk or from a network does not deliver enough.

## What it changes
Records come in another order. Behind a shuffle the program has asked for no particular one, and the elements are
compared as a multiset. Elsewhere the change is semantic and has to be allowed.

## In the source
```python
dataset = files.interleave(tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=tf.data.AUTOTUNE)
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure

CURE = Cure(does="read several files at a time", equivalence="exact", side="input", after=("forward",))
