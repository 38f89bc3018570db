"""The program calls a profiling, compilation or precision interface that this TensorFlow no longer has.

## What it is
Names that old tutorials use and that later versions removed, renamed or left without effect.

- `tf.profiler.experimental.Profiler`: `tf.profiler.experimental.Profile` or `start` / `stop`
- `tf.function(experimental_compile=True)`: `jit_compile=True` (the old name warns)
- `tf.function(experimental_relax_shapes=True)`: `reduce_retracing=True` (the old name warns)
- `tf.keras.mixed_precision.experimental.set_policy`: `keras.config.set_dtype_policy`
- `tf.train.experimental.enable_mixed_precision_graph_rewrite`: `keras.config.set_dtype_policy`
- `tf.data.experimental.StatsAggregator`, `latency_stats`: `flatout show --view input`
- `options.experimental_optimization.map_vectorization`: batch before map: see `late-batch`
- `tf.contrib.*`, `tf.estimator`: Keras, or a custom loop
- `tf.keras.utils.multi_gpu_model`: `tf.distribute.MirroredStrategy`

## Why it costs
A call that fails ends the program. One that is caught by a `try` or left without effect is worse: the
speed-up that it was meant to bring is simply not there, and nobody notices.

## How it looks
```python
try:
    tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
except AttributeError:
    pass                                   # float32 ever since
```

## The cure
```python
keras.config.set_dtype_policy("mixed_float16")
```
- An edit of the source. What was inactive becomes active: treat it as a new change, with the equivalence of
  that change (here: precision), and measure.

## When it is not worth it
When the program is pinned to an old TensorFlow in which the call still works.
"""

GROUP = "api"
LEVERS = ()
