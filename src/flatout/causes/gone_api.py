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

from __future__ import annotations

import re
from collections.abc import Iterator

from flatout.case import Case, Finding, Fix
from flatout.causes import reading

GROUP = "api"
LEVERS = ()
ENDS_PROGRAM = True

GONE = {
    r"tensorflow\.profiler.*has no attribute 'Profiler'|'Profiler'": (
        "tf.profiler.Profiler",
        "tf.profiler.experimental.start(logdir)",
    ),
    r"'ProfileOptionBuilder'": (
        "tf.profiler.ProfileOptionBuilder",
        "tf.profiler.experimental.ProfilerOptions",
    ),
    r"'jit_scope'|experimental\.jit_scope is not supported": (
        "tf.xla.experimental.jit_scope",
        "tf.function(jit_compile=True)",
    ),
    r"has no attribute 'xla'": ("tf.xla", "tf.function(jit_compile=True)"),
    r"'Session'": ("tf.Session", "tf.function, or tf.compat.v1.Session"),
    r"'ConfigProto'": ("tf.ConfigProto", "tf.config"),
    r"'contrib'": ("tf.contrib", "the core API or an add-on package"),
    r"'placeholder'": ("tf.placeholder", "arguments of a tf.function"),
    r"'fit_generator'": ("Model.fit_generator", "Model.fit"),
    r"'predict_generator'": ("Model.predict_generator", "Model.predict"),
    r"experimental_compile": ("tf.function(experimental_compile=…)", "tf.function(jit_compile=…)"),
    r"experimental_relax_shapes": (
        "tf.function(experimental_relax_shapes=…)",
        "tf.function(reduce_retracing=…)",
    ),
    r"'experimental_run_tf_function'": ("compile(experimental_run_tf_function=…)", "nothing: leave it out"),
    r"enable_mixed_precision_graph_rewrite": (
        "the mixed precision graph rewrite",
        "keras.mixed_precision.set_global_policy",
    ),
    r"'string_input_producer'|'shuffle_batch'|'QueueRunner'": ("input queues", "tf.data"),
}
"""What the exception says, the call that is gone, and what stands in its place."""


def in_run(case: Case) -> Iterator[Finding]:
    for item in case.evidence_of("exception"):
        if item.value not in (
            "AttributeError",
            "TypeError",
            "ImportError",
            "ModuleNotFoundError",
            "ValueError",
            "RuntimeError",
        ):
            continue
        for pattern, (gone, instead) in GONE.items():
            if re.search(pattern, item.note):
                yield from reading.finding(
                    "gone-api",
                    case,
                    f"{gone} {'no longer works' if item.value == 'RuntimeError' else 'does not exist'} "
                    "in this TensorFlow.",
                    cost_ms=None,
                    where=item.where,
                    evidence=[item],
                    fixes=[Fix(f"Use {instead}.", equivalence="semantic")],
                    estimate="the program ended here",
                )
                return
