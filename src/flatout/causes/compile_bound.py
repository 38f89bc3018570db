"""Traces and compilations take a good part of the run.

## What it is
The first call of a `tf.function` traces it, optimizes the graph and, with `jit_compile`, compiles it with XLA. All
of it is done again in each process.

## Why it costs
Tracing takes time for each op that Python makes: loops of Python are unrolled into thousands of them. XLA takes seconds
to minutes for a large graph. In a short run that is more than the steps it speeds up.

## How it looks
```python
@tf.function
def step(x):
    for _ in range(2000):           # 2000 copies in the graph
        x = layer(x)
    return x
```

## The cure
```python
@tf.function
def step(x):
    for _ in tf.range(2000):        # one loop in the graph
        x = layer(x)
    return x
```
Trace large functions once; see `retracing` where they are traced again. For XLA, the flag
`TF_XLA_FLAGS=--tf_xla_persistent_cache_directory=DIR` keeps what was compiled from one process to the next.

## When it is not worth it
When a run of full length is hours: it is paid once.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._run_parts import of_run, seconds
from flatout.causes._spec import Cause
from flatout.model.case import Case, Finding, Fix

OF_RUN = 0.15
OWN = (2.0, 0.4)
"""Seconds, and the share of what the imports took: traces of functions of the user's own that are worth a finding. A
second or two is what every program has, and more on a machine on which the imports took long, too."""
OF_LIBRARIES = (15.0, 2.0)
"""The same where a library traces its own function, as Keras does in `fit`: some seconds are what every model costs."""


def in_run(case: Case) -> Iterator[Finding]:
    parts = case.run.of("tracing") if case.run is not None else []
    whole = sum(part.seconds for part in parts)
    if case.run is None or whole < OF_RUN * case.run.seconds:
        return
    own = sum(part.seconds for part in parts if part.where is not None)
    least, of_imports = OWN if own > 0.5 * whole else OF_LIBRARIES
    if whole < max(least, of_imports * case.run.seconds_of("import")):
        return
    part = next((one for one in parts if one.where is not None), parts[0])
    if part.seconds < 0.5 * whole:
        part = parts[0]
    jit = any(one.jit_compile for one in case.functions)
    advice = "Write its Python loops as tf.while_loop or tf.range, and trace it with one signature."
    if jit:
        advice = "Keep compiled code: TF_XLA_FLAGS=--tf_xla_persistent_cache_directory=DIR; or compile less of it."
    yield from of_run(
        "compile-bound",
        case,
        f"Traces and first calls took {seconds(whole)}, `{part.name}` {seconds(part.seconds)} of it.",
        whole,
        part.where or (case.steps.where if case.steps is not None else None),
        [Fix(advice, equivalence="reassociated" if not jit else "exact")],
    )


CAUSE = Cause(group="run", in_run=in_run)
