"""What tune shows while it works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flatout.report import progress
from flatout.report.progress import MARKS, told

if TYPE_CHECKING:
    from flatout.tune.contestant import Contestant
    from flatout.tune.race import Race


class Progress(progress.Progress):
    def row(self, race: Race, one: Contestant) -> tuple[str, str, str]:
        step = one.step_ms()
        verdict = race.verdict(one, 1) if one not in race.baselines else None
        state = MARKS.get(one.over, "racing" if one.child is not None else "")
        return one.title, f"{step:.2f} ms" if step else "", f"{told(verdict.speedup)}  {state}" if verdict else state
