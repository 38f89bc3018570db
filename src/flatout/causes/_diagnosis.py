"""The diagnosis: all causes look at a Case; the findings are ranked by measured cost and summed up in one sentence."""

from __future__ import annotations

import dataclasses
import re

from flatout.causes._accounting import counted_once, listed_once, rank
from flatout.causes._catalogue import catalogue
from flatout.causes._precedence import Detected, reported
from flatout.causes._run_parts import seconds
from flatout.causes._run_sentence import sentence
from flatout.causes._spec import WORTH
from flatout.model import queries, ranks
from flatout.model.case import Case, Finding, Note

FEWEST_STEPS = 5
NAMES = ("Python", "Keras")
"""That begin a summary and keep their capital inside of a sentence."""
MOSTLY_STEPS = 0.5
"""Share of the run below which it is said how little of it the steps are."""


def diagnose(case: Case) -> Case:
    """The case with its findings and its verdict."""
    causes = {name: cause.spec for name, cause in catalogue().items()}
    detected: list[Detected] = []
    notes: list[Note] = []
    for name, cause in causes.items():
        for detector, look in cause.detectors.items():
            try:
                detected += [Detected(dataclasses.replace(finding, cause=name), detector) for finding in look(case)]
            except Exception as error:
                # One faulty detector must not take the others with it, nor be silent.
                notes.append(Note("warning", f"The check for {name} failed: {type(error).__name__}: {error}"))
    found = listed_once(reported(detected, causes))
    ranked = counted_once(sorted(found, key=lambda item: rank(item, case, causes)), case, causes)
    case = dataclasses.replace(case, findings=tuple(ranked), notes=(*case.notes, *notes))
    return dataclasses.replace(case, verdict=" ".join(filter(None, (sentence(case), _verdict(case)))))


def _verdict(case: Case) -> str:
    if case.verdict and case.kind != "run":
        return case.verdict  # the verdict of a trace, about its device, is more precise than its findings
    worth = [item for item in case.findings if (item.cost_share or 0.0) >= WORTH]
    without_cost = [item for item in case.findings if item.cost_share is None]
    if case.steps is None and any(host.step_ms is not None for host in ranks.of(case)):
        # Of a job whose leading rank has left no case: what is known of the steps is in the lines of the ranks.
        if case.findings:
            return case.findings[0].summary
        return "The case of the rank that leads is missing, so nothing is known of its steps but what the ranks show."
    if case.steps is None:
        if case.findings:
            return f"No step was seen, but {_lower(case.findings[0].summary)}"
        if case.program.error:
            kind = re.split(r"[: ]", case.program.error, maxsplit=1)[0]
            return f"The program failed before its first step ({kind}), so nothing can be said about its speed."
        return "No step was seen, so nothing can be said about its speed."
    if case.steps.count < FEWEST_STEPS:
        ended = f" before it ended ({case.program.error})" if case.program.error else ""
        seen = f"{case.steps.count} step{'s were' if case.steps.count != 1 else ' was'} seen"
        return f"Only {seen}{ended}: too few to say where their time goes."
    if worth:
        first = worth[0]
        more = f" {len(worth) - 1} more below." if len(worth) > 1 else ""
        whole = f"each step{_of_the_run(case, first)}" if first.of == "step" else "the run"
        goes = f"{(first.cost_share or 0):.0%} of {whole} goes to {first.cause}: {_lower(first.summary)}{more}"
        return f"{goes}{_part_of_the_run(case)}"
    sound = "Nothing worth changing: " if not without_cost else "Nothing in the steps is worth changing: "
    compute = _share_of(case, "compute")
    if compute is not None and compute < 0.5:
        found = f"No cause is known to cost more than {WORTH:.0%}" if case.findings else "No single cause was found"
        return f"{found}, although only {compute:.0%} of each step is spent computing."
    if compute is not None:
        return (
            f"{sound}{compute:.0%} of each step is spent computing, and no cause costs more than {WORTH:.0%}."
            f"{_part_of_the_run(case)}"
        )
    return f"{sound}no cause costs more than {WORTH:.0%} of a step.{_part_of_the_run(case)}"


def _of_the_run(case: Case, finding: Finding) -> str:
    """` (0.2 s of the run)`, where the steps are not most of it."""
    if case.run is None or queries.steps_share(case) >= MOSTLY_STEPS:
        return ""
    return f" ({seconds(queries.run_seconds(case, finding) or 0.0)} of the run)"


def _part_of_the_run(case: Case) -> str:
    """What the steps are of the run, where that is little: a share of the step is then no share of the run."""
    steps = queries.steps_share(case)
    if case.steps is None or steps >= MOSTLY_STEPS or case.run is not None:
        return ""
    took, whole = steps * case.program.seconds, case.program.seconds
    return f" The steps after the warm-up are {steps:.0%} of the run ({took:.1f} of {whole:.1f} s)."


def _share_of(case: Case, part: str) -> float | None:
    if case.steps is None or case.steps.split_ms is None or not case.steps.ms.median:
        return None
    return float(getattr(case.steps.split_ms, part)) / case.steps.ms.median


def _lower(text: str) -> str:
    """Inside of a sentence; names keep their capital."""
    first = text.split(" ", 1)[0]
    return text if first in NAMES or first[1:] != first[1:].lower() else text[:1].lower() + text[1:]
