"""How the kinds of steps are called, in whatever form they are shown."""

from __future__ import annotations

from flatout.model.vocabulary import StepKind

STEP_NAMES: dict[StepKind, str] = {
    "train": "training steps",
    "inference": "inference steps",
    "session": "session runs",
    "input": "dataset elements",
    "call": "model calls",
}


def name_of_steps(kind: StepKind) -> str:
    """`training steps`; just `steps` for a kind of a newer version."""
    return STEP_NAMES.get(kind, "steps")
