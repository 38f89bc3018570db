"""What a run with a change does not do, or does more or less often than the program as it is.

Chance or rounding may decide how many steps there are (a game that is lost sooner). How far that goes is shown by runs
of the program as it is alone: those with a change are what is to be judged by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flatout.measure.parity import outputs
from flatout.measure.parity.numbers import EVALUATION, Numbers

COUNTED_OTHERWISE = 0.02, 4
"""Share and number of steps by which two runs may differ whose updates are seen at different moments."""


@dataclass(frozen=True)
class Amount:
    """Of steps that a run makes, or of elements that it puts out."""

    made: int
    ended: bool = True
    """Whether that was all; else there may have been more to come."""


def beyond_chance(of_program: Sequence[Amount], one: Amount, slack: float = 0.0) -> bool:
    """Whether a run makes more or fewer than runs of the program as it is do, and than these differ among themselves.

    They are few, so their extremes may be exceeded by as much as they lie apart, and by the share `slack`.
    """
    ended = [max(other.made, 1) for other in of_program if other.ended]
    longest = max((other.made for other in of_program if not other.ended), default=0)
    if not ended:
        return one.ended and one.made * (1 + slack) < longest
    least, most = min(ended), max(ended)
    reach = max(most, longest) / least * (1 + slack)
    at_most = math.inf if longest > most else most * reach
    return (one.ended and one.made * reach < least) or one.made > at_most


def of(baseline: Numbers, trial: Numbers, alike: Sequence[Numbers] = ()) -> str:
    """In words; empty where nothing is lacking. `alike`: further runs of the program as it is."""
    found = (look(baseline, trial, alike) for look in (_steps, _outputs, _evaluations))
    return next(filter(None, found), "")


def _steps(baseline: Numbers, trial: Numbers, alike: Sequence[Numbers]) -> str:
    if not _counted_alike(baseline, trial):
        return ""
    share, few = (0.0, 0) if baseline.counts == trial.counts else COUNTED_OTHERWISE
    of_program = [Amount(one.made, one.ended) for one in (baseline, *alike)]
    one = Amount(trial.made, trial.ended)
    if abs(trial.made - baseline.made) <= few or not beyond_chance(of_program, one, share):
        return ""
    seen = sorted({other.made for other in of_program if other.ended})
    if not trial.ended:
        return f"the program goes on after {trial.made} steps where it ended after {seen[-1]}"
    if not baseline.ended:
        return f"the program ends after {trial.made} steps where it went on for {baseline.made}"
    chance = f" ({seen[0]} to {seen[-1]} by chance)" if len(seen) > 1 else ""
    return f"the program makes {trial.made} steps where it made {baseline.made}{chance}"


def _outputs(baseline: Numbers, trial: Numbers, alike: Sequence[Numbers]) -> str:
    """Of a program that does not train. Where calls of models were seen in both, a function may have taken over from a
    model after some calls."""
    if baseline.trains or outputs.models_seen(baseline, trial):
        return ""
    for pair in outputs.pairs(baseline, trial):
        of_program = [(one.digests.get(pair.name), one.ended) for one in (baseline, *alike)]
        amounts = [Amount(digest.length, ended) for digest, ended in of_program if digest is not None]
        if beyond_chance(amounts, Amount(pair.theirs.length, trial.ended)):
            return f"{pair.name} has {pair.theirs.length:,} elements where it had {pair.ours.length:,}"
    return ""


def _evaluations(baseline: Numbers, trial: Numbers, alike: Sequence[Numbers]) -> str:
    """As far as the trial has come; how often, where both made the same steps. Not where the program as it is leaves
    some out itself."""
    to_the_end = trial.ended and not (_counted_alike(baseline, trial) and trial.made < baseline.made)
    same_steps = baseline.ended and trial.ended and baseline.made == trial.made and _counted_alike(baseline, trial)
    for name in sorted(one for one, calls in baseline.calls.items() if calls and one.startswith(EVALUATION)):
        ours, theirs = _moments(baseline, name), _moments(trial, name)
        known = [_moments(other, name) for other in alike if other.made >= max(ours)]
        if any(len(moments) < len(ours) for moments in known):
            continue
        if not theirs and (to_the_end or min(ours) < trial.made):  # one that is held has yet to evaluate
            return f"{name} was not computed"
        if same_steps and len(theirs) < len(ours):
            return f"{name} was computed at {len(theirs)} moments of the training, where it was at {len(ours)}"
    return ""


def _moments(numbers: Numbers, name: str) -> set[int]:
    """Steps that were made before it was computed."""
    return {made for made, _ in numbers.calls.get(name, [])}


def _counted_alike(baseline: Numbers, trial: Numbers) -> bool:
    return baseline.counts == trial.counts or bool(baseline.updates and trial.updates)
