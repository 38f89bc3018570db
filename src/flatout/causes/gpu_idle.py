"""The GPU stands idle for a large part of each step, waiting for the host to give it work.

## What it is
In the trace there are gaps between kernels in which no stream of the device computes or copies. flatout
adds the gaps up and looks at what the host was doing meanwhile.

## Why it costs
The gaps are time paid for and not used. There are four usual reasons, and each has a page: the host
prepares data (`input-bound`), dispatches operations one by one from Python (`eager-step`), waits for a
value (`host-sync`), or the kernels are too short to cover the pauses between steps (`step-overhead`).

## How it looks
```python
for paths, labels in dataset:
    images = np.stack([read_image(p.numpy()) for p in paths])    # the GPU has nothing to do here
    loss = train_step(images, labels)
    print(float(loss))                                           # and waits for the host here
```

## The cure
Move the preparation into a pipeline that runs ahead of the step, and read values back seldom:
```python
for number, (images, labels) in enumerate(dataset.map(load).batch(64).prefetch(tf.data.AUTOTUNE)):
    loss = train_step(images, labels)
    if number % 100 == 0:
        print(float(loss))
```
- `prefetch`, `cache`: exact, for gaps that wait for input. `free-input` tells how much these can bring at
  most.
- `function`, `steps-per-execution`: reassociated, for gaps that wait for Python.
- `xla`: reassociated, fewer and larger kernels. `batch-size`: **semantic**, more work per kernel.

## When it is not worth it
Gaps at the start (tracing, compilation, allocation) are paid once. A small model may not be able to fill a
large GPU at all; a smaller GPU, or several runs side by side, is then the better use of money.
"""

GROUP = "hardware"
LEVERS = ("prefetch", "cache", "function", "steps-per-execution", "xla", "batch-size", "free-input")
