"""How long an optimize may take where the user does not say: five minutes, more for models that are large or slow.

What takes the time is converting, which goes with the weights, and checking, which goes with the time of a call.
"""

from __future__ import annotations

from flatout.subject.subject import Subject

LEAST, MOST = 300.0, 1800.0
PARAMETERS, SAMPLE_MS = 4e6, 80.0
"""Of a model for which five minutes are enough on two cores."""


def seconds_for(subject: Subject) -> float:
    times_larger = max(subject.parameters / PARAMETERS, subject.sample_ms / SAMPLE_MS, 1.0)
    return min(LEAST * (1 + (times_larger - 1) / 3), MOST)
