"""An eager training step, or an eager call of a model, runs as a traced graph.

## What it does
Finds the Python function around the step while the program runs and forwards its calls to a `tf.function` made of the
same code. The first two calls run eagerly: they create the variables and show what the function returns, so that a
Python float stays one. `function=parts` traces the calls of models, losses and optimizers one by one instead, for a
step that is not in a function of its own.

## When it pays
When Python and dispatch take a good part of the step: small and medium models, many layers, many variables.

## What it changes
Reassociated: the same operations, which a graph may fuse and reorder; losses agree to rounding. Ops that draw random
numbers without a seed of their own draw others in a graph. A function that does what a trace cannot hold (prints,
lists that grow, attributes that are set, exceptions that are caught, NumPy numbers) is left as it is. So is one whose
tracing fails. Python values that it reads (attributes, globals, closures, lists, arrays) are compared before each call:
a changed one is traced anew, and after eight of them the lever gives up by name. There is no edit for a function that
reads what the program changes between two calls, that gives back a Python number, or that is given several models or
optimizers. Numbers that change from call to call are passed as tensors.

## In the source
```python
@tf.function(reduce_retracing=True)
def train_step(images, labels):
    ...
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from flatout.cures import _frozen, _trial_edit
from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case
from flatout.model.evidence.program import Switch
from flatout.model.evidence.steps import EagerLine, EagerTape, StepStack, Stream
from flatout.model.location import Stack
from flatout.source import context, side_effects
from flatout.source.editing.case_facts import same_file
from flatout.source.editing.graph_fit import GraphFit

PARTS = "parts"
OFTEN = 3
MOST_INNER = 3
"""Steps of their own that are tried each: an actor's, a critic's, and what one takes from the other."""
_EAGER = ("apply", "tape", "model")
_HOPELESS = ("numpy()", "new each time")
"""How the obstacles end with which no trace computes what the program does."""


def skip(case: Case) -> str | None:
    kind = queries.step_kind(case)
    if kind not in _EAGER and _assigning(case):
        return None
    if kind in ("fit", "predict", "evaluate"):
        return f"the steps are those of Keras' own {kind}; no-run-eagerly is the lever for it"
    if kind not in _EAGER:
        return "the steps already run in a graph"
    if any(item.name == "tf.config.run_functions_eagerly" and not item.is_off for item in case.evidence_of(Switch)):
        return "tf.config.run_functions_eagerly(True) switches every tf.function off; no-debug is the lever for it"
    return None


def values(case: Case) -> Sequence[str]:
    """The outermost function that is called once a step, the innermost one at each tape and update, one that calls a
    model elsewhere, the parts."""
    if queries.step_kind(case) not in _EAGER:
        return tuple(_assigning(case)[:2])
    stacks = tuple(_stacks(case))
    steps, calls = _fitting(_candidates(stacks)), _fitting(_candidates(_stacks_of_calls(case)))
    innermost = [one for stack in stacks for one in _fitting(_candidates([stack]))[-1:]]
    elsewhere = sorted((one for one in calls if one not in steps), key=lambda one: _obstacle_at(one) is not None)
    chosen = [*steps[:1], *list(dict.fromkeys(innermost))[-MOST_INNER:], *elsewhere[:1], *_assigning(case)[:1], PARTS]
    return tuple(dict.fromkeys(chosen))


def own_function(case: Case) -> str | None:
    """The function that makes the whole step, that a graph can hold and that reads nothing that changes from step to
    step, as `file:line`; None where there is none."""
    stacks = [item.stack for item in case.evidence_of(StepStack)]
    fitting = ((file, line) for file, line in _candidates(stacks) if obstacle(file, line) is None)
    return next((f"{file}:{line}" for file, line in fitting if not _freezes(case, file, line)), None)


def _freezes(case: Case, file: str, line: int) -> bool:
    """Whether there is no edit for a function because a trace would freeze what it reads."""
    own = ((path, text) for path, text in _trial_edit.sources(case) if same_file(path, file))
    return any(_frozen.of_function(text, path, case, line) is not None for path, text in own)


def obstacle(file: str, line: int) -> str | None:
    """What a graph cannot hold in the function on this line, or in functions of its file that it calls."""
    why = side_effects.reason_against(file, line)
    module, node = context.tree(file), side_effects.definition_at(file, line)
    if why or module is None or node is None:
        return why or "its source cannot be read"
    found = GraphFit(module).obstacle(node.body, frozenset({node.name}))
    return found.text if found is not None else None


def _fitting(found: Iterable[tuple[str, int]]) -> list[str]:
    """Without side effects, without `.numpy()`, which no tensor of a graph has, and without draws that a trace would
    make once for all."""
    return [
        f"{file}:{line}"
        for file, line in found
        if not side_effects.reason_against(file, line) and not (obstacle(file, line) or "").endswith(_HOPELESS)
    ]


def _obstacle_at(place: str) -> str | None:
    file, _, line = place.rpartition(":")
    return obstacle(file, int(line))


def _assigning(case: Case) -> list[str]:
    """Functions that assign weights one by one, as one that lets a target network follow does."""
    found = [
        (item.where.file, item.first)
        for item in case.evidence_of(EagerLine)
        if item.of == "assign" and item.calls >= OFTEN and not item.function.startswith("<")
        if item.where is not None and item.where.file
    ]
    return _fitting(dict.fromkeys(found))


def _candidates(stacks: Iterable[Stack]) -> list[tuple[str, int]]:
    """Functions on the way to the step, outermost first, that do not themselves hold the loop over the steps."""
    found: list[tuple[str, int]] = []
    for stack in stacks:
        inner: list[tuple[str, int]] = []
        for depth, (file, line, name, first) in enumerate(stack):
            if name.startswith("<") or _in_loop(file, line, name, depth):
                break
            inner.append((file, first))
        found += [one for one in reversed(inner) if one not in found]
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


def _stacks(case: Case) -> Iterator[Stack]:
    for item in case.evidence_of(StepStack):
        yield item.stack
    if queries.step_kind(case) != "model":
        for tape in sorted(case.evidence_of(EagerTape), key=lambda tape: -tape.per_step):
            yield tape.stack


def _stacks_of_calls(case: Case) -> Iterator[Stack]:
    """Where models are called eagerly, once a step at least: an agent plays before it learns."""
    steps = case.steps.count if case.steps is not None else 0
    for item in case.evidence_of(Stream):
        if item.of == "model" and item.count >= steps:
            yield item.stack


def by_hand(case: Case, value: str) -> str:
    from flatout.cures.function.edit import by_hand

    return _frozen.told(lambda text, path, case: by_hand(text, path, case, value), case)


CURE = Cure(
    does={
        "parts": "trace calls of models, losses and optimizers with tf.function",
        "": "trace {function} with @tf.function{place}",
    },
    equivalence="reassociated",
    side="host",
    conflicts=("free-compute",),
    # A loop is rewritten before the step around it becomes a function.
    after=("no-debug", "vectorize-loop", "whole-batch"),
    values=values,
    skip=skip,
    several=True,
    by_hand=by_hand,
)
