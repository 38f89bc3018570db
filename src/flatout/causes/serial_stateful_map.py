"""A map function with state keeps the whole map serial, although the machine has cores to spare.

## What it is
TensorFlow runs a **stateless** `map` in parallel by itself, even where the program asks for nothing. It
leaves a map serial when its function has state: random operations, `tf.py_function` or `tf.numpy_function`,
a captured `tf.Variable` or lookup table, `tf.print`.

## Why it costs
One such operation decides for the whole function. An image pipeline that decodes, resizes and then flips at
random does all of it on one core.

## How it looks
```python
def prepare(record):
    image = tf.io.decode_jpeg(record, channels=3)              # expensive and stateless
    image = tf.image.resize(image, (160, 160))
    return tf.image.random_brightness(image, max_delta=0.2)    # cheap, random: the map becomes serial

dataset = dataset.map(prepare).batch(32)
```

## The cure
Either take the state out, and TensorFlow makes the expensive part parallel by itself:
```python
dataset = dataset.map(decode_and_resize).batch(32).map(random_brightness)
```
or draw with a stateless operation (`tf.image.stateless_random_brightness` with a seed per element, for
instance from `tf.data.Dataset.random`), or allow the parallel run although there is state:
```python
dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
```
- Splitting the function: exact for the stateless part; random numbers are then drawn per batch.
- `parallel-map` (the last form): **semantic**. Which element gets which random number depends on the
  scheduling, so a seeded run is no longer repeatable. The distribution stays the same.
- `cache` after the stateless part: exact.

## When it is not worth it
When the function is cheap next to the step, or when the run must be repeatable to the bit. A Python
function is bound by the interpreter lock and gains little: see `python-in-pipeline`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.source.analysis import datasets, loops, programs
from flatout.source.analysis.call_summary import CallSummary
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, constant, loaded_names, takes_unknown
from flatout.source.repairs import PARALLEL_CALLS, Repair


def in_run(case: Case) -> Iterator[Finding]:
    hot = queries.hot_stage(case)
    if hot is None or "Map" not in hot.stage.name or hot.stage.stateful in (None, "python") or not hot.serial:
        return
    if hot.stage.detail.by_keras:
        return
    yield from queries.finding(
        "serial-stateful-map",
        case,
        f"The step waits for a map that keeps state ({hot.stage.stateful}), so it runs one element at a time.",
        cost_ms=hot.wait_ms,
        where=hot.stage.where,
        evidence=queries.wait_evidence(case, hot),
        fixes=[
            Fix(
                "Give the map num_parallel_calls=tf.data.AUTOTUNE; the order of the random draws changes.",
                lever="parallel-map",
                equivalence="semantic",
            ),
            Fix(
                "Draw from stateless random ops with a per-element seed: parallel and reproducible.",
                equivalence="semantic",
            ),
        ],
        estimate="the wait that the trace shows",
    )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_PARALLEL = Repair(PARALLEL_CALLS, assumes="the draws may come in another order")


@pattern(
    "random-map",
    calls=("map",),
    written=r"random|Random|print|sample_distorted",
    on_dataset=True,
    often_in=programs.feeds_training,
)
def _random_map(call: ast.Call, site: Site) -> Iterator[Match]:
    """A map without num_parallel_calls whose function draws random numbers, prints, or augments with Keras layers."""
    if not isinstance(call.func, ast.Attribute) or site.dotted(call.func) or takes_unknown(call):
        return
    if argument(call, 1, "num_parallel_calls") is not None or not call.args:
        return
    stage = datasets.Stage("map", call, site)
    done = stage.function
    if not done.known or datasets.runs_python(done) is not None:
        return
    drawn = datasets.draws_at_random(done)
    if drawn is not None:
        why = f"{drawn[0].replace('tensorflow', 'tf')} draws random numbers"
    elif (printed := done.first("tensorflow.print")) is not None and not printed[2].arms:
        why = "tf.print is in it"
    elif _random_layers(done):
        why = "random Keras layers keep the state of their generator"
    else:
        return
    if drawn is not None and _only_if_asked(drawn[2], call):
        return
    chain = datasets.before(call, site)
    few = chain.last("take")
    if chain.certain:
        yield Match(
            call,
            f"TensorFlow keeps this map on one core, because {why}.",
            "Add num_parallel_calls=tf.data.AUTOTUNE, or draw with stateless ops; see the page on repeatability.",
            "semantic",
            repair=_PARALLEL,
            report_at=call.args[0],
            confidence="low"
            if (few is not None and loops.number(few.call.args[0], few.site) is not None)
            or _matters_little(chain, site)
            else "high",
        )


def _matters_little(chain: datasets.Chain, site: Site) -> bool:
    """Whether it gets whole batches, for which one call draws at once, or data of a test, which run once."""
    targets = site.statement.targets if isinstance(site.statement, ast.Assign) else []
    written = " ".join(ast.unparse(target) for target in targets)
    behind_batch = chain.last("batch", "padded_batch") is not None and "unbatch" not in chain.names()
    return behind_batch or re.search(r"(^|[\W_])test([\W_]|\d|$)", written, re.IGNORECASE) is not None


def _only_if_asked(drawn: Site, call: ast.Call) -> bool:
    """Whether it draws only under a flag that is off unless it is given: `def prepare(image, randomize=False)`."""
    given = getattr(drawn.scope.node, "args", None)
    if not drawn.arms or not isinstance(given, ast.arguments) or isinstance(call.args[0], (ast.Call, ast.Lambda)):
        return False
    named = (*given.posonlyargs, *given.args)
    off = {item.arg for item, value in zip(reversed(named), reversed(given.defaults), strict=False) if _is_off(value)}
    tests = {name for test, _ in drawn.arms if isinstance(test, ast.If) for name in loaded_names(test.test)}
    return bool(off & tests)


def _is_off(value: ast.expr) -> bool:
    return constant(value) in (False, None)


def _random_layers(done: CallSummary) -> bool:
    """`augment(images, training=True)`, where augment is a model or layer of the file with Random… layers."""
    for name, call, site in done.calls:
        if name.startswith("keras.layers.Random"):
            return True
        if name or not isinstance(call.func, ast.Name):
            continue
        bound = datasets.binding(call.func.id, site)
        if bound is not None and bound.value is not None and bound.how == "assign":
            made = [node for node in ast.walk(bound.value) if isinstance(node, ast.Call)]
            if any(bound.site.dotted(node.func).startswith("keras.layers.Random") for node in made):
                return True
    return False


CAUSE = Cause(
    group="input",
    cures=("parallel-map", "cache"),
    explains=("gpu-idle", "input-bound", "uncached-prefix"),
    replaces=("oversized-buffer/epoch-start",),
    in_run=in_run,
    patterns=(_random_map,),
)
