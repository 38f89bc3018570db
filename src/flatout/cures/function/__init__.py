"""An eager training step, or an eager call of a model, is traced into a graph.

## What it does
Finds the Python function around the step while the program runs and hands its calls to a `tf.function` made
of the same code. The first two calls run eagerly: they create the variables and show what the function gives
back, so that a Python float stays one. `function=parts` traces the calls of models, losses and optimizers
one by one instead, for a step that stands in no function of its own.

## When it pays
When Python and dispatch take a good part of the step: small and medium models, many layers, many variables.

## What it changes
Reassociated: the same operations, which a graph may fuse and reorder; losses agree to rounding. Ops that draw
random numbers without a seed of their own draw others in a graph. What a trace cannot hold is looked for
first (prints, lists that grow, attributes that are set, exceptions that are caught, numbers of NumPy), and a
function that has any of it is left as it is. So is one whose tracing fails.

## In the source
```python
@tf.function(reduce_retracing=True)
def train_step(images, labels):
    ...
```
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from flatout.model import queries as reading
from flatout.model.case import Case, Equivalence
from flatout.observe.injection import Injection
from flatout.source import context, side_effects, users_code

EQUIVALENCE: Equivalence = "reassociated"
SIDE = "host"
CONFLICTS = ("free-compute",)
SEVERAL = True

PARTS = "parts"
MOST_SEARCHES = 8
_EAGER = ("apply", "tape", "model")


def skip(case: Case) -> str | None:
    kind = reading.step_kind(case)
    if kind in ("fit", "predict", "evaluate"):
        return f"the steps are those of Keras' own {kind}; no-run-eagerly is the lever for it"
    if kind not in _EAGER:
        return "the steps already run in a graph"
    if any(
        item.value == "tf.config.run_functions_eagerly" and "False" not in item.data.get("given", ())
        for item in case.evidence_of("switch")
    ):
        return "tf.config.run_functions_eagerly(True) switches every tf.function off; no-debug is the lever for it"
    return None


def values(case: Case) -> Sequence[str]:
    """The outermost function that is called once a step, the innermost, one that calls a model elsewhere, the parts."""
    steps, calls = (_fitting(_candidates(stacks)) for stacks in (_stacks(case), _stacks_of_calls(case)))
    return tuple(dict.fromkeys([*steps[:1], *steps[-1:], *[place for place in calls if place not in steps][:1], PARTS]))


def _fitting(found: Iterable[tuple[str, int]]) -> list[str]:
    return [f"{file}:{line}" for file, line in found if not side_effects.reason_against(file, line)]


def _candidates(stacks: Iterable[list[list[Any]]]) -> list[tuple[str, int]]:
    """Functions on the way to the step, outermost first, that do not themselves hold the loop over the steps."""
    found: list[tuple[str, int]] = []
    for stack in stacks:
        inner: list[tuple[str, int]] = []
        for depth, (file, line, name, first) in enumerate(stack):
            if name.startswith("<") or _in_loop(file, line, name, depth):
                break
            inner.append((file, first))
        found += [place for place in reversed(inner) if place not in found]
    return found


def _in_loop(file: str, line: int, name: str, depth: int) -> bool:
    """Whether the line repeats within its function; a comprehension counts where it calls on towards the step."""
    loop = context.innermost_loop(file, line)
    if loop is not None and loop.in_function == name:
        return True
    module = context.tree(file) if depth else None
    return module is not None and any(
        isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp))
        and node.lineno <= line <= (node.end_lineno or node.lineno)
        for node in ast.walk(module)
    )


def _stacks(case: Case) -> Iterator[list[list[Any]]]:
    for item in case.evidence_of("step-stack"):
        yield item.data.get("stack") or []
    if reading.step_kind(case) != "model":
        for item in sorted(case.evidence_of("eager-tape"), key=lambda tape: -float(tape.value or 0)):
            yield item.data.get("stack") or []


def _stacks_of_calls(case: Case) -> Iterator[list[list[Any]]]:
    """Where models are called eagerly, once a step at least: an agent plays before it learns."""
    steps = case.steps.count if case.steps is not None else 0
    for item in case.evidence_of("stream"):
        if item.value == "model" and float(item.data["count"]) >= steps:
            yield item.data["stack"]


# ── in the program ───────────────────────────────────────────────────────────────────────────────────────────────


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    if injection.value != PARTS:
        _watch(injection, "tape-gradient")


def on_keras(injection: Injection, module: ModuleType) -> None:
    from flatout.cures import _parts

    if injection.value == PARTS:
        _parts.trace_models(injection, "model-call")
        _parts.trace_losses(injection, "loss-call")
        _parts.trace_updates(injection, "apply")
        return
    for key in ("apply", "model-call"):
        _watch(injection, key)


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    from flatout.cures import _parts

    if injection.value == PARTS:
        _parts.trace_models(injection, "legacy-model-call")
        _parts.trace_legacy_updates(injection, "legacy-apply")
        return
    for key in ("legacy-apply", "legacy-model-call"):
        _watch(injection, key)


class _Search:
    """Looks for the function to trace among the callers of an eager tape, optimizer or model."""

    def __init__(self, injection: Injection) -> None:
        from tensorflow.python.eager import context

        file, _, line = injection.value.rpartition(":")
        self.injection = injection
        self.file = str(Path(file).resolve())
        node = side_effects.definition_at(self.file, int(line)) if line.isdigit() else None
        self.name = node.name if node else ""
        self.line = side_effects.first_line(node) if node else 0
        self.known: dict[CodeType, bool] = {}
        self.left = MOST_SEARCHES if node else 0
        self.eager = context.executing_eagerly
        if node is None:
            injection.note(f"there is no function at {injection.value}")

    def look(self, frame: Any) -> None:
        from flatout.cures._tracing import inside

        if not self.left or inside.now or not self.eager():
            return
        while frame is not None:
            code = frame.f_code
            target = self.known.get(code)
            if target is None:
                target = self.known[code] = self._is_target(code)
            if target:
                self._take(code)
                return
            frame = frame.f_back

    def _is_target(self, code: CodeType) -> bool:
        if code.co_name != self.name or code.co_firstlineno != self.line:
            return False
        return str(Path(users_code.absolute(code.co_filename)).resolve()) == self.file

    def _take(self, code: CodeType) -> None:
        from flatout.cures import _trampoline

        self.left -= 1
        for function in _trampoline.functions_of(code):
            _trampoline.Step(self.injection, function, f"{self.name} ({self.file}:{self.line})")


def _watch(injection: Injection, key: str) -> None:
    from flatout.observe.private_names import Missing, patch

    search: _Search = injection.__dict__.setdefault("search", _Search(injection))

    def wrap(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            search.look(sys._getframe(1))
            return original(self, *args, **kwargs)

        return call

    try:
        patch(key, wrap)
    except Missing as missing:
        injection.note(f"this TensorFlow lacks {missing}")
