"""What causes of the whole run share: a finding in seconds of the run, and how seconds and lines are written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from flatout.model import queries
from flatout.model.case import Case, Confidence, Evidence, Finding, Fix, Measurement, RunPart, Where
from flatout.source import context

WORTH_OF_RUN = 0.05
"""Share of the run from which a finding outside of the steps is worth a change."""
WORTH_SECONDS = 0.3
EACH_STEP = 0.5
"""Calls over steps from which on something is a part of each step."""
LIBRARIES = ("tensorflow", "keras", "tf_keras")
NUMERIC = ("sklearn", "scipy", "numpy", "pandas")
DRAWING = ("matplotlib", "PIL")
PYPLOT = re.compile(r"\b(?:plt|pyplot|pylab|fig|figure|axs?|axes)\b")
"""In a line: it calls matplotlib itself."""
IN_BACKGROUND = Fix(
    "Draw figures in a process of their own while training goes on.", lever="background-figures", equivalence="exact"
)
"""For lines that `draw_figures`."""


def of_run(
    cause: str,
    case: Case,
    summary: str,
    seconds: float,
    where: Where | None,
    fixes: Sequence[Fix],
    confidence: Confidence = "high",
) -> Iterator[Finding]:
    """One finding with its seconds of the run, or none where they are few."""
    if case.run is None or seconds < WORTH_SECONDS or seconds < WORTH_OF_RUN * case.run.seconds:
        return
    yield Finding(
        cause=cause,
        summary=summary,
        where=where,
        evidence=(_evidence(cause, seconds, where),),
        cost_ms=1000 * seconds,
        cost_share=seconds / case.run.seconds,
        confidence=confidence,
        fixes=tuple(fixes),
        estimate="seconds of the wall clock in which the main thread was there",
        of="run",
    )


def _evidence(cause: str, cost: float, where: Where | None) -> Evidence:
    return Measurement(cause, cost, "s", where=where, source="spans", note="of the run")


def seconds(value: float) -> str:
    """`7.2 s`, `0.31 s`, `42 ms`."""
    if value < 0.1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.2f} s" if value < 0.95 else f"{value:.1f} s" if value < 99.5 else f"{value:.0f} s"


def each(part: RunPart) -> str:
    """`in 3 calls, 2.4 s each`; empty for a single one."""
    return f" in {part.count:,} calls, {seconds(part.seconds / part.count)} each" if part.count > 1 else ""


def spot(where: Where | None) -> str:
    """`train.py:17`, for the middle of a sentence."""
    if where is None or not where.file:
        return ""
    return f"{where.file.rpartition('/')[2]}:{where.line}"


def busiest(part: RunPart) -> Where | None:
    """The line that has most of the time of a part, where samples have seen one that has a good share."""
    found = part.lines()
    return found[0].where if found and found[0].seconds >= 0.25 * part.seconds else None


def most_of(value: float, whole: float) -> str:
    """How a line that has so much of a part is told: the one that has most may have less than half."""
    return "most of it" if value >= 0.5 * whole else "the largest part of it"


def mostly(part: RunPart) -> str:
    """` Most of it is at train.py:15.`"""
    line = busiest(part)
    if line is None or line == part.where:
        return ""
    return f" Most of it is at {spot(line)}." if part.lines()[0].seconds >= 0.5 * part.seconds else ""


def predicts_and_scores(part: RunPart) -> bool:
    """Whether a callback predicts, and computes numbers of the answers on the host: most of its time is in both."""
    predicted = part.under("prediction")
    scored = sum(line.seconds for line in part.lines() if line.name in NUMERIC)
    if not predicted:
        return False
    return scored >= 0.25 * part.seconds and predicted + scored >= 0.6 * part.seconds


def lines_between_epochs(case: Case) -> list[RunPart]:
    """Lines of the program in a loop around the training steps, but not of the steps, the most expensive first."""
    if case.run is None or case.steps is None or case.steps.where is None:
        return []
    lines = [line for part in case.run.of("program") for line in part.lines()]
    return [line for line in lines if line.where is not None and is_beside_steps(case, line)]


def drawing_seconds(case: Case) -> float:
    """Seconds of the run in which figures are saved: in the steps, between epochs, and in callbacks that are called
    several times."""
    parts = case.run.of("callback", "steps") if case.run is not None else []
    inside = [line for part in parts if part.count > 1 for line in part.lines()]
    return _saving_figures([*inside, *lines_between_epochs(case)])


def draw_figures(lines: Sequence[RunPart]) -> bool:
    """Whether a good part of their time goes to saving figures."""
    return _saving_figures(lines) >= 0.25 * sum(line.seconds for line in lines) > 0


def _saving_figures(lines: Sequence[RunPart]) -> float:
    """Seconds of lines that save a figure, or call a function of the program that may."""
    return sum(line.seconds for line in lines if line.where is not None and _may_save_figure(line, line.where))


def _may_save_figure(line: RunPart, where: Where) -> bool:
    code = where.code or ""
    if "savefig" in code:
        return True
    files = {place.file for place in (*line.via, where) if place.file}
    return line.name in DRAWING and not PYPLOT.search(code) and any(map(_saves_figures, files))


def _saves_figures(file: str) -> bool:
    module = context.tree(file)
    nodes = ast.walk(module) if module is not None else ()
    return any(isinstance(node, ast.Attribute) and node.attr == "savefig" for node in nodes)


def lines_told_elsewhere(case: Case) -> Iterator[tuple[str | None, int | None]]:
    """Lines of validation, and of what a finding of the run has: they are no work of a step that could be moved."""
    validation = case.run.of("validation") if case.run is not None else []
    for part in (*validation, *_told_elsewhere(case)):
        for one in (part, *part.lines()):
            if one.where is not None:
                yield one.where.file, one.where.line


def told_of_each_step_ms(case: Case) -> float:
    """Milliseconds of a step that a finding of the run has: hooks of batches, summaries of each step."""
    steps = case.steps.count if case.steps is not None else 0
    often = [part for part in _told_elsewhere(case) if part.count >= EACH_STEP * steps]
    return 1000 * sum(part.seconds for part in often) / steps if steps else 0.0


def _told_elsewhere(case: Case) -> list[RunPart]:
    if case.run is None:
        return []
    least = max(WORTH_SECONDS, WORTH_OF_RUN * case.run.seconds)
    return [part for part in case.run.of("callback", "checkpoint", "summary") if part.seconds >= least]


def is_beside_steps(case: Case, line: RunPart) -> bool:
    """Whether the statement is repeated with the epochs: it stands in a loop that has the steps in it, or is called
    from one."""
    steps = queries.step_stack(case)
    frames = [(frame.file, frame.line) for frame in steps.stack] if steps is not None else []
    for place in (*line.via, line.where):
        if place is None or not place.file or not place.line:
            continue
        for loop in context.enclosing_loops(place.file, place.line):
            if any(place.file == file and at is not None and loop.line < at <= loop.end for file, at in frames):
                return True
    return False
