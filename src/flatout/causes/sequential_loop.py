"""A loop in the graph does one after another what a single operation could do at once.

## What it is
`for i in tf.range(n)`, `tf.while_loop`, `tf.map_fn` or `tf.scan` over rows, where no round needs the result
of the one before. It is **not** a retrace per round: the loop is traced once, as one loop operation.

## Why it costs
Every round pays for the dispatch of its small operations and for reading and writing a `TensorArray`, and
the kernels see one row at a time. On one machine a loop took 1618 µs and its vectorised form 284 µs. On an
accelerator each round also launches its own small kernels.

## How it looks
```python
@tf.function
def normalise(rows):
    result = tf.TensorArray(tf.float32, size=tf.shape(rows)[0])
    for i in tf.range(tf.shape(rows)[0]):
        result = result.write(i, rows[i] / tf.norm(rows[i]))
    return result.stack()
```

## The cure
```python
@tf.function
def normalise(rows):
    return rows / tf.norm(rows, axis=1, keepdims=True)
```
`tf.vectorized_map` does this for many functions of one row; `tf.map_fn(..., parallel_iterations=...)` is
still a loop.
- An edit of the source: reassociated. The sum inside a reduction may be taken in another order.
- `xla` can make the body of a true recurrence cheaper: reassociated, and slower for some programs.

## When it is not worth it
When a round needs the result of the last one (recurrent networks, sampling, simulation), or when all rows
at once would not fit in memory. A loop of few rounds with large bodies costs nothing worth mentioning.
"""

GROUP = "graph"
LEVERS = ("xla",)
