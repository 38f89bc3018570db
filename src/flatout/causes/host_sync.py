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
- An edit of the source: exact. No lever does this: only the author knows
  where the value is needed.

A loop that takes the elements of a tensor one by one waits in every turn. Reading the tensor once, above the loop, is
exact, and `read-once` writes it.

## When it is not worth it
When the step is long and the device queue is never more than one step deep anyway, or when a decision
depends on the value at once (line search, early abort on NaN). Checking every tenth step is often enough.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.steps import HostSync
from flatout.source import context
from flatout.source.analysis import loops
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import FUNCTIONS, LOOPS, Loop, Site
from flatout.source.analysis.syntax import last_name, loaded_names, nested_calls
from flatout.source.analysis.traced_functions import is_traced, traced

EVERY_STEP = 0.5
MANY = 4
"""Pulls a step on one line: a loop goes through a tensor."""


def in_run(case: Case) -> Iterator[Finding]:
    pulls = [_usual(item) for item in case.evidence_of(HostSync) if item.where]
    pulls = [item for item in pulls if item.per_step >= EVERY_STEP]
    by_function: dict[tuple[str | None, str | None], list[HostSync]] = defaultdict(list)
    for item in pulls:
        if item.where is not None:
            by_function[(item.where.file, item.where.function)].append(item)
    for items in by_function.values():
        items.sort(key=lambda item: -item.ms)
        pulling, working = _lines(case, items)
        waiting = max(sum(item.ms for item in items), queries.lines_ms(case, pulling))
        work = queries.lines_ms(case, working)
        calls = sum(item.per_step for item in items)
        yield from queries.finding(
            "host-sync",
            case,
            f"Values are pulled from TensorFlow into Python {queries.times_a_step(calls)}"
            + (f", on {len(items)} lines" if len(items) > 1 else "")
            + "; each pull waits for the device and copies."
            + (" Python then works on them while nothing computes." if work > waiting else ""),
            cost_ms=waiting + work,
            where=items[0].where,
            evidence=[
                *(
                    queries.number("pull", item.ms, "ms", "per step on this line", "hook", item.where)
                    for item in items[:3]
                ),
                *([queries.number("work", work, "ms", "on the values pulled", "sampling")] if work else []),
            ],
            fixes=_fixes(items),
            estimate="measured by hooks on .numpy() and similar calls, and by sampling the lines that pull",
        )


def _fixes(items: list[HostSync]) -> list[Fix]:
    later = Fix("Keep metrics in tensors and read them every hundred steps, or compute them inside the step.")
    if not any(item.per_step >= MANY for item in items):
        return [later]
    return [Fix("Read the whole tensor once, before the loop that takes its elements.", "read-once"), later]


def _usual(item: HostSync) -> HostSync:
    """With what it costs a usual step: pulls of an evaluation between two epochs are no cost of a step."""
    if item.usual is None or not item.per_step:
        return item
    part = min(item.usual / item.per_step, 1.0)
    return replace(item, ms=item.ms * part, per_step=item.usual)


def _lines(case: Case, items: list[HostSync]) -> tuple[set[queries.Line], set[queries.Line]]:
    """Lines that pull, with the heads of the loops around them up to that of the steps; lines that work on the values.

    Going through a tensor in Python costs more than the pull of each value: a slice is dispatched for every turn.
    """
    stepping = queries.stepping_lines(case)
    pulling: set[queries.Line] = set()
    for item in items:
        if item.where is None or item.where.file is None or item.where.line is None:
            continue
        pulling.add((item.where.file, item.where.line))
        for loop in context.enclosing_loops(item.where.file, item.where.line):
            if any(file == item.where.file and loop.line <= (line or 0) <= loop.end for file, line in stepping):
                break
            pulling.add((item.where.file, loop.line))
    working: set[queries.Line] = {
        (file, line)
        for file in {file for file, _ in pulling if file}
        for line in context.numpy_work_on(file, frozenset(line for other, line in pulling if other == file and line))
    }
    return pulling - stepping, working - pulling - stepping


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_WORDS = ("GradientTape", "apply_gradients", "train_step", "distributed_train_step", "training_step", "train_batch")
_ON_HOST = ("iterations", "step", "global_step", "epoch", "learning_rate", "lr", "_decayed_lr")
"""Counters, which live on the host anyway."""
_BATCH_HOOKS = ("on_train_batch_end", "on_batch_end", "on_train_batch_begin", "on_batch_begin")
_HEAVY = ("predict", "evaluate", "save", "save_weights")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DISPLAYS = ("print", "set_description", "set_description_str", "set_postfix", "set_postfix_str", "info")
_FEW = 500
"""Steps that a run makes in seconds."""


@pattern("pull-every-step", nodes=LOOPS, words=("numpy", "float", "print"), among=_WORDS, seldom=True)
def _pull_every_step(loop: ast.For | ast.While, site: Site) -> Iterator[Match]:
    """`.numpy()`, `float(loss)` or `print(loss)` in each turn of a loop whose turns are training steps."""
    if (
        loops.is_short(loop, 16, site)
        or loops.names_epochs(loop)
        or not loops.is_step_loop(loop, site.scope)
        or is_traced(site)
    ):
        return
    results = _results(loop, site)
    pulls: list[ast.Call] = []
    shown: list[bool] = []
    begins = _step_begins(loop, site)
    stepping = [set(at.arms) for step, at in loops.direct_calls(loop, site.scope) if loops.makes_step(step, at)]
    for call, where in _calls_of_turn(loop, site):
        if call.lineno < begins:
            continue  # before the step, to choose what it works on: an action of a policy
        guarded = loops.is_guarded(where, loop) and not any(set(where.arms) <= arms for arms in stepping)
        if not guarded and _pulls(call, where, loop, results):
            pulls.append(call)
            shown.append(_is_shown(call, where))
    if pulls:
        pulls.sort(key=lambda call: (call.lineno, call.col_offset))
        more = f" ({len(pulls)} times)" if len(pulls) > 1 else ""
        yield Match(
            pulls[0],
            f"A value is read back from the device after every step{more}, and Python waits for it.",
            "Keep it as a tensor (a keras.metrics.Mean, a list of tensors) and read it every hundred steps.",
            # Where Python dispatches each operation, that is the cost, and reported as such.
            confidence="low"
            if _has_tape(loop, site) or _steps_eagerly(loop, site) or _few(loop, site) or all(shown)
            else "high",
        )


@pattern("image-every-step", calls=("histogram", "image", "audio"), words=("summary",), seldom=True)
def _image_every_step(call: ast.Call, site: Site) -> Iterator[Match]:
    """Images or histograms written to the summary in each step."""
    if site.dotted(call.func).startswith("tensorflow.summary.") and _in_each_step(site):
        yield Match(
            call,
            f"tf.summary.{last_name(call.func)} writes in every step, and the step waits for it.",
            "Write it every hundred steps.",
            "semantic",
            report_at=call.func,
        )


@pattern("scalar-every-step", calls=("scalar",), words=("summary",), default=False)
def _scalar_every_step(call: ast.Call, site: Site) -> Iterator[Match]:
    """Scalars written to the summary in each step: cheap, but not free."""
    if site.dotted(call.func).startswith("tensorflow.summary.") and _in_each_step(site):
        yield Match(
            call,
            "tf.summary.scalar writes in every step.",
            "Write it every ten or hundred steps.",
            "semantic",
            report_at=call.func,
        )


@pattern("callback-every-batch", nodes=FUNCTIONS, words=_BATCH_HOOKS)
def _callback_every_batch(node: ast.FunctionDef, site: Site) -> Iterator[Match]:
    """A callback that predicts, evaluates or saves after every batch."""
    if node.name not in _BATCH_HOOKS or not site.scope.is_class:
        return
    bases = getattr(site.scope.node, "bases", ())
    if not any("allback" in last_name(base) for base in bases):
        return
    method = site.scope.method(node.name)
    for call, where in method.facts.calls if method is not None else ():
        if last_name(call.func) in _HEAVY and not where.arms and "model" in ast.unparse(call.func):
            yield Match(
                call,
                f"The callback calls {last_name(call.func)} after every batch.",
                "Do it every some hundred batches, or in on_epoch_end.",
                "semantic",
                report_at=call.func,
            )


def _calls_of_turn(loop: ast.For | ast.While, site: Site) -> list[tuple[ast.Call, Site]]:
    """Calls in each turn, also those of a comprehension: `[value.numpy() for value in losses.values()]`."""
    return [
        (call, where)
        for call, where in loops.calls_in(loop, site.scope)
        if all(isinstance(inner, _COMPREHENSIONS) for inner in where.loops[where.loops.index(loop) + 1 :])
    ]


def _is_shown(call: ast.Call, site: Site) -> bool:
    """Whether the loss is printed and no more: the next step waits for it, but it was to be read."""
    statement = site.statement.value if isinstance(site.statement, ast.Expr) else None
    return isinstance(statement, ast.Call) and last_name(statement.func) in _DISPLAYS and call in ast.walk(statement)


def _few(loop: Loop, site: Site) -> bool:
    """Whether the loops around make some hundred steps in all, by their own numbers or by a `break`."""
    all_turns = loops.all_turns(site.inside(loops=(*site.loops, loop)))
    return (all_turns is not None and all_turns <= _FEW) or loops.breaks_after(loop, site) <= _FEW


def _has_tape(loop: Loop, site: Site) -> bool:
    return any(last_name(call.func) == "GradientTape" for call, _ in loops.direct_calls(loop, site.scope))


def _steps_eagerly(loop: Loop, site: Site) -> bool:
    """Whether all steps of a loop are functions of this file that nothing traces."""
    steps = [(call, at) for call, at in loops.direct_calls(loop, site.scope) if loops.makes_step(call, at)]
    made = [site.module.function_of(call.func, at) for call, at in steps]
    return bool(made) and all(scope is not None and scope not in traced(site.module) for scope in made)


def _step_begins(loop: Loop, site: Site) -> int:
    """The line of the first tape or call of a step in a loop."""
    return min(
        (
            call.lineno
            for call, where in loops.direct_calls(loop, site.scope)
            if last_name(call.func) == "GradientTape" or loops.makes_step(call, where)
        ),
        default=0,
    )


def _in_each_step(site: Site) -> bool:
    if any("record_if" in ast.unparse(item.context_expr) for around in site.withs for item in around.items):
        return False  # written now and then
    if "record_if" in site.module.text or "should_record_summaries" in site.module.text:
        return False
    loop = loops.eager_loop(site)
    return loop is not None and not loops.is_guarded(site, loop) and loops.is_step_loop(loop, site.scope)


def _results(loop: Loop, site: Site) -> set[str]:
    """Names that hold what a step of this loop gave."""
    names = set()
    for name, binds in site.scope.facts.binds.items():
        for bind in binds:
            value = bind.value.value if isinstance(bind.value, ast.Subscript) else bind.value
            if loop not in bind.site.loops or bind.how != "assign" or not isinstance(value, ast.Call):
                continue
            if loops.makes_step(value, bind.site) and last_name(value.func) != "train_on_batch":
                names.add(name)
    for name, binds in site.scope.facts.binds.items():
        for bind in binds:  # `total += loss`
            if bind.how == "augment" and loop in bind.site.loops and isinstance(bind.value, ast.Name):
                names |= {name} if bind.value.id in names else set()
    return names


def _pulls(call: ast.Call, site: Site, loop: Loop, results: set[str]) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "numpy" and not call.args:
        value = call.func.value
        if isinstance(value, ast.Call) and loops.makes_step(value, site):
            return True  # `train_step(batch).numpy()`
        if loaded_names(value) & _through(site, loop, _given(loop, site)) or (
            isinstance(value, ast.Attribute) and value.attr in _ON_HOST
        ):
            return False
        called = value.func if isinstance(value, ast.Call) else value
        return last_name(called) not in _ON_HOST
    if isinstance(call.func, ast.Name) and call.func.id in ("float", "print") and call.args:
        if any(last_name(inner.func) == "numpy" for item in call.args for inner in nested_calls(item)):
            return False  # counted by itself
        if any(loops.makes_step(inner, site) for item in call.args for inner in nested_calls(item)):
            return last_name(call.func) == "float"  # `float(train_step(batch))`
        return bool(set().union(*(loaded_names(item) for item in call.args)) & _through(site, loop, results))
    return False


def _through(site: Site, loop: Loop, names: set[str]) -> set[str]:
    """With what a comprehension takes from them: `for name, value in losses.items()`."""
    for inner in site.loops[site.loops.index(loop) + 1 :]:
        source = loops.iterated(inner)
        if source is not None and loaded_names(source) & names:
            names = names | loops.target_names(inner)
    return names


def _given(loop: Loop, site: Site) -> set[str]:
    """What comes from the dataset is on the host already: the targets of the loop, and what is unpacked from them."""
    names = loops.target_names(loop)
    for name, binds in site.scope.facts.binds.items():
        for bind in binds:
            value = bind.value
            taken = isinstance(value, (ast.Name, ast.Subscript)) and loaded_names(value) & names and not _calls(value)
            drawn = isinstance(value, ast.Call) and last_name(value.func) in ("next", "get_next")
            if loop in bind.site.loops and (taken or drawn):
                names = names | {name}
    return names


def _calls(value: ast.expr) -> bool:
    """`step(batch)[0]` is not a part of the batch."""
    return next(nested_calls(value), None) is not None


CAUSE = Cause(
    group="graph",
    cures=("read-once",),
    explains=("gpu-idle", "launch-bound", "step-overhead"),
    replaces=("step-overhead/python-between",),
    in_run=in_run,
    patterns=(_pull_every_step, _image_every_step, _scalar_every_step, _callback_every_batch),
)
