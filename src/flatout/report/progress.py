"""What a long command shows while it works: the stage, the contestants as their intervals narrow, the time left."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from flatout.model.case import Interval, Trial
from flatout.model.levers import shown

if TYPE_CHECKING:
    from typing_extensions import Self

MARKS = {"won": "won", "lost": "slower", "noise": "no measurable difference", "failed": "failed", "timeout": "too slow"}


class Progress:
    """On a terminal a table that moves; elsewhere one line for each thing that has happened."""

    def __init__(self, budget: float, quiet: bool = False, stream: Any = None) -> None:
        self.budget = budget
        self.quiet = quiet
        self.stream = stream or sys.stderr
        self.began = time.monotonic()
        self.stage = ""
        self.live: Any = None
        self._moving = not quiet and self.stream.isatty()

    def __enter__(self) -> Self:
        if self._moving:
            from rich.console import Console
            from rich.live import Live

            self.live = Live(console=Console(file=self.stream), transient=True, auto_refresh=False)
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def phase(self, text: str) -> None:
        self.stage = text
        self.say(text)
        self._show(None)

    def waiting(self, seconds: float) -> None:
        self._show(None)

    def say(self, text: str) -> None:
        if self.quiet:
            return
        line = f"flatout: {self._clock()}  {text}"
        if self.live is not None:
            self.live.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=self.stream, flush=True)

    def look(self, race: Any) -> None:
        self._show(race)

    def finished(self, trial: Trial) -> None:
        how = "" if trial.speedup is None else f"  {told(trial.speedup)}"
        parity = f"  numbers: {trial.parity}" if trial.parity else ""
        note = f"  ({trial.note})" if trial.status in ("failed", "timeout") and trial.note else ""
        mark = "as if it cost nothing" if trial.stage == "bound" else MARKS[trial.status]
        if trial.undecided:
            mark = "not decided"
        self.say(f"{shown(trial.levers)}: {mark}{how}{parity}{note}")

    def row(self, race: Any, one: Any) -> tuple[str, str, str]:
        """One contestant of a race under way: its name, its time, how it stands."""
        raise NotImplementedError

    def _clock(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self.began), 60)
        return f"{minutes}:{seconds:02d}"

    def _left(self) -> str:
        minutes, seconds = divmod(int(max(self.budget - (time.monotonic() - self.began), 0.0)), 60)
        return f"{minutes}:{seconds:02d} left at most"

    def _show(self, race: Any) -> None:
        if self.live is None:
            return
        from rich.markup import escape
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 0), title_justify="left", show_header=False)
        table.title = f"{escape(self.stage)}  ·  {self._clock()}, {self._left()}"
        if race is not None:
            for one in (*race.baselines, *race.contestants):
                table.add_row(*map(escape, self.row(race, one)))
        self.live.update(table, refresh=True)


def told(interval: Interval) -> str:
    if interval.high == float("inf"):
        return f"{interval.ratio:.2f}× so far"
    return f"{interval.ratio:.2f}× [{interval.low:.2f}, {interval.high:.2f}]"
