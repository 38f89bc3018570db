"""What optimize shows while it works."""

from __future__ import annotations

from flatout.optimize.contestant import Contestant
from flatout.optimize.race import Race
from flatout.report import progress
from flatout.report.progress import told


class Progress(progress.Progress):
    def phase(self, text: str) -> None:
        super().phase(f"{text}  ({self._left()})")

    def row(self, race: Race, one: Contestant) -> tuple[str, str, str]:
        call = one.call_ms()
        speedup = None if one in race.baselines else race.speedup(one)
        words = told(speedup) if speedup else ""
        return one.name, f"{call:.3f} ms" if call else "", f"{words}  {one.over}".strip()
