"""The program has switched off the rewrites that let tf.data run in parallel and ahead of the step.

## What it is
By default TensorFlow makes stateless maps parallel, fuses `map` with `batch`, adds a prefetch after a
synchronous last stage and tunes buffers and parallelism while it runs. `tf.data.Options` can switch each of
these off, and a small fixed number in the program can take the place of tuning. Old versions of TensorFlow do
not make maps parallel by themselves: `flatout check --extend-select autotune-off/no-parallel-calls` shows maps
that ask for no parallel calls.

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
- `autotune`: exact; gives back what the options have switched off.
- `prefetch`: exact. Elements and their order stay the same.
- `parallel-map`: exact for a stateless function, semantic for one with state.

## When it is not worth it
When the input is a negligible part of the step. Fixed parallelism is sometimes chosen on purpose, to leave
cores to other processes or to bound the memory that buffers may take: then a `ram_budget` in the options
(`options.autotune.ram_budget`) says that better.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, Where
from flatout.source import context
from flatout.source.analysis import consequence, datasets
from flatout.source.analysis.call_summary import CallSummary
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Scope, Site
from flatout.source.analysis.syntax import argument, constant, keyword, last_name, takes_unknown
from flatout.source.repairs import PARALLEL_CALLS, DeleteStatement, Repair

SWITCHES = {
    "autotune.enabled": "autotuning",
    "experimental_optimization.apply_default_optimizations": "the default rewrites",
    "experimental_optimization.map_parallelization": "the parallelising of maps",
    "experimental_optimization.inject_prefetch": "the injected prefetch",
}


def in_run(case: Case) -> Iterator[Finding]:
    wait = queries.input_ms(case)
    if queries.share(case, wait) < queries.INPUT_MATTERS:
        return
    for pipeline in case.pipelines:
        off = [label for key, label in SWITCHES.items() if pipeline.options.is_off(key)]
        where = pipeline.options.where
        if not off or not where:
            continue  # Keras sets options of its own on datasets that it makes
        # A stage that would stay serial anyway (Python, random state) is not cured by switching this on again.
        hot = queries.hot_stage(case)
        if hot is not None and hot.stage.stateful is not None:
            continue
        yield from queries.finding(
            "autotune-off",
            case,
            f"The step waits for a pipeline whose options switch off {' and '.join(off)}.",
            cost_ms=wait,
            where=_assignment(where[0], where[1]) or context.where(*where),
            evidence=[queries.number("input-wait", wait, "ms", "a step waits for its input", "trace")],
            fixes=[Fix("Leave autotuning and the default optimizations on.", lever="prefetch")],
            estimate="the wait that the trace shows",
        )
        return


def _assignment(file: str, line: int) -> Where | None:
    """The line that switches it off, rather than the one that hands the options over."""
    for key in SWITCHES:
        found = context.assignment_line(file, key.rpartition(".")[2], before=line)
        if found is not None:
            return context.where(file, found)
    return None


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

OFF = {
    "autotune.enabled": "autotuning",
    "experimental_optimization.autotune": "autotuning",
    "experimental_optimization.apply_default_optimizations": "the default rewrites",
    "experimental_optimization.map_parallelization": "the parallelising of maps",
    "experimental_optimization.map_and_batch_fusion": "the fusion of map and batch",
    "experimental_optimization.inject_prefetch": "the injected prefetch",
}


@pattern("switched-off", nodes=(ast.Assign,), words=("autotune", "experimental_optimization"))
def _switched_off(node: ast.Assign, site: Site) -> Iterator[Match]:
    """`options.autotune.enabled = False`"""
    target = node.targets[0]
    if len(node.targets) != 1 or not isinstance(target, ast.Attribute) or constant(node.value) is not False:
        return
    written = ast.unparse(target)
    name = next((name for name in OFF if written.endswith(f".{name}")), None)
    if name is not None and _is_of_pipelines(target, site):
        explained = consequence.is_explained(site, node.lineno) or "private_threadpool_size" in site.module.text
        yield Match(
            node,
            f"tf.data runs without {OFF[name]}: input and step take turns where they could overlap.",
            "Delete the line; tf.data decides well by itself.",
            repair=Repair(
                DeleteStatement(), safe=not explained, assumes="what the line was written for no longer holds"
            ),
            confidence="low" if explained else "high",
        )


def _is_of_pipelines(target: ast.Attribute, site: Site) -> bool:
    """Whether the options are those of tf.data, and not settings of the program with an `autotune` of their own."""
    holder = target.value.value if isinstance(target.value, ast.Attribute) else target.value
    if last_name(target.value) != "autotune":
        return True  # no other library has `experimental_optimization`
    bound = datasets.binding(holder.id, site) if isinstance(holder, ast.Name) else None
    if bound is not None and isinstance(bound.value, ast.Call):
        return "options" in last_name(bound.value.func).lower()
    return "opt" in last_name(holder).lower()


@pattern("no-parallel-calls", calls=("map",), on_dataset=True, default=False, default_below=(2, 7))
def _no_parallel_calls(call: ast.Call, site: Site) -> Iterator[Match]:
    """Any map without num_parallel_calls. TensorFlow 2.7 makes stateless ones parallel by itself; older ones do not."""
    if not isinstance(call.func, ast.Attribute) or site.dotted(call.func) or takes_unknown(call) or not call.args:
        return
    if argument(call, 1, "num_parallel_calls") is None and datasets.before(call, site).certain:
        first = site.module.once(_first_map, site.scope)
        yield Match(
            call,
            "This map asks for no parallel calls; TensorFlow before 2.7 then runs it on one core.",
            "Add num_parallel_calls=tf.data.AUTOTUNE.",
            repair=_autotuned(site),
            report_at=call.args[0],
            confidence="medium"
            if site.module.version < (2, 7) and call.lineno == first and _is_work(call, site)
            else "low",
        )


def _first_map(scope: Scope) -> int:
    return min(call.lineno for call, _ in scope.facts.calls if last_name(call.func) == "map")


@pattern("one-at-a-time", calls=("map", "interleave"), words=("num_parallel_calls",))
def _one_at_a_time(call: ast.Call, site: Site) -> Iterator[Match]:
    """`.map(prepare, num_parallel_calls=1)`"""
    if constant(keyword(call, "num_parallel_calls")) != 1:
        return
    done = datasets.Stage(last_name(call.func), call, site).function
    state = datasets.draws_at_random(done) or datasets.runs_python(done)
    yield Match(
        call,
        "num_parallel_calls=1 keeps this stage on one core and takes it away from autotuning.",
        "Give it tf.data.AUTOTUNE.",
        repair=_autotuned(site, done.known and state is None),
        equivalence="exact" if state is None else "semantic",
        confidence="low" if consequence.is_explained(site, call.lineno) or _takes_turns(done) else "high",
    )


def _takes_turns(done: CallSummary) -> bool:
    """Whether the stage takes from a queue, which hands out one thing at a time."""
    return any("dequeue" in last_name(inner.func) for _, inner, _ in done.calls)


def _is_work(call: ast.Call, site: Site) -> bool:
    """Whether the function reads or decodes: what does less is not worth several cores."""
    done = datasets.Stage("map", call, site).function
    if datasets.draws_at_random(done) is not None:
        return False  # serial-stateful-map reports it
    return datasets.decodes(done) or done.first("tensorflow.io.read_file", "tensorflow.image.resize") is not None


def _autotuned(site: Site, pure: bool = False) -> Repair:
    known = site.module.is_pinned and site.module.version >= (2, 4)
    return Repair(PARALLEL_CALLS, safe=pure and known, assumes="calls of the function may run at the same time")


CAUSE = Cause(
    group="input",
    cures=("autotune", "prefetch", "parallel-map"),
    explains=("input-bound",),
    replaces=("late-batch", "uncached-prefix"),
    in_run=in_run,
    patterns=(_switched_off, _no_parallel_calls, _one_at_a_time),
)
