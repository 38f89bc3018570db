"""The time budget where the user gives none: five minutes, more for models that are large or slow.

Most of the time goes to conversions, which grow with the weights, and to checks, which grow with the time of a call.
"""

from __future__ import annotations

from flatout.subject import Subject

MIN_SECONDS, MAX_SECONDS = 300.0, 1800.0
PARAMETERS, SAMPLE_MS = 4e6, 80.0
"""Of a model for which five minutes are enough on two cores."""


def seconds_for(subject: Subject) -> float:
    times_larger = max(subject.parameters / PARAMETERS, subject.sample_ms / SAMPLE_MS, 1.0)
    return min(MIN_SECONDS * (1 + (times_larger - 1) / 3), MAX_SECONDS)
