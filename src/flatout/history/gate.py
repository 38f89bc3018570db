"""The gate for continuous integration: is the newest state of each program slower than the baseline?

The baseline is a branch, a tag or a commit: of its commits, the newest that the history has runs of. If git does not
know the name, it is looked up among the branches of the recorded runs. Both sides must come from the same kind of
machine: times of different machines cannot be compared.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flatout.compare import formatting
from flatout.compare.comparison import Comparison, compare
from flatout.compare.together import judge_together
from flatout.history.series import Series, State
from flatout.report import markdown
from flatout.report.formatting import clean
from flatout.store import origin

PASSED, REGRESSED, NOTHING = 0, 1, 3
"""Exit codes. 2 is used for errors, as in all commands."""
FARTHEST = 2000
"""How many commits back the baseline is searched for."""
SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True)
class ProgramResult:
    """The result for one program. Without a comparison, `why` says what was missing."""

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
    programs: tuple[ProgramResult, ...]

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
            return f"Regression: {names} got slower by more than {100 * self.max_regression:g} %."
        if not compared:
            return f"Nothing to compare: the history has no runs of {self.baseline}."
        what = "program" if compared == 1 else "programs"
        allowed = f"none slower by more than {100 * self.max_regression:g} %"
        return f"No regression: {compared} {what} compared with {self.baseline}, {allowed}."

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
    """Compare all programs that were run in the newest state, or those named, with the baseline."""
    ancestors = _ancestors(baseline, where or Path.cwd())
    chosen = [one for one in all_series if is_named(one, programs)] if programs else _newest(all_series)
    results = [_judge(one, baseline, ancestors, max_regression) for one in chosen]
    together = iter(judge_together([one.comparison for one in results if one.comparison is not None]))
    results = [replace(one, comparison=next(together)) if one.comparison is not None else one for one in results]
    return Gate(baseline, max_regression, tuple(results))


def add_to_summary(text: str) -> None:
    """Append to the summary of the workflow step, if this runs in GitHub Actions. The result is told without it too."""
    path = os.environ.get(SUMMARY)
    try:
        if path:
            with open(path, "a", encoding="utf-8") as stream:
                stream.write(text + "\n")
    except OSError as error:
        sys.stderr.write(f"flatout: the summary of the step, {path}, was not written: {error.strerror}\n")


def _judge(series: Series, baseline: str, ancestors: Sequence[str], max_regression: float) -> ProgramResult:
    candidate = series.newest
    earlier = [state for state in series.states if state is not candidate]
    base = _base(earlier, baseline, ancestors)
    if base is None:
        known = ", ".join(dict.fromkeys(filter(None, (formatting.source_state(state.run) for state in earlier[-5:]))))
        return ProgramResult(
            series,
            why=f"The history has no run of {clean(series.title, 120)} at {clean(baseline, 80)} on this kind of "
            + f"machine ({clean(series.machine, 120) or 'unknown'})"
            + (f"; it has {clean(known, 400)}." if known else ". Run the baseline with `flatout run` first."),
        )
    others = [state.runs for state in series.states if state not in (candidate, base)]
    return ProgramResult(series, compare(base.runs, candidate.runs, max_regression, others))


def _base(states: Sequence[State], baseline: str, ancestors: Sequence[str]) -> State | None:
    """The newest commit of the baseline that was run without changes, or the newest state of a branch of that name."""
    by_commit = {state.run.commit: state for state in states if state.run.commit and not state.run.changes}
    for commit in ancestors:
        if commit in by_commit:
            return by_commit[commit]
    on_branch = [state for state in states if state.run.branch == baseline]
    if not on_branch or ancestors:
        return None
    return max(on_branch, key=lambda state: state.recorded)


def _ancestors(baseline: str, where: Path) -> list[str]:
    """The commits of the baseline, the newest first."""
    if baseline.startswith("-"):
        return []
    for name in (baseline, f"origin/{baseline}"):
        listed = origin.git(where, "rev-list", "--first-parent", f"--max-count={FARTHEST}", name, "--")
        if listed:
            return listed.split()
    return []


def _newest(all_series: Sequence[Series]) -> list[Series]:
    """All programs that were run in the newest state."""
    if not all_series:
        return []
    newest = all_series[-1].newest.run
    known = any(newest.state)
    return [one for one in all_series if one is all_series[-1] or (known and one.newest.run.state == newest.state)]


def is_named(series: Series, programs: Sequence[str]) -> bool:
    """By its path, the end of its path, or its path with its arguments."""
    return any(
        series.program == name or series.program.endswith(f"/{name}") or series.title == name for name in programs
    )
