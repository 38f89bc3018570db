"""Eager calls of models, anywhere in the program, go through a `tf.function`.

## What it does
Traces `model(x)` for every way in which it is called: with other keywords, with None for a state, with data of
another rank each is a graph of its own, and other sizes share one. What stands around the call (tapes, environments,
NumPy) stays as it is. The first call in each way runs as written. As an edit, the call at its line becomes
`traced(model)(x)`, with a small function `traced` that keeps one `tf.function` for each model and each `training`.

## When it pays
When a loop calls small models eagerly: an agent that acts, a target network, a teacher, a sampler.

## What it changes
Reassociated: the same operations, which a graph may fuse and reorder. Ops that draw random numbers without a seed of
their own draw others in a graph. A model whose `call` does what a trace cannot hold (prints, lists that grow,
attributes that are set), or that adds losses, is left as it is.

## In the source
```python
policy = tf.function(actor)
action = policy(state)
```
"""

from __future__ import annotations

from flatout.cures import _frozen
from flatout.cures._spec import Cure
from flatout.model.case import Case
from flatout.model.evidence.program import Switch
from flatout.model.evidence.steps import EagerLine

OFTEN = 3
"""Calls from which a line is worth a change. A scouting run sees the first few of them only."""


def skip(case: Case) -> str | None:
    if any(item.name == "tf.config.run_functions_eagerly" and not item.is_off for item in case.evidence_of(Switch)):
        return "tf.config.run_functions_eagerly(True) switches every tf.function off; no-debug is the lever for it"
    if any(item.of == "model" and item.calls >= OFTEN for item in case.evidence_of(EagerLine)):
        return None
    return "no model is called eagerly again and again"


def by_hand(case: Case, value: str) -> str:
    from flatout.cures.traced_calls.edit import by_hand

    return _frozen.told(by_hand, case)


CURE = Cure(
    does="call models through tf.function",
    equivalence="reassociated",
    side="host",
    conflicts=("free-compute",),
    after=("no-debug", "function", "extract-step"),
    skip=skip,
    by_hand=by_hand,
)
