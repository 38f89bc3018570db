"""A switch meant for debugging is still on and checks, prints or records in every step.

## What it is
`tf.debugging.enable_check_numerics()`, `tf.debugging.experimental.enable_dump_debug_info(...)`,
`tf.data.experimental.enable_debug_mode()`, `tf.debugging.set_log_device_placement(True)`, a `tf.print` or
an assertion in the step, a profiler or a histogram summary for every batch.

## Why it costs
Numeric checks add an operation after every float operation and keep neighbours from being fused. Debug mode
runs the data pipeline in Python, without parallelism. `tf.print` gives a graph an order that it would
otherwise not need and, in a `map`, keeps the map serial. Recording writes to disk while the step waits.

## How it looks
```python
tf.debugging.enable_check_numerics()       # for last month's NaN
tf.data.experimental.enable_debug_mode()
board = keras.callbacks.TensorBoard("logs", histogram_freq=1, update_freq="batch", profile_batch=(1, 10_000))
model.fit(dataset, callbacks=[board])
```

## The cure
Remove the switches; let the recording be sparse:
```python
board = keras.callbacks.TensorBoard("logs", update_freq="epoch", profile_batch=(20, 30))
model.fit(dataset, callbacks=[board])
```
- `no-debug`: exact for the results. What is lost is the check itself: a NaN is no longer caught where it
  arises.

## When it is not worth it
While the fault is being hunted. A cheap check may stay for good: `keras.callbacks.TerminateOnNaN` looks at
the loss only. See `run-eagerly` for the switch that turns off graphs altogether.
"""

GROUP = "graph"
LEVERS = ("no-debug",)
