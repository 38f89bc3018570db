"""The program reads a value back from the device in every step and waits for it.

## What it is
`.numpy()`, `float(loss)`, `print(loss)`, `if loss < best:` or a Python-side metric inside the loop. Each
needs the number now, so Python waits until everything the number depends on has been computed.

## Why it costs
On an accelerator, operations are queued and Python runs ahead, preparing the next step while this one
computes. Reading a value back drains the queue: the device idles while Python catches up, in every step. On
the CPU the loss is small, because most operations have finished when their call returns.

## How it looks
```python
history = []
for batch in dataset:
    loss = step(batch)
    history.append(loss.numpy())           # waits for the device each time
    if history[-1] < best:
        best = history[-1]
```

## The cure
Keep tensors as tensors, and read them once in a while:
```python
total = tf.Variable(0.0)
for number, batch in enumerate(dataset):
    total.assign_add(step(batch))
    if number % 100 == 99:
        print(float(total) / 100)
        total.assign(0.0)
```
`keras.metrics.Mean` keeps its state on the device; `history.append(loss)` without `.numpy()` keeps the
tensor. In Keras `fit`, a callback that overrides `on_train_batch_end` makes `fit` wait for the logs of each
batch.
- An edit of the source: exact. No lever does this: where the value goes is the program's own business.

## When it is not worth it
When the step is long and the device queue is never more than one step deep anyway, or when a decision
depends on the value at once (line search, early abort on NaN). Checking every tenth step is often enough.
"""

GROUP = "graph"
LEVERS = ()
