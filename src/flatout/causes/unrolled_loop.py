"""A Python loop inside a tf.function was unrolled into a graph with a copy of its body for every round.

## What it is
`for i in range(n)` over a **Python** range, list or array runs while tracing. Each round adds its
operations to the graph. A loop over a tensor (`tf.range(n)`) or a data set becomes one loop operation
instead.

## Why it costs
Tracing and optimising the graph grow with n, as does its memory, and XLA compiles all of it. The start
takes seconds to minutes. A different n is a different graph and means a new trace. The steps themselves may
run well: unrolled rounds that do not depend on each other can even run in parallel.

## How it looks
```python
@tf.function
def roll_out(state):
    for _ in range(500):                   # 500 copies of the cell in the graph
        state = cell(state)
    return state
```

## The cure
```python
@tf.function
def roll_out(state):
    for _ in tf.range(500):                # one loop, one copy
        state = cell(state)
    return state
```
Values that change shape or type between rounds need `tf.autograph.experimental.set_loop_options`; lists
become a `tf.TensorArray`. Where the rounds do not depend on each other, one operation over all of them is
best.
- An edit of the source: reassociated.

## When it is not worth it
For short loops (a few layers, a few heads) unrolling is what one wants: no loop overhead, more room for
parallelism. A graph loop in its turn costs some dispatch in each round: see `sequential-loop`.
"""

GROUP = "graph"
LEVERS = ()
