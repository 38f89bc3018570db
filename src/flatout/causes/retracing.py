"""A tf.function is traced again and again because an argument keeps changing in a way that needs a new graph.

## What it is
A `tf.function` builds one graph for each kind of arguments. For a tensor the kind is its type and shape;
for a Python number, string or object it is the **value**. flatout names the argument that changed, from
what to what, and the line of the call.

## Why it costs
A trace runs the Python body, builds and optimises a graph: milliseconds to seconds, where a call takes
microseconds. On one machine a step with a changing Python number took 9473 µs, with a tensor in its place
708 µs. The old graphs are kept, so memory grows as well.

## How it looks
```python
@tf.function
def step(batch, rate):
    ...

for number, batch in enumerate(dataset):
    step(batch, 0.1 * 0.99**number)        # a new Python float each time: a new trace each time
```

## The cure
```python
for number, batch in enumerate(dataset):
    step(batch, tf.constant(0.1 * 0.99**number))
```
- A changing Python number: pass a tensor or keep it in a `tf.Variable`. `relax-shapes` does not help here.
- A changing shape: `@tf.function(reduce_retracing=True)` or an `input_signature` with `None` dimensions.
  The lever `relax-shapes` does this; reassociated, because a graph for unknown shapes may choose other
  kernels.
- A short last batch: one more trace in the whole run, not one per step. `batch(..., drop_remainder=True)`
  avoids it and is **semantic**: it drops data. Under XLA every new shape also means a new compilation; pad
  or bucket there, or leave XLA off: `no-xla`, reassociated.

## When it is not worth it
Two or three traces at the start are normal: the first call of a function that creates variables traces
twice by design. `for i in tf.range(n)` is one loop in one graph and does not retrace.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import zip_longest

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, Function, Retrace
from flatout.model.evidence.graphs import XlaCompile
from flatout.source.analysis import datasets, loops
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import LOOPS, Bind, Scope, Site
from flatout.source.analysis.syntax import keyword, last_name, loaded_names
from flatout.source.analysis.traced_functions import has_signature, is_tf_function, is_traced, traced
from flatout.source.repairs import Repair, Wrap

FEW = 3
"""Retraces that every program may have: a short last batch, training and evaluation."""
_OBJECT = "Weakref["
"""How TensorFlow writes an argument that is neither a tensor nor a plain value: it is known by its address alone."""
_DTYPE = re.compile(r"(\w+)\[")
_PYTHON = re.compile(r"[^,(){}]+ \(Python \w+\)")
"""How a Python value is written, also one of several in an argument."""
_NOTHING = ("(absent)", "None (Python NoneType)")
"""How an argument is written that is not given."""


def in_run(case: Case) -> Iterator[Finding]:
    yield from _compiled_again(case)
    retraced = [function for function in case.functions if sum(why.count for why in function.why) >= FEW]
    if not retraced:
        return
    total = sum(_retraces(function) for function in retraced)
    cost = queries.tracing_ms(case)
    for function in retraced:
        why = function.why[0]
        yield from queries.finding(
            "retracing",
            case,
            f"{function.name} was traced {function.traces} times{_in_calls(function)}, because {_change(why)}.",
            cost_ms=cost * _retraces(function) / total,
            where=why.where or function.where,
            evidence=[
                queries.number("tracing", cost, "ms", "per step, spent tracing", "hook"),
                queries.number("traces", function.traces, "traces", f"in {function.calls} calls", "hook"),
            ],
            fixes=[_fix(why)],
            estimate="measured by hooks on tracing",
        )


def _fix(why: Retrace) -> Fix:
    if _is_of_context(why):
        return Fix("Call it in the same surroundings each time: the same device, strategy and graph.")
    if (why.before in _NOTHING) != (why.after in _NOTHING):
        return Fix(f"Give {why.argument} in all calls or in none; a tensor of the same kind can stand for nothing.")
    if _PYTHON.findall(why.before) != _PYTHON.findall(why.after):
        return Fix(f"Pass {why.argument} as a tensor, or keep it in a tf.Variable.")
    if _OBJECT in why.after:
        return Fix(f"Pass the same object as {why.argument} each time, and what differs as tensors.")
    before, after = (_DTYPE.findall(text) for text in (why.before, why.after))
    if before != after and len(before) == len(after):
        return Fix(f"Give {why.argument} one dtype in all calls: cast it before the call.", equivalence="precision")
    if len(before) != len(after) and not why.before.endswith("…") and not why.after.endswith("…"):  # cut short
        return Fix(f"Give {why.argument} as many tensors in all calls: pad it, or stack them to a single tensor.")
    return Fix(
        "Allow the shape to vary: reduce_retracing=True, or an input_signature with None.",
        lever="relax-shapes",
        equivalence="reassociated",
    )


def _is_of_context(why: Retrace) -> bool:
    """No argument changed: what TensorFlow holds against each other besides them is the context of the call."""
    return not why.before and not why.after


def _change(why: Retrace) -> str:
    if _is_of_context(why):
        return "the context of its calls changes"
    change = f"{_short(why.before)} → {_short(why.after)}"
    if _OBJECT in why.before and _OBJECT in why.after:
        change = "an object → another one"  # nothing but their addresses is known of them
    return f"its argument {why.argument} changes ({change})"


def _in_calls(function: Function) -> str:
    return f" in {function.calls} calls" if function.calls >= function.traces else ""


def _compiled_again(case: Case) -> Iterator[Finding]:
    """One trace for all shapes, but XLA knows fixed shapes only: it compiles for each of them."""
    for item in case.evidence_of(XlaCompile):
        compiles, steps = item.compiles, item.steps
        if compiles < FEW:
            continue
        yield from queries.finding(
            "retracing",
            case,
            f"XLA compiled {compiles} times in {steps} steady steps: it does so for every shape that it has not seen.",
            cost_ms=item.ms,
            where=case.steps.where if case.steps else None,
            evidence=[item, queries.number("compiles", compiles, "compiles", f"in {steps} steps", "trace")],
            fixes=[
                Fix(
                    "Pad the input to one shape, or to a few (buckets), so that each is compiled once.",
                    equivalence="semantic",
                ),
                Fix("Leave jit_compile off where shapes vary.", lever="no-xla", equivalence="reassociated"),
            ],
            estimate="the calls in which XLA compiles, less what they compute",
        )


def _retraces(function: Function) -> int:
    return sum(why.count for why in function.why)


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────


_ARITHMETIC = ("float", "int", "min", "max", "abs", "round", "pow")


@pattern(
    "python-number",
    nodes=LOOPS,
    words=("range", "enumerate", "trange"),
    needs=("function",),
    of_tensorflow=True,
    seldom=True,
)
def _python_number(loop: ast.For | ast.While, site: Site) -> Iterator[Match]:
    """`for i in range(n): step(batch, i)`, where step is a tf.function of this file."""
    if isinstance(loop, ast.While) or is_traced(site):
        return
    counter = _counter(loop)
    if counter is None or loops.is_short(loop):
        return
    for call, where in loops.calls_in(loop, site.scope):
        made = _tf_function(call, where)
        if made is None or has_signature(made, site.module):
            continue
        first = 1 if made.owner is not None and isinstance(call.func, ast.Attribute) else 0
        pairs = [*zip_longest(made.arguments[first:][: len(call.args)], call.args)]
        for name, given in [*pairs, *((item.arg, item.value) for item in call.keywords)]:
            if _is_number(given, counter, where):
                yield Match(
                    given,
                    f"{ast.unparse(given)[:60]} is a new Python number in each turn, so that "
                    f"{last_name(call.func)} is traced anew each time.",
                    "Pass a tensor: tf.constant(…), or keep it in a tf.Variable.",
                    "reassociated",
                    repair=None
                    if name is None or _needs_number(made, name)
                    else Repair(
                        Wrap("tensorflow.constant"), assumes=f"{last_name(call.func)} needs no Python number there"
                    ),
                )


def _needs_number(made: Scope, name: str) -> bool:
    """Whether an argument is plainly used as a number of Python: a tensor of integers is neither multiplied with one of
    floats, nor an index of a list, nor written into a text."""
    for node in ast.walk(made.node):
        if isinstance(node, (ast.BinOp, ast.Compare)):
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]
            others = [side for side in sides if not (isinstance(side, ast.Name) and side.id == name)]
            whole = all(isinstance(side, ast.Constant) and isinstance(side.value, int) for side in others)
            if len(others) < len(sides) and not whole:
                return True
        elif isinstance(node, (ast.Subscript, ast.FormattedValue)):
            part = node.slice if isinstance(node, ast.Subscript) else node.value
            if name in loaded_names(part):
                return True
    return False


def _counter(loop: ast.For | ast.AsyncFor) -> str | None:
    """The name that holds a Python number: `i` of `range(n)` and of `enumerate(x)`."""
    source = loop.iter
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Name):
        return None
    if source.func.id in ("range", "trange") and isinstance(loop.target, ast.Name):
        return loop.target.id
    if source.func.id == "tqdm" and source.args and isinstance(source.args[0], ast.Call):
        inner = source.args[0]
        if isinstance(inner.func, ast.Name) and inner.func.id == "range" and isinstance(loop.target, ast.Name):
            return loop.target.id
    if source.func.id == "enumerate" and isinstance(loop.target, ast.Tuple):
        first = loop.target.elts[0]
        return first.id if isinstance(first, ast.Name) else None
    return None


def _is_number(node: ast.expr, counter: str, site: Site, far: int = 4) -> bool:
    """Whether an expression is a Python number that changes with the counter: it, or arithmetic on it."""
    return _numeric(node, counter, site, far) and _depends(node, counter, site, far)


def _numeric(node: ast.expr, counter: str, site: Site, far: int) -> bool:
    """Made of plain numbers and the counter by arithmetic and the functions of `math` alone."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    if isinstance(node, ast.Name):
        bound = datasets.binding(node.id, site)
        if node.id == counter:
            return bound is None or bound.how == "for"
        value = _assigned(bound)
        return far > 0 and bound is not None and value is not None and _numeric(value, counter, bound.site, far - 1)
    if isinstance(node, ast.BinOp):
        return all(_numeric(side, counter, site, far) for side in (node.left, node.right))
    if isinstance(node, ast.UnaryOp):
        return _numeric(node.operand, counter, site, far)
    if isinstance(node, ast.Attribute):
        return site.dotted(node) in ("math.pi", "math.e", "numpy.pi", "numpy.e")
    if isinstance(node, ast.Call) and not node.keywords:
        plain = isinstance(node.func, ast.Name) and node.func.id in _ARITHMETIC
        known = plain or site.dotted(node.func).startswith("math.")
        return known and all(_numeric(item, counter, site, far) for item in node.args)
    return False


def _depends(node: ast.expr, counter: str, site: Site, far: int) -> bool:
    for name in loaded_names(node):
        if name == counter:
            return True
        bound = datasets.binding(name, site)
        value = _assigned(bound)
        looped = far > 0 and bound is not None and bound.site.loops
        if looped and bound is not None and value is not None and _depends(value, counter, bound.site, far - 1):
            return True
    return False


def _assigned(bound: Bind | None) -> ast.expr | None:
    """The expression behind `name = expression`."""
    return bound.value if bound is not None and bound.how == "assign" and bound.part is None else None


def _tf_function(call: ast.Call, site: Site) -> Scope | None:
    """The function of this file behind a call, if it is a tf.function under this name."""
    found = site.module.function_of(call.func, site)
    if found is not None:
        decorated = any(is_tf_function(item, site.module) for item in found.decorators)
        return found if decorated and found in traced(site.module).made else None
    if isinstance(call.func, ast.Name):
        bound = datasets.binding(call.func.id, site)
        if bound is not None and isinstance(bound.value, ast.Call) and is_tf_function(bound.value, site.module):
            if keyword(bound.value, "input_signature") is not None or not bound.value.args:
                return None
            return site.module.function_of(bound.value.args[0], bound.site)
    return None


CAUSE = Cause(
    group="graph",
    cures=("relax-shapes", "no-xla"),
    explains=("gpu-idle", "step-overhead"),
    replaces=("compile-bound", "step-overhead/python-between"),
    in_run=in_run,
    patterns=(_python_number,),
)
