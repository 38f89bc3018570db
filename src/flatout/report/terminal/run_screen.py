"""The screen of a run: what costs most, where the time of the run and of a step goes, what to change, what to type."""

from __future__ import annotations

import math
import re

from flatout.model import queries
from flatout.model.case import Case, Finding, Steps
from flatout.report import words
from flatout.report.formatting import clean, duration, elide, sentence, share, shares
from flatout.report.labels import NO_VERDICT, STEP_PARTS, name_of_steps
from flatout.report.terminal import ranks, run, screen
from flatout.report.terminal.charts import PARTS, keyed, stacked
from flatout.report.terminal.page import Page
from flatout.report.terminal.screen import Room, labelled

WORTH = 0.05
"""Share of a step or of the run from which on a finding is told before all else."""
_ABOUT_RUN = re.compile(r"\d[\d.,]* \w+: .*?\.(?:\s+|$)")
"""How a verdict begins where the run was watched as a whole: `15 s: 7.2 s in …, 5.5 s before the first step. `"""


UNEVEN = 1.15
"""Mean over median of the steps, from which on both are told: seconds of the run are those of the mean."""


def write(case: Case, page: Page, room: Room) -> None:
    screen.title(case, page)
    for told in _headline(case):
        page.line((told, "bold"), indent=0)
    page.gap()
    if case.steps is not None:
        _time(case, case.steps, page)
    ranks.block(case, page)
    _findings(case, page, room)
    page.gap()
    screen.notes(case, page, room)
    _next(case, page, room)


def headline(case: Case) -> str:
    """Where the time of the run goes, and what costs most: sentences that need no knowledge of flatout."""
    return " ".join(_headline(case))


def _headline(case: Case) -> list[str]:
    first = next((item for item in case.findings if (item.cost_share or 0.0) >= WORTH), None)
    lead = ranks.lead(case)
    verdict = sentence(case.verdict).removeprefix(lead)
    about = _ABOUT_RUN.match(verdict) if case.run is not None else None
    before = " ".join(filter(None, (lead.strip(), f"The run took {about[0].strip()}" if about else "")))
    if case.steps is None or first is None or not case.verdict.partition(" goes to ")[2].startswith(first.cause):
        rest = verdict[about.end() :] if about else verdict
        return [told for told in (before, rest) if told] or [NO_VERDICT]
    whole = duration(queries.whole_ms(case)) if first.of == "step" else duration(queries.run_ms(case))
    what = f"each {name_of_steps(case.steps.kind).removesuffix('s')}" if first.of == "step" else "the run"
    cost = f"{duration(first.cost_ms)} of {whole}" if first.cost_ms else whole
    goes = f"{share(first.cost_share)} of {what} ({cost}) goes to one cause: {screen.lower(sentence(first.summary))}"
    return [told for told in (before, goes) if told]


def _time(case: Case, steps: Steps, page: Page) -> None:
    """The run as a whole, and one step."""
    _run_bar(case, page)
    spread = f"{duration(steps.ms.p10)} to {duration(steps.ms.p90)}"
    uneven = f", mean {duration(steps.ms.mean)}" if steps.ms.mean > UNEVEN * steps.ms.median else ""
    which = f"median of {steps.count:,} {name_of_steps(steps.kind)}{uneven}; 8 of 10 took {spread}"
    labelled(page, "A step", f"{duration(steps.ms.median)} ({which if steps.count > 1 else 'the only one'})")
    split = steps.split_ms
    total = split.total() if split is not None else 0.0
    if split is None or total <= 0:
        return
    values = {name: float(getattr(split, name)) for name, _, _ in PARTS}
    bar = stacked(values, min(page.width, 100) - screen.ROOM - 2)
    page.labelled("", bar, indent=0, room=screen.ROOM)
    parts = shares(values)
    legend = [
        keyed(glyph, colour, f"{STEP_PARTS[name]} {parts[name]}") for name, glyph, colour in PARTS if name in parts
    ]
    page.fields(legend, indent=screen.ROOM, separator="  ")


def _run_bar(case: Case, page: Page) -> None:
    """Where the time of the whole run goes."""
    if case.run is not None and case.run.seconds > 0:
        width = min(page.width, 100) - screen.ROOM - 2
        labelled(page, "This run", run.bar(case.run, width))
        page.fields(run.legend(case.run, width), indent=screen.ROOM, separator="  ")
        return
    seconds, part = case.program.seconds, queries.steps_share(case)
    if seconds and case.steps is not None:
        inside = duration(1000 * seconds * part)
        outside = duration(1000 * seconds * (1 - part))
        labelled(page, "This run", f"{duration(1000 * seconds)}: {inside} in steps, {outside} outside of them")


def _findings(case: Case, page: Page, room: Room) -> None:
    if case.steps is not None and case.verdict.partition("Only ")[2].endswith("where their time goes."):
        return  # too few steps to tell
    told = [item for item in case.findings if item.full_share >= WORTH or item.cost_share is None][: room.findings]
    told = told or list(case.findings[: min(room.findings, 1)])
    if not told:
        return
    page.heading("What to change", "" if len(told) == 1 else "the most expensive first")
    repeated = screen.lower(sentence(told[0].summary)) in headline(case)
    for number, finding in enumerate(told, 1):
        _finding(number, finding, case, page, room, with_summary=not (number == 1 and repeated))


def _finding(number: int, finding: Finding, case: Case, page: Page, room: Room, with_summary: bool) -> None:
    code = clean(finding.where.code) if finding.where and finding.where.code else ""
    spot = page.location(finding.where, min(48, page.width - 6)) or "the whole program"
    page.line((f"{number}  ", "bold"), (spot, "bold"), elide(f"   {code}", page.width - 5 - len(spot)) if code else "")
    if with_summary:
        page.labelled("why", elide(sentence(finding.summary), room.words), indent=5, room=7)
    page.labelled("costs", _cost(case, finding), f"   ({clean(finding.cause, 40)})", indent=5, room=7)
    if gives := at_most(case, finding):
        page.labelled("gives", gives, indent=5, room=7)
    if finding.fixes:
        page.labelled("do", elide(screen.advice(finding), room.words), expected(case, finding), indent=5, room=7)


def expected(case: Case, finding: Finding) -> str:
    """What the first change does to the results, as far as that is known before it was tried."""
    fix = finding.fixes[0]
    agreement = words.agreement(fix.equivalence)
    if fix.equivalence == "semantic" and finding.of == "run":
        agreement = "changes the training, or what it writes"
    if fix.lever:
        known = "not compared yet" if case.kind == "tune" else "flatout tune tries it and compares the results"
        return f" ({known}; expected: {agreement})"
    if fix.equivalence in ("exact", "reassociated"):
        agreement = "unknown whether results stay the same: compare them"
    return f" (change it by hand; {agreement})"


def at_most(case: Case, finding: Finding) -> str:
    """The most that this run could gain, by what the cause costs it."""
    if case.kind == "tune":  # what it has observed is the beginning of a run
        part = finding.cost_share or 0.0
        if not 0.02 < part < 0.95:
            return ""
        what = "each step" if finding.of == "step" else "the run, as far as it was seen,"
        longer = _of_longer_run(case, part) if finding.of == "step" else ""
        return f"{what} up to about {1 / (1 - part):.2g} times as fast{longer}"
    whole, cost = queries.run_ms(case) / 1000, _of_this_run(case, finding)
    if cost is None or not 0.02 * whole < cost < whole:
        return ""
    left = whole - cost
    before, after = duration(1000 * whole), duration(1000 * left)
    times = f"about {whole / left:.2g} times" if whole / left >= 1.095 else f"{words.factor(whole / left)} times"
    return f"up to {times} as fast: this run {before} → {after}"


def _of_longer_run(case: Case, part: float) -> str:
    """What a run gains whose steps take longer than its start: a tune has seen the beginning of one alone."""
    steps = case.steps
    each = steps.ms.mean / 1000 if steps is not None else 0.0
    start = case.program.seconds - each * steps.count if steps is not None and case.program.seconds else 0.0
    if steps is None or start <= 0 or each <= 0:
        return ""
    count = 10 ** math.ceil(math.log10(max(start / each, 100)))
    before, after = start + count * each, start + count * each * (1 - part)
    times = f"{before / after:.2g} times ({duration(1000 * before)} → {duration(1000 * after)}, estimated)"
    return f"; a run of {count:,} steps about {times}"


def _cost(case: Case, finding: Finding) -> str:
    if finding.cost_ms is None or not (finding.cost_ms or finding.counted_before):
        return "not known"
    of = "of each step" if finding.of == "step" else "of the run"
    parts = [f"{share(finding.cost_share)} {of}, {duration(finding.cost_ms)}"] if finding.cost_ms else []
    if finding.cost_ms and finding.of == "step" and (seconds := _of_this_run(case, finding)):
        parts.append(f"{duration(1000 * seconds)} of this run")
    if finding.counted_before:
        more = "another " if parts else ""
        parts.append(f"{more}{share(finding.counted_before)} {of} is already counted above")
    sure = {"high": "", "medium": "; likely, not certain", "low": "; an upper estimate"}.get(finding.confidence, "")
    return "; ".join(parts) + sure


def _of_this_run(case: Case, finding: Finding) -> float | None:
    """Seconds that a cause takes of the run; None where the run's steps are counted otherwise."""
    if finding.of == "run" or case.run is None:
        return queries.run_seconds(case, finding) if case.steps is None or case.steps.kind != "inference" else None
    if case.steps is None or case.steps.kind == "inference":
        return None
    by_step, in_tree = case.steps.count * case.steps.ms.mean / 1000, case.run.seconds_of("steps")
    alike = in_tree > 0 and 0.7 < by_step / in_tree < 1.4  # traces inside of steps are a part of their own
    return queries.run_seconds(case, finding) if alike else None


def _next(case: Case, page: Page, room: Room) -> None:
    program = elide(screen.command_words(case), max(page.width - 30, 40))
    if ranks.next_step(case, page):
        pass
    elif case.program.error or case.program.exit_code or case.program.signal:
        labelled(page, "Next", (f"flatout run {program}", "bold"), "   again, when the program runs to its end")
    elif case.steps is not None and case.program.command:
        what = "tries the cures on this program, measures them and writes the patch"
        if not case.findings:
            what = "only to be sure: it measures whether any change helps"
        labelled(page, "Next", (f"flatout tune {program}", "bold"), f"   {what}")
    shown = min(room.findings, len(case.findings))
    remarks = sum(note.level == "info" for note in case.notes)
    name = clean(case.findings[0].cause, 40) if case.findings else ""
    explain = f" · flatout explain {name}" if name else ""
    screen.rest(page, explain, (len(case.findings) - shown, "more finding"), (remarks, "remark"))
