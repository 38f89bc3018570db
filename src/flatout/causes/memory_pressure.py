"""The program works at the edge of its memory: it swaps, retries, or must use too small a batch.

## What it is
The peak of the device's or the process's memory comes close to the limit. flatout shows which operations
hold the memory at that moment. Source shows one reason of its own: a `GradientTape(persistent=True)`, which
keeps every intermediate result, although it is asked for gradients only once.

## Why it costs
On the host, swapping makes everything slower by orders of magnitude. On a device, an allocation that finds
no room waits and is tried again, convolutions fall back to algorithms with less working space, and at last
the run fails. Choosing a smaller batch to survive leaves the device partly unused.

## How it looks
```python
activations = []
for images, labels in dataset:
    activations.append(model(images))      # every batch's result is kept
    train_step(images, labels)
```

## The cure
Keep nothing that is not needed, then spread the peak:
```python
optimizer = keras.optimizers.Adam(1e-3, gradient_accumulation_steps=4)
dataset = dataset.unbatch().batch(16)      # 4 × 16 instead of 64 at once
```
- `accumulate`: reassociated at the same effective batch; **semantic** with batch normalization, which sees
  the small batches.
- `bf16`, `fp16`: precision, and about half of the activations. `batch-size`: semantic.
- `allocator`: exact; on the host another malloc (tcmalloc, jemalloc) often fragments less.
- Recomputing activations (`tf.recompute_grad`): reassociated, less memory for more arithmetic.

## When it is not worth it
A high peak alone is no fault: memory that is there may be used. Accumulation and recomputing make each
update slower; they pay only where they allow what would not fit otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import constant, keyword, loaded_names
from flatout.source.repairs import DropArgument, Repair

FULL = 0.85


def in_run(case: Case) -> Iterator[Finding]:
    if case.memory is None or not case.memory.limit_bytes:
        return
    used = max(case.memory.process_peak_bytes, 0) / case.memory.limit_bytes
    if used < FULL:
        return
    yield from queries.finding(
        "memory-pressure",
        case,
        f"The process used {used:.0%} of the memory it may have; a little more and it is killed.",
        cost_ms=None,
        where=case.memory.by_op[0].where if case.memory.by_op else None,
        evidence=[
            queries.number("peak", case.memory.process_peak_bytes, "bytes", "of the process", "process"),
            queries.number("limit", case.memory.limit_bytes, "bytes", "of the machine or container", "system"),
        ],
        fixes=[
            Fix(
                "A smaller batch, accumulated gradients, smaller shuffle buffers and caches.",
                lever="accumulate",
                equivalence="reassociated",
            )
        ],
        estimate="not a cost in time until it fails",
    )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_DERIVES = ("gradient", "jacobian", "batch_jacobian")
_ROW_BY_ROW = ("experimental_use_pfor", "parallel_iterations")
"""Arguments with which TensorFlow asks the tape several times, and refuses one that is not persistent."""


@pattern("persistent-tape", nodes=(ast.With,), words=("persistent",), most="low")
def _persistent_tape(node: ast.With, site: Site) -> Iterator[Match]:
    """`GradientTape(persistent=True)` that is asked once only, or inside its own block."""
    for item in node.items:
        call, target = item.context_expr, item.optional_vars
        if not isinstance(call, ast.Call) or not isinstance(target, ast.Name):
            continue
        if not site.dotted(call.func).endswith("GradientTape") or constant(keyword(call, "persistent")) is not True:
            continue
        uses = [use for use in ast.walk(site.scope.node) if isinstance(use, ast.Name) and use.id == target.id]
        asked = [
            (other, where)
            for other, where in site.scope.facts.calls
            if isinstance(other.func, ast.Attribute)
            and isinstance(other.func.value, ast.Name)
            and other.func.value.id == target.id
        ]
        derived = [(other, where) for other, where in asked if other.func.attr in _DERIVES]  # type: ignore[attr-defined]
        deleted = sum(isinstance(use.ctx, ast.Del) for use in uses)
        others = len(uses) - len(asked) - deleted - sum(isinstance(use.ctx, ast.Store) for use in uses)
        if others or sum(isinstance(use.ctx, ast.Store) for use in uses) != 1:
            continue
        if any(keyword(other, name) is not None for other, _ in derived for name in _ROW_BY_ROW):
            continue
        if len(derived) == 1 and derived[0][1].loops == site.loops:
            yield Match(
                call,
                "A persistent tape keeps every intermediate result, and this one is asked for gradients once.",
                "Leave persistent=True out.",
                repair=Repair(DropArgument("persistent"), safe=True),
                report_at=keyword(call, "persistent"),
                confidence="low",  # the results go with the tape, at the end of the step
            )
        else:
            yield from _inside(node, derived)


def _inside(node: ast.With, derived: list[tuple[ast.Call, Site]]) -> Iterator[Match]:
    """Gradients asked for inside the block are recorded as well, unless they are derived again."""
    inside = [(call, site) for call, site in derived if site.withs and site.withs[-1] is node]
    for call, site in inside:
        names = set()
        if isinstance(site.statement, ast.Assign):
            names = {n.id for target in site.statement.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        again = any(names & loaded_names(item) for other, _ in derived if other is not call for item in other.args)
        # What is computed from it inside the block may be derived in turn.
        used = any(isinstance(n, ast.Name) and n.id in names and n.lineno > call.lineno for n in ast.walk(node))
        if names and not again and not used:
            yield Match(
                call,
                "The tape is asked for gradients inside its own block, so that it records their computation too.",
                "Ask it after the block.",
                report_at=call.func,
                confidence="low",
            )
            return


CAUSE = Cause(
    group="hardware",
    cures=("accumulate", "bf16", "fp16", "batch-size", "allocator"),
    in_run=in_run,
    patterns=(_persistent_tape,),
)
