"""A tf.function is traced again and again because an argument keeps changing in a way that needs a new graph.

## What it is
A `tf.function` builds one graph for each kind of arguments. For a tensor the kind is its type and shape;
for a Python number, string or object it is the **value**. flatout names the argument that changed, from
what to what, and the line of the call.

## Why it costs
A trace runs the Python body, builds and optimises a graph: milliseconds to seconds, where a call takes
microseconds. On one machine a step with a changing Python number took 9473 µs, with a tensor in its place
708 µs. The old graphs are kept, so memory grows as well.

## How it looks
```python
@tf.function
def step(batch, rate):
    ...

for number, batch in enumerate(dataset):
    step(batch, 0.1 * 0.99**number)        # a new Python float each time: a new trace each time
```

## The cure
```python
for number, batch in enumerate(dataset):
    step(batch, tf.constant(0.1 * 0.99**number))
```
- A changing Python number: pass a tensor or keep it in a `tf.Variable`. `relax-shapes` does not help here.
- A changing shape: `@tf.function(reduce_retracing=True)` or an `input_signature` with `None` dimensions.
  The lever `relax-shapes` does this; reassociated, because a graph for unknown shapes may choose other
  kernels.
- A short last batch: one more trace in the whole run, not one per step. `batch(..., drop_remainder=True)`
  avoids it and is **semantic**: it drops data. Under XLA every new shape also means a new compilation; pad
  or bucket there.

## When it is not worth it
Two or three traces at the start are normal: the first call of a function that creates variables traces
twice by design. `for i in tf.range(n)` is one loop in one graph and does not retrace.
"""

GROUP = "graph"
LEVERS = ("relax-shapes",)
