"""The gate for continuous integration: is the newest state of each program slower than the baseline?

The baseline is a branch, a tag or a commit: the newest of its commits that the history has runs of. Where git does not
know the name, it is taken as a branch that runs were recorded on. Both sides must come from the same kind of machine;
numbers of another one say nothing about the change.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatout.compare import words
from flatout.compare.comparison import Comparison, compare
from flatout.history.states import Series, State
from flatout.report import markdown
from flatout.report.terminal.text import clean
from flatout.store import origin

PASSED, REGRESSED, NOTHING = 0, 1, 3
"""Exit codes; 2 is for what cannot be done at all, as everywhere."""
FARTHEST = 2000
"""How many commits back a baseline may lie."""
SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True)
class Judged:
    """One program at the gate. Without a comparison, `why` says what was missing."""

    series: Series
    comparison: Comparison | None = None
    why: str = ""

    @property
    def regressed(self) -> bool:
        return self.comparison is not None and self.comparison.regressed


@dataclass(frozen=True)
class Gate:
    baseline: str
    max_regression: float
    programs: tuple[Judged, ...]

    @property
    def code(self) -> int:
        if any(one.regressed for one in self.programs):
            return REGRESSED
        return PASSED if any(one.comparison is not None for one in self.programs) else NOTHING

    @property
    def verdict(self) -> str:
        slower = [one for one in self.programs if one.regressed]
        compared = sum(one.comparison is not None for one in self.programs)
        if slower:
            names = ", ".join(clean(one.series.title, 80) for one in slower)
            return f"The gate is closed: {names} got slower by more than {100 * self.max_regression:g} %."
        if not compared:
            return f"The gate has nothing to judge by: no runs of {self.baseline} to compare with."
        what = "program" if compared == 1 else "programs"
        allowed = f"none slower past {100 * self.max_regression:g} %"
        return f"The gate is open: {compared} {what} compared with {self.baseline}, {allowed}."

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "gate",
            "baseline": self.baseline,
            "max_regression": self.max_regression,
            "verdict": self.verdict,
            "exit_code": self.code,
            "programs": [
                {
                    "program": one.series.program,
                    "arguments": list(one.series.arguments),
                    "machine": one.series.machine,
                    "why": one.why,
                    "comparison": one.comparison.to_json() if one.comparison is not None else None,
                }
                for one in self.programs
            ],
        }

    def to_markdown(self) -> str:
        mark = {PASSED: "✅", REGRESSED: "❌", NOTHING: "❔"}[self.code]
        lines = [f"## {mark} flatout gate", "", markdown.escape(self.verdict), ""]
        for one in self.programs:
            if one.comparison is not None:
                lines.append(markdown.render(one.comparison, one.series.title))
            else:
                lines += [f"### ❔ {markdown.escape(one.series.title)}", "", markdown.escape(one.why), ""]
        return "\n".join(lines)


def judge(
    all_series: Sequence[Series],
    baseline: str,
    max_regression: float,
    programs: Sequence[str] = (),
    where: Path | None = None,
) -> Gate:
    """Every program that the newest state was run with, or those named, against the same ones of the baseline."""
    ancestors = _ancestors(baseline, where or Path.cwd())
    chosen = [one for one in all_series if _meant(one, programs)] if programs else _newest(all_series)
    return Gate(baseline, max_regression, tuple(_judge(one, baseline, ancestors, max_regression) for one in chosen))


def add_to_summary(text: str) -> None:
    """The summary of the step, where GitHub runs this."""
    path = os.environ.get(SUMMARY)
    if path:
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(text + "\n")


def _judge(series: Series, baseline: str, ancestors: Sequence[str], max_regression: float) -> Judged:
    candidate = series.states[-1]
    earlier = [state for state in series.states if state is not candidate]
    base = _base(earlier, baseline, ancestors)
    if base is None:
        known = ", ".join(dict.fromkeys(filter(None, (words.state(state.run) for state in earlier[-5:]))))
        return Judged(
            series,
            why=f"The history has no run of {series.title} at {baseline} on this kind of machine "
            + f"({series.machine or 'unknown'})"
            + (f"; it has {known}." if known else ". Run the baseline with `flatout run` first."),
        )
    others = [state.runs for state in series.states if state not in (candidate, base)]
    return Judged(series, compare(base.runs, candidate.runs, max_regression, others))


def _base(states: Sequence[State], baseline: str, ancestors: Sequence[str]) -> State | None:
    """The newest commit of the baseline that was run, clean; else the newest state of a branch of that name."""
    by_commit = {state.run.commit: state for state in states if state.run.commit and not state.run.changes}
    for commit in ancestors:
        if commit in by_commit:
            return by_commit[commit]
    on_branch = [state for state in states if state.run.branch == baseline]
    return on_branch[-1] if on_branch and not ancestors else None


def _ancestors(baseline: str, where: Path) -> list[str]:
    """The commits of the baseline, the newest first."""
    if baseline.startswith("-"):
        return []
    for name in (baseline, f"origin/{baseline}"):
        told = origin.ask(where, "rev-list", "--first-parent", f"--max-count={FARTHEST}", name, "--")
        if told:
            return told.split()
    return []


def _newest(all_series: Sequence[Series]) -> list[Series]:
    """All programs of the state that was run last."""
    if not all_series:
        return []
    newest = all_series[-1].states[-1].run
    known = any(newest.state)
    return [one for one in all_series if one is all_series[-1] or (known and one.states[-1].run.state == newest.state)]


def _meant(series: Series, programs: Sequence[str]) -> bool:
    return any(
        series.program == name or series.program.endswith(f"/{name}") or series.title == name for name in programs
    )
