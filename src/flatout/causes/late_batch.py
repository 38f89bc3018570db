"""A cheap function is mapped over single elements where one call per batch would do.

## What it is
`map` comes before `batch`, so the function runs once per element, although its operations work on a whole
batch just as well.

## Why it costs
Each call of a map function costs some microseconds of dispatch, whatever it computes. With a tiny function
that is all of the cost: on one machine 26.3 µs per element mapped singly against 2.05 µs mapped after the
batch. Parsing shows the same: 49 µs for `parse_single_example` against 5.7 µs per element for
`parse_example` on batches. TensorFlow fuses `map` and `batch` into one stage, which saves a handover but
not the calls.

## How it looks
```python
dataset = (
    tf.data.TFRecordDataset(files)
    .map(lambda record: tf.io.parse_single_example(record, features))
    .map(lambda row: (row["pixels"] / 255.0, row["label"]))
    .batch(256)
)
```

## The cure
```python
dataset = (
    tf.data.TFRecordDataset(files)
    .batch(256)
    .map(lambda records: tf.io.parse_example(records, features))
    .map(lambda rows: (rows["pixels"] / 255.0, rows["label"]))
)
```
- `vectorize-map`: exact for elementwise functions; flatout compares the elements of both forms before it
  calls the change a cure. A reduction over all axes, a shape computed from one element or a random draw per
  element means something else on a batch.

## When it is not worth it
When the function does heavy work per element (decoding, resizing), the dispatch does not show. Elements of
different shapes cannot be batched before they have been brought to one shape.
"""

GROUP = "input"
LEVERS = ("vectorize-map",)
