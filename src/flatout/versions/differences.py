"""What differs between the observed runs of two environments: phases, parts of the step, ops, layers, traces, flags."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from flatout.compare.case_selection import complete
from flatout.compare.change import Change, Outcome
from flatout.compare.comparison import Comparison, compare, part_changes
from flatout.compare.differences import Difference
from flatout.measure.pairs import ratio_of_few
from flatout.measure.processors import others_in
from flatout.measure.race import WORTH
from flatout.model.case import Case, Function, Interval, Op
from flatout.model.evidence.program import ModelCompiled
from flatout.model.evidence.steps import StepStack
from flatout.store.run_summary import Run
from flatout.versions.environments import Environment
from flatout.versions.observation import Observed

MOST_OPS = 8
LEAST_SHARE = 0.02
"""Of the step: an op or a layer that takes less on both sides is not looked at."""
BUSY = 0.1
"""Share of the cores that other programs may have while phases of the run are compared."""
LEAST_SECONDS = 0.3
"""A difference of a phase that is smaller is not told."""


@dataclass(frozen=True)
class Side:
    environment: Environment
    observed: tuple[Observed, ...]
    """The runs in it. Those of both sides took turns."""

    @property
    def cases(self) -> list[Case]:
        return [one.case for one in self.observed]


def observed_comparison(before: Side, after: Side) -> Comparison:
    """By the observed runs alone: the parts of the step, and the facts of both environments."""
    return compare(_runs(before), _runs(after))


def op_changes(found: Comparison, before: Side, after: Side, name: Callable[[Op], str]) -> tuple[Change, ...]:
    """Groups of ops that take another time, beyond the interval; the largest difference first."""
    old, new = ([_grouped(case, name) for case in side.cases] for side in (before, after))
    least = LEAST_SHARE * found.step.before_ms
    names = [key for key in dict.fromkeys(key for one in (*old, *new) for key in one) if key]
    names = [key for key in names if any(one.get(key, 0.0) > least for one in (*old, *new))]
    runs = [
        [replace(run, parts_ms=dict(parts), part_errors={}) for run, parts in zip(side, groups, strict=True)]
        for side, groups in ((found.before, old), (found.after, new))
    ]
    changes = part_changes(names, runs[0], runs[1], found.step, found.machine) if names else ()
    told = [one for one in changes if one.outcome in ("slower", "faster")]
    return tuple(sorted(told, key=lambda one: -abs(one.after_ms - one.before_ms))[:MOST_OPS])


def op_type(op: Op) -> str:
    return op.type


def layer(op: Op) -> str:
    """`gradient_tape/sequential_1/conv2d_1_2/convolution/Conv2D` → `conv2d`, `Adam/add_9` → `adam`.

    Keras 2 and 3 number layers in different ways, so layers of one name count together.
    """
    scopes = [scope for scope in op.name.split("/")[:-1] if scope not in ("gradient_tape", "StatefulPartitionedCall")]
    if not scopes:
        return ""
    scope = scopes[1] if len(scopes) > 1 else scopes[0]
    return re.sub(r"(_\d+)+$", "", scope).lower()


def phase_changes(before: Side, after: Side) -> tuple[Change, ...]:
    """Parts of the run that come before the steps.

    The quickest run of each side counts: the first one in an environment reads its files from the disk. Where other
    programs used the cores, nothing is said: that lengthens imports and traces by any factor.
    """
    asked: tuple[tuple[str, Callable[[Case], float]], ...] = (
        ("importing TensorFlow", _importing),
        ("tracing functions", lambda case: sum(one.trace_ms for one in case.functions)),
        ("the first steps, until they are steady", lambda case: case.steps.warmup_ms if case.steps else 0.0),
    )
    busy = any((others_in(case.evidence) or 0.0) > BUSY for case in (*before.cases, *after.cases))
    found = []
    for name, read in asked:
        old, new = (min(read(case) for case in side.cases) for side in (before, after))
        if old > 0 and new > 0:
            found.append(Change(name, old, new) if busy else _phase(name, old, new))
    return tuple(found)


def _phase(name: str, old: float, new: float) -> Change:
    speedup = ratio_of_few([old], [new])
    share = Interval(1 / speedup.ratio - 1, 1 / speedup.high - 1, 1 / speedup.low - 1)
    outcome: Outcome = "slower" if speedup.high < 1 / WORTH else "faster" if speedup.low > WORTH else "same"
    if abs(new - old) < 1e3 * LEAST_SECONDS:
        outcome = "same"
    return Change(name, old, new, Interval(new - old, old * share.low, old * share.high), share, outcome)


def trace_differences(before: Side, after: Side) -> tuple[Difference, ...]:
    """How often functions were traced, and how many there are."""
    old, new = before.cases[-1].functions, after.cases[-1].functions
    asked: tuple[tuple[str, Callable[[Sequence[Function]], int]], ...] = (
        ("functions that were traced", len),
        ("traces of the same functions again", lambda all: sum(max(one.traces - one.instances, 0) for one in all)),
        ("nodes of the largest graph", lambda all: max((one.nodes for one in all), default=0)),
    )
    rows = [(what, read(old), read(new)) for what, read in asked]
    return tuple(Difference(what, str(a), str(b), "software") for what, a, b in rows if a != b)


def settings_differences(found: Comparison, before: Side, after: Side) -> tuple[Difference, ...]:
    """Flags and variables that differ, and how the models were compiled."""
    flags = [one for one in found.environment if one.level == "settings"]
    old, new = (_compiled(side.cases[-1]) for side in (before, after))
    names = dict.fromkeys((*old, *new))
    told = [
        Difference(name, old.get(name, "(none)"), new.get(name, "(none)"), "settings")
        for name in names
        if old.get(name) != new.get(name) and name in old and name in new
    ]
    return (*flags, *told)


def package_differences(before: Environment, after: Environment) -> tuple[Difference, ...]:
    """All packages whose versions differ; those that decide most come first, those of one side alone last."""
    first = ("tensorflow", "tensorflow-cpu", "keras", "tf-keras", "numpy")
    names = {*before.packages, *after.packages}
    rows = [("Python", before.version, after.version)] if before.version != after.version else []

    def place(name: str) -> tuple[bool, int, str]:
        both = name in before.packages and name in after.packages
        return not both, first.index(name) if name in first else len(first), name

    for name in sorted(names, key=place):
        old, new = (one.packages.get(name, "(none)") for one in (before, after))
        if old != new:
            rows.append((name, old, new))
    return tuple(Difference(*row, "software") for row in rows)


def finding_differences(before: Side, after: Side) -> tuple[Difference, ...]:
    """Causes that every run of one side has, and no run of the other."""
    old, new = ([frozenset(one.cause for one in case.findings) for case in side.cases] for side in (before, after))
    only_old = frozenset.intersection(*old).difference(*new)
    only_new = frozenset.intersection(*new).difference(*old)
    rows = [Difference(cause, "found", "", "software") for cause in sorted(only_old)]
    return (*rows, *(Difference(cause, "", "found", "software") for cause in sorted(only_new)))


def _runs(side: Side) -> list[Run]:
    runs = [complete(one.case, one.directory) for one in side.observed]
    numpy = side.environment.packages.get("numpy", "")
    return [replace(run, facts={**run.facts, "numpy": numpy}) for run in runs]


def _grouped(case: Case, name: Callable[[Op], str]) -> Mapping[str, float]:
    """Milliseconds of a step by group of ops."""
    found: Counter[str] = Counter()
    for op in case.ops:
        found[name(op)] += op.self_ms  # type: ignore[assignment]
    return found


def _importing(case: Case) -> float:
    """Milliseconds until TensorFlow was imported. From 2.16 on that includes Keras."""
    seconds = case.environment.get("tensorflow_import_seconds")
    return 1e3 * float(seconds) if isinstance(seconds, (int, float)) else 0.0


def _compiled(case: Case) -> dict[str, str]:
    """How the models were compiled."""
    found: dict[str, str] = {}
    for stack in case.evidence_of(StepStack):
        values = {
            "run_eagerly": stack.run_eagerly,
            "steps_per_execution": stack.steps_per_execution,
            "jit_compile": stack.jit_compile,
            "precision policy": stack.policy,
        }
        found |= {name: str(value) for name, value in values.items() if value is not None}
    if not found:
        for one in case.evidence_of(ModelCompiled):
            found |= {"jit_compile": str(one.jit_compile)} if one.jit_compile is not None else {}
    return found
