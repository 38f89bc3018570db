"""The program has switched off the rewrites that let tf.data run in parallel and ahead of the step.

## What it is
By default TensorFlow makes stateless maps parallel, fuses `map` with `batch`, adds a prefetch after a
synchronous last stage and tunes buffers and parallelism while it runs. `tf.data.Options` can switch each of
these off, and a small fixed number in the program can take the place of tuning.

## Why it costs
Without the injected prefetch the input and the step take turns instead of overlapping. With 10 ms on each
side, on one machine: 11.1 ms per step by default, 21.8 ms with `inject_prefetch` off, 21.9 ms with
autotuning off.

## How it looks
```python
options = tf.data.Options()
options.autotune.enabled = False                               # copied from an old bug report
options.experimental_optimization.apply_default_optimizations = False
dataset = dataset.map(prepare, num_parallel_calls=1).batch(32).with_options(options)
```

## The cure
Delete the options, and leave the numbers to TensorFlow:
```python
dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).batch(32).prefetch(tf.data.AUTOTUNE)
```
An explicit `prefetch` does nothing harmful where TensorFlow would have added one, and works where the
rewrites must stay off.
- `prefetch`: exact. Elements and their order stay the same.
- `parallel-map`: exact for a stateless function, semantic for one with state.

## When it is not worth it
When the input is a negligible part of the step. Fixed parallelism is sometimes chosen on purpose, to leave
cores to other processes or to bound the memory that buffers may take: then a `ram_budget` in the options
(`options.autotune.ram_budget`) says that better.
"""

GROUP = "input"
LEVERS = ("prefetch", "parallel-map")
