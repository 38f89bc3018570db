"""The progress of a long command: the stage, the contestants with their intervals, the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from flatout.measure.race import Row, View
from flatout.model.case import Interval, Trial
from flatout.report import words
from flatout.source.notebooks.program import by_cells

if TYPE_CHECKING:
    from typing_extensions import Self

MARKS = {
    "won": "faster",
    "lost": "slower",
    "noise": "no measurable difference",
    "failed": "failed",
    "timeout": "too slow",
}


class Progress:
    """A live table on a terminal; elsewhere one line per event."""

    def __init__(self, budget: float, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.budget = budget
        """Seconds that the command may take."""
        self.quiet = quiet
        self.stream = stream or sys.stderr
        self.began = time.monotonic()
        self.stage = ""
        self._live: Any = None

    def __enter__(self) -> Self:
        if not self.quiet and self.stream.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=self.stream), transient=True, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def phase(self, text: str) -> None:
        """Begin a stage."""
        self.stage = text
        self.say(f"{text}  ({self._left()})")
        self._draw()

    def say(self, text: str) -> None:
        if self.quiet:
            return
        line = f"flatout: {clock(self._elapsed())}  {by_cells(text)}"
        if self._live is not None:
            self._live.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=self.stream, flush=True)

    def tick(self) -> None:
        """Refresh the elapsed time."""
        self._draw()

    def show(self, race: View) -> None:
        """Show the current state of a race."""
        if self._live is not None:
            self._draw(race.rows())

    def finished(self, trial: Trial, machine: str = "") -> None:
        """`machine`: the other one that it ran on."""
        note = f" ({trial.note})" if trial.status in ("failed", "timeout") and trial.note else ""
        parity = f"; {words.agreement(trial.parity)}" if trial.parity else ""
        where = f"{machine}: " if machine else ""
        self.say(f"{where}{words.change_here(trial.levers)}: {_told(trial)}{parity}{note}")

    def _elapsed(self) -> float:
        return time.monotonic() - self.began

    def _left(self) -> str:
        if self.budget == float("inf"):
            return "as long as it takes"
        return f"{clock(max(self.budget - self._elapsed(), 0.0))} left at most"

    def _draw(self, rows: Sequence[Row] = ()) -> None:
        if self._live is None:
            return
        from rich.markup import escape
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 0), title_justify="left", title_style="", show_header=False)
        table.title = f"{escape(self.stage)}  ·  {clock(self._elapsed())}, {self._left()}"
        for row in rows:
            table.add_row(*map(escape, cells(row)))
        self._live.update(table, refresh=True)


def cells(row: Row) -> tuple[str, str, str]:
    """One contestant of a race: its name, its time, its speedup so far."""
    unit = f"{row.unit_seconds * 1e3:.3f} ms" if row.unit_seconds is not None else ""
    if row.speedup is not None:
        ratio = interval_text(row.speedup)
    else:
        ratio = f"{row.so_far:.2f}× so far" if row.so_far is not None else ""
    state = row.note or (MARKS[row.status] if row.status is not None else "")
    return row.name, unit, f"{ratio}  {state}".strip()


def _told(trial: Trial) -> str:
    speedup = "" if trial.speedup is None else words.speedup(trial.speedup)
    if trial.undecided or trial.stage == "bound":
        return "not decided" if trial.undecided or not speedup else f"would be {speedup}"
    if trial.status == "won" and speedup:
        return speedup
    return f"{MARKS[trial.status]}, {speedup}" if speedup else MARKS[trial.status]


def interval_text(interval: Interval) -> str:
    return f"{interval.ratio:.2f}× [{interval.low:.2f}, {interval.high:.2f}]"


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
