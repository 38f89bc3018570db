"""Short recurrent layers are laid out in the graph, one copy for each time step, instead of run as a loop.

## What it does
Runs `LSTM`, `GRU`, `SimpleRNN` and `RNN` layers of Keras 3 with `unroll=True` wherever the length of the sequences is
known and short. A call with sequences of unknown or greater length runs as before, and so does a layer that goes
backwards through masked sequences: Keras zeroes the wrong outputs there once it is unrolled. Other masks, and states
that are kept between batches, work as in the loop.

## When it pays
On CPUs, with few time steps and small layers: a loop in the graph enters and leaves its body at each time step, keeps
what the gradient needs in lists, and hides the time steps from TensorFlow's optimizer. It goes
well with `steps-per-execution`. On a GPU the fused kernel
is faster, and an unrolled layer cannot use it.

## What it changes
Reassociated: the same operations, in a graph that may fuse and reorder them. Tracing takes longer, and the graph grows
with the number of time steps.

## In the source
```python
keras.layers.LSTM(128, unroll=True)
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case
from flatout.model.evidence.program import RecurrentLayer

LONGEST = 32
"""Time steps up to which it is tried: tracing and memory grow with them."""
LAYERS = ("LSTM", "GRU", "SimpleRNN", "RNN")


def short_layers(case: Case) -> list[RecurrentLayer]:
    """Layers that run as a loop over few time steps, always as many."""
    return [
        item
        for item in case.evidence_of(RecurrentLayer)
        if item.layer in LAYERS and not item.unrolled and item.steps is not None and 1 < item.steps <= LONGEST
    ]


def skip(case: Case) -> str | None:
    if queries.gpus_in_use(case):
        return "on a GPU recurrent layers have a fused kernel, which an unrolled one cannot use"
    if not case.evidence_of(RecurrentLayer):
        return "there is no recurrent layer of Keras"
    if not short_layers(case):
        return f"no recurrent layer goes through a fixed number of time steps of at most {LONGEST}"
    return None


CURE = Cure(does="unroll short recurrent layers", equivalence="reassociated", side="compute", skip=skip)
