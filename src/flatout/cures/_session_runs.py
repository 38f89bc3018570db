"""What the cures for programs with sessions of TensorFlow 1 have in common."""

from __future__ import annotations

from flatout.model import queries
from flatout.model.case import Case

WORTH = 0.05
"""Share of the step outside of computing, below which starting a run is not worth a change."""


def reason_against(case: Case) -> str | None:
    """Why it would not help to start the runs of a session faster."""
    if queries.step_kind(case) != "session":
        return "the steps are not runs of a session"
    outside = queries.part_ms(case, "python", "idle")
    if case.steps is not None and case.steps.split_ms and queries.share(case, outside) < WORTH:
        return f"less than {WORTH:.0%} of a step is the cost of starting it"
    return None
