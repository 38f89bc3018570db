"""The steps are so short that starting them takes longer than computing them.

## What it is
Between two steps the program returns to Python: callbacks, metrics, the progress bar, the next call. With a
small model or a small batch that pause is longer than the step's own work.

## Why it costs
The pause is about the same for each step, whatever the step computes, so small steps pay it most often. On
one machine a Keras `fit` with a small batch took 2394 µs per step, and 1094 µs with eight steps per call.

## How it looks
```python
model.compile(optimizer="adam", loss="mse")
model.fit(features, targets, batch_size=16, epochs=10)     # 0.4 ms of computing, 2 ms of everything else
```

## The cure
```python
model.compile(optimizer="adam", loss="mse", steps_per_execution=16)
model.fit(features, targets, batch_size=16, epochs=10)
```
In a custom loop, let the traced function take several batches: `for batch in dataset.take(16)` inside a
`tf.function` becomes a loop in the graph.
- `steps-per-execution`: reassociated; the same updates in the same order. Callbacks and logs come once per
  call instead of once per step.
- `xla` fuses small operations into fewer kernels: reassociated. Measure it, it can be slower.
- `batch-size`: **semantic**. A larger batch is another training recipe; the learning rate usually has to
  follow.

## When it is not worth it
When steps take tens of milliseconds, the pause does not show. When a callback must act after each step,
grouping steps changes what it sees.
"""

GROUP = "graph"
LEVERS = ("steps-per-execution", "xla", "batch-size")
