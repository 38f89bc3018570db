"""The same Python or NumPy value is turned into a tensor again in every step.

## What it is
A call in the loop is given a NumPy array, a list or a constant that does not change: class weights, a mask,
a lookup matrix, an anchor grid. TensorFlow makes a tensor of it each time.

## Why it costs
A conversion copies the data, a list is walked element by element in Python, and on an accelerator the copy
crosses the bus. A large array captured by a `tf.function` becomes a constant in the graph instead: it is
then converted once per trace, but makes the graph large.

## How it looks
```python
anchors = np.load("anchors.npy")           # 20 MB, float64
for images, boxes in dataset:
    step(images, boxes, tf.convert_to_tensor(anchors, tf.float32))
```

## The cure
```python
anchors = tf.constant(np.load("anchors.npy"), tf.float32)      # once, outside the loop
for images, boxes in dataset:
    step(images, boxes, anchors)
```
For data that change from step to step, a `tf.data` pipeline converts ahead of the step and in parallel.
Arrays for `fit` go in whole: `model.fit(array, ...)` slices them in a pipeline of its own. A value that
changes now and then is a `tf.Variable`.
- `hoist-conversion`: exact; an edit of the source, tried as such. `check --fix` makes it where nothing else can write
  to the array: a view of it, another object or another function that holds it makes the repair one to look at first.

## When it is not worth it
For scalars and small arrays the conversion takes microseconds. On the CPU some NumPy arrays are shared
instead of copied, and then there is nothing to save.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.steps import Conversion
from flatout.source.analysis import datasets, escapes, loops
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.quick_look import may_be_given
from flatout.source.analysis.scopes import Bind, Loop, Site
from flatout.source.analysis.syntax import loaded_names, stored_names
from flatout.source.repairs import LeverEdit, Repair


def in_run(case: Case) -> Iterator[Finding]:
    for item in case.evidence_of(Conversion):
        if item.per_step < 0.5 or item.same_again < 0.5:
            continue
        size = item.bytes_per_step
        yield from queries.finding(
            "tensor-reconversion",
            case,
            f"The same array is turned into a tensor again at every step ({size / 2**20:.1f} MiB a step).",
            cost_ms=item.ms,
            where=item.where,
            evidence=[
                queries.number("conversion", item.ms, "ms", "per step, converting", "hook"),
                queries.number(
                    "same",
                    item.same_again,
                    "share",
                    "of the conversions repeat an array",
                    "hook",
                ),
            ],
            fixes=[Fix("Convert it once with tf.constant before the loop and pass the tensor.")],
            estimate="measured by a hook on the conversion",
        )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_MAKES_ARRAYS = ("numpy.", "keras.datasets.", "pandas.")


_CONVERTED = re.compile(r"\b(?:constant|convert_to_tensor)[\s\\]*\([\s\\(]*([^\W\d]\w*)[\s\\)]*[,)]")
_MANY = 50
_CALL = re.compile(r"\(")


def _may_convert_array(code: str) -> bool:
    """Whether what is converted is a name that may be given the result of a call."""
    names = set(_CONVERTED.findall(code))
    return len(names) > _MANY or any(may_be_given(name, code, _CALL) for name in names)


@pattern(
    "same-array-each-turn",
    calls=("constant", "convert_to_tensor"),
    needs=("numpy",),
    may_be_in=_may_convert_array,
    of_tensorflow=True,
)
def _same_array_each_turn(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.constant(table)` in a loop that does not change the table."""
    if site.dotted(call.func) not in ("tensorflow.constant", "tensorflow.convert_to_tensor") or not call.args:
        return
    given = call.args[0]
    if not isinstance(given, ast.Name):
        return
    loop = loops.eager_loop(site)
    if loop is None or loops.is_short(loop) or loops.is_guarded(site, loop) or loops.names_epochs(loop):
        return
    outer = [item for item in site.loops if given.id in loops.target_names(item) | stored_names(item)]
    if outer:
        return
    bound = datasets.binding(given.id, site)
    if bound is None or _changed_in_place(given.id, loop) or not _is_array(bound):
        return
    yield Match(
        call,
        f"The array {given.id} does not change in this loop, but is copied into a new tensor in each turn.",
        "Convert it once, before the loop.",
        repair=Repair(
            LeverEdit("hoist-conversion"),
            safe=escapes.never_escapes(given.id, bound, site),
            assumes=f"nothing in the loop writes to {given.id} by another name",
        ),
    )


def _is_array(bound: Bind) -> bool:
    """Whether a name was plainly given an array: a number or a short list is not reported."""
    if not isinstance(bound.value, ast.Call):
        return False
    made: ast.expr = bound.value
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute):
        if bound.site.dotted(made.func).startswith(_MAKES_ARRAYS):
            return True
        made = made.func.value  # `np.zeros(9).astype(np.float32)`
    return False


def _changed_in_place(name: str, loop: Loop) -> bool:
    for node in ast.walk(loop):
        stores = isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store)
        if stores and name in loaded_names(node.value):  # type: ignore[attr-defined]
            return True
        if (
            (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
            )
            and node.func.value.id == name
            and node.func.attr in ("fill", "sort", "resize", "put", "partition")
        ):
            return True
    return False


CAUSE = Cause(
    group="graph",
    cures=("hoist-conversion",),
    explains=("step-overhead",),
    replaces=("step-overhead/python-between",),
    in_run=in_run,
    patterns=(_same_array_each_turn,),
)
