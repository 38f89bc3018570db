"""What optimize shows while it works: the stage, the contestants as their intervals narrow, and the time left."""

from __future__ import annotations

from typing import Any

from flatout.optimize.contestant import Contestant
from flatout.optimize.race import Race
from flatout.tune import progress


class Progress(progress.Progress):
    def phase(self, text: str) -> None:
        super().phase(f"{text}  ({self._left()})")

    def look(self, race: Any) -> None:
        """A round is over; `race` is this room's."""
        if self.live is None:
            return
        from rich.markup import escape
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 0), title_justify="left", show_header=False)
        table.title = f"{escape(self.stage)}  ·  {self._clock()}, {self._left()}"
        for one in (*race.baselines, *race.contestants):
            table.add_row(*map(escape, _row(race, one)))
        self.live.update(table, refresh=True)


def _row(race: Race, one: Contestant) -> tuple[str, str, str]:
    call = one.call_ms()
    speedup = None if one in race.baselines else race.speedup(one)
    told = progress.told(speedup) if speedup else ""
    return one.name, f"{call:.3f} ms" if call else "", f"{told}  {one.over}".strip()
