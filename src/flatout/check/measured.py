"""What a run of the program says about findings of its source: their cost, or that they cost nothing worth a change.

A finding is left out only where the run could have shown it: the file was used and has not changed since, the steps
were taken apart, neither this cause nor one that may stand for it was found, and nothing expensive was found that may
hide it: a pipeline that keeps up with a slow step may not keep up with a fast one. All others stay.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from flatout import causes
from flatout.check.driver import Report
from flatout.model import queries
from flatout.model.case import Case, Finding, Where
from flatout.model.errors import InvalidOption
from flatout.source.analysis.patterns import Diagnostic
from flatout.store.run_summary import program_file

LITTLE = 0.01
"""Share of the run below which a fault is not worth a change."""

HIDES = 0.2
"""Share of the step from which what was found may hide what was not."""
_LOST = re.compile(r"\blost\b|cannot be read")
"""In a note of a case: a probe failed, and what it would have shown is not known."""

Verdict = Literal["costs", "harmless", "little input", "hidden", "other file", "changed", "not measured"]
"""costs: measured here. harmless: looked for and not found, or under 1 %. little input: the steps hardly wait for their
input. The others are not decided: something else costs so much that it may hide this, the run did not show the file, it
has changed since, or the run does not tell for another reason."""
LEFT_OUT: tuple[Verdict, ...] = ("harmless", "little input")


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    share: float | None = None
    """Share of the run, of `costs`."""


def apply(report: Report, case: Case, name: str) -> None:
    """Rank the findings of a report by what they cost in a run, leave out the harmless ones, and note how many."""
    run = MeasuredRun(case)
    counts: Counter[Verdict] = Counter()
    kept: dict[str, list[Diagnostic]] = {}
    for path, found in report.files.items():
        for item in found:
            judged = run.judge(path, item)
            counts[judged.verdict] += 1
            if judged.verdict not in LEFT_OUT:
                kept.setdefault(path, []).append(dataclasses.replace(item, measured_share=judged.share))
    report.files = kept
    report.measured_in = name
    report.left_out = sum(counts[verdict] for verdict in LEFT_OUT)
    report.remarks += list(_remarks(counts, run, name))


class MeasuredRun:
    """A case of `flatout run`, asked about findings in source."""

    def __init__(self, case: Case) -> None:
        if case.kind != "run":
            raise InvalidOption(
                f"A case of `flatout {case.kind}` does not tell what findings cost. Name one of `flatout run`."
            )
        self.case = case
        self._files = {_real(where.file, case) for where in _places(case) if where.file is not None}
        main = program_file(case)
        if main is not None:
            self._files.add(os.path.realpath(main))
        known = causes.catalogue()
        self._found = {item.cause for item in case.findings}
        self._groups = {known[name].spec.group for name in self._found if name in known}
        self._began = _timestamp(case.program.started)
        lost = any(note.level == "warning" and _LOST.search(note.text) for note in case.notes)
        self._is_whole = case.steps is not None and case.steps.split_ms is not None and not lost

    @property
    def input_share(self) -> float:
        """Share of the run that its steps wait for input, or are held up by the pipeline's Python."""
        case = self.case
        ms = queries.input_ms(case) + queries.contended_ms(case) + queries.crowded_ms(case)
        return queries.share(case, ms) * queries.steps_share(case)

    @property
    def hiding(self) -> str:
        """The most expensive cause of the run, if all of them cost so much that they may hide others."""
        shares = {item.cause: item.cost_share or 0.0 for item in self.case.findings}
        return max(shares, key=lambda name: shares[name]) if sum(shares.values()) >= HIDES else ""

    def judge(self, path: str, item: Diagnostic) -> Judgement:
        real = os.path.realpath(path)
        if real not in self._files:
            return Judgement("other file")
        if self._began is None or _changed_after(real, self._began):
            return Judgement("changed")
        found = self._finding(real, item)
        if found is not None:
            share = self._share_of_run(found)
            if share is None:
                return Judgement("not measured")
            return Judgement("costs", share) if share >= LITTLE else Judgement("harmless")
        if not self._is_whole or not queries.is_diagnosed(self.case) or self._stands_for(item.cause):
            return Judgement("not measured")
        cause = causes.find(item.cause).spec
        if self.hiding or cause.group in self._groups:
            return Judgement("hidden")
        if cause.group == "input" and self.input_share < LITTLE:
            return Judgement("little input")
        return Judgement("harmless" if cause.in_run is not None else "not measured")

    def _finding(self, real: str, item: Diagnostic) -> Finding | None:
        """The finding of the run at the same place: the same lines, else the same function."""
        here = [
            found
            for found in self.case.findings
            if found.cause == item.cause and found.where is not None and _real(found.where.file, self.case) == real
        ]
        exact = [found for found in here if item.line <= ((found.where and found.where.line) or 0) <= item.end_line]
        same = [found for found in here if item.function and found.where and found.where.function == item.function]
        return next(iter([*exact, *same]), None)

    def _share_of_run(self, found: Finding) -> float | None:
        seconds = queries.run_seconds(self.case, found)
        return seconds / self.case.program.seconds if seconds is not None else None

    def _stands_for(self, name: str) -> bool:
        """Whether the run has this cause at another place, or one that it explains or that explains it."""
        mine = causes.find(name).spec
        if name in self._found or self._found & {_cause(other) for other in (*mine.explains, *mine.replaces)}:
            return True
        known = causes.catalogue()
        others = (known[found].spec for found in self._found if found in known)
        return any(name in {_cause(one) for one in (*other.explains, *other.replaces)} for other in others)


def _cause(reference: str) -> str:
    """`host-sync` of `host-sync/callback`."""
    return reference.partition("/")[0]


def _remarks(counts: Counter[Verdict], run: MeasuredRun, name: str) -> Iterator[str]:
    reasons: dict[Verdict, str] = {
        "harmless": "the run looked for them and found less than 1 % of it",
        "little input": f"its steps wait {100 * run.input_share:.1f} % of it for their input",
    }
    left_out = [f"{counts[key]}: {reasons[key]}" for key in LEFT_OUT if counts[key]]
    if left_out:
        total = sum(counts[key] for key in LEFT_OUT)
        yield f"{total} left out, as {name} showed them to be harmless ({'; '.join(left_out)})."
    open_ones: dict[Verdict, str] = {
        "hidden": f"may be hidden behind {run.hiding or 'what it found of the same group'}",
        "other file": "in files that the run did not show",
        "changed": "in files that have changed since",
        "not measured": "of a kind, or at a place, that this run does not tell",
    }
    rest = [f"{counts[key]} {reason}" for key, reason in open_ones.items() if counts[key]]
    if rest:
        yield f"{name} does not decide {sum(counts[key] for key in open_ones)}: {', '.join(rest)}."


def _places(case: Case) -> Iterator[Where]:
    """All places that a case names."""
    named = [
        *(item.where for item in case.findings),
        *(item.where for item in case.evidence),
        *(item.where for item in case.functions),
        *(item.where for item in case.ops),
    ]
    yield from (where for where in named if where is not None)
    yield from (Where(file, line) for file, line in queries.stepping_lines(case))
    waiting = list(case.run.parts) if case.run is not None else []
    while waiting:
        part = waiting.pop()
        waiting.extend(part.parts)
        yield from part.via
        if part.where is not None:
            yield part.where


def _real(file: str | None, case: Case) -> str:
    return os.path.realpath(os.path.join(case.program.directory, file or ""))


def _timestamp(started: str) -> float | None:
    try:
        return datetime.datetime.fromisoformat(started).timestamp()
    except ValueError:
        return None


def _changed_after(path: str, moment: float) -> bool:
    try:
        return os.path.getmtime(path) > moment + 1.0  # the start is known to a second
    except OSError:
        return True
