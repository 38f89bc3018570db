"""The screen of a tune: what it has come to, what that does to the run, how it is known, the patch, what to type."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from flatout.model import queries
from flatout.model.case import Case, Finding, Trial, WholeRun
from flatout.model.evidence.outcomes import LeverSkipped
from flatout.model.levers import parse
from flatout.model.vocabulary import INTERRUPTED, WHILE_TUNED
from flatout.report import words
from flatout.report.claims import claimed, first_steps_alone, numbers, refused
from flatout.report.formatting import clean, duration, elide, sentence, share
from flatout.report.gain_text import gain
from flatout.report.labels import NO_VERDICT, name_of_steps
from flatout.report.terminal import run_screen, screen, tune_patch, tune_reason
from flatout.report.terminal.page import Page
from flatout.report.terminal.screen import Room, labelled

FIRST_START = "a first start that is not counted"
"""Of a change that keeps on disk what the next start reads."""


def write(case: Case, page: Page, room: Room) -> None:
    screen.title(case, page)
    claim = claimed(case)
    page.line((headline(case), "bold"), indent=0)
    page.gap()
    if claim is not None:
        _gain(case, claim, page, room)
    elif case.conclusion is not None:
        tune_reason.write(case, page, room, headline(case))
    _slow(case, page, room)
    _by_hand(case, page, room)
    tune_patch.write(case, page, room)
    page.gap()
    screen.notes(case, page, room)
    _next(case, page, claim)


def headline(case: Case) -> str:
    """One sentence that needs no knowledge of flatout."""
    claim = claimed(case)
    names, outcome = words.names_in(case), case.conclusion.outcome if case.conclusion is not None else ""
    if claim is not None and claim.speedup is not None:
        told = "; ".join(words.lever(text, names) for text in claim.levers)
        gives = gain(claim, case.whole_run, _steps(case))
        which = "The change" if len(claim.levers) == 1 else "The changes"
        return f"{gives}. {which}: {told}. {agreement(case, claim)}."
    tried = [trial for trial in case.trials if trial.stage in ("single", "run")]
    if outcome == "done":
        none = f"none of {len(tried)} changes that were tried is faster" if tried else "no change fits this program"
        none = "the one change that was tried is not faster" if len(tried) == 1 else none
        return f"Nothing worth changing: {none}."
    best = refused(case)
    if best is not None:
        did = words.trial(best, names)
        return f"No change is proposed. The fastest that was tried: {did}. But {tune_reason.differs(best)}."
    if outcome == "undecided" and case.conclusion is not None and case.conclusion.by_hand:
        return f"No change that flatout can make fits what is slow here{_but(case)}: it has to be changed by hand."
    if outcome == "undecided" and tried:
        so_far = f"{screen.several(len(tried), 'change')} {'was' if len(tried) == 1 else 'were'} tried"
        none = "none is shown to be faster so far, so none is proposed"
        return f"Not decided yet: {_why_not_decided(case)}. {so_far}, and {none}."
    return sentence(case.verdict) or NO_VERDICT


def _why_not_decided(case: Case) -> str:
    reason = clean(case.conclusion.reason if case.conclusion is not None else "")
    stopped = reason.endswith((f"{INTERRUPTED}.", f"{WHILE_TUNED}."))
    return reason.removeprefix("Undecided: ").removesuffix(".") if stopped else "the time budget is used up"


def _but(case: Case) -> str:
    tried = [trial for trial in case.trials if trial.stage in ("single", "run")]
    return f" ({screen.several(len(tried), 'change')} tried)" if tried else ""


def how_known(case: Case) -> str:
    """What the change does to the whole run and what was compared, or why nothing is claimed, for people."""
    claim = claimed(case)
    if claim is not None:
        whole = f"This run: {whole_run(case.whole_run)} " if case.whole_run is not None else ""
        return whole + proof(case, claim)
    if case.conclusion is None:
        return ""
    reason = clean(case.conclusion.reason).partition(" By hand: the lever")[0]
    return "" if reason in headline(case) else tune_reason.told(case, reason)


def _gain(case: Case, claim: Trial, page: Page, room: Room) -> None:
    whole = case.whole_run
    if whole is not None:
        labelled(page, "This run", whole_run(whole), _pays(whole, claim))
    before = f"{duration(claim.step_ms * claim.speedup.ratio)} → " if claim.step_ms and claim.speedup else ""
    if claim.step_ms and claim.speedup is not None:
        text = f"{before}{duration(claim.step_ms)}"
        if claim.rounds:
            bounds = f"{words.factor(claim.speedup.low)} and {words.factor(claim.speedup.high)}"
            text += f", {words.factor(claim.speedup.ratio)} times as fast: between {bounds} with 95 % confidence"
            text += f" ({claim.rounds} rounds, with and without the change in turns)"
        labelled(page, "A step", text)
    if told := proof(case, claim):
        labelled(page, "Same?", f"{agreement(case, claim)}. Compared: ", elide(screen.lower(told), room.words))


def agreement(case: Case, claim: Trial) -> str:
    """`Same results up to rounding`; and how far that goes, where it is not the whole training."""
    same = tune_reason.capital(words.agreement(numbers(claim, case.whole_run)))
    return f"{same} in its first steps; more could not be compared" if first_steps_alone(case.whole_run) else same


def proof(case: Case, claim: Trial | None) -> str:
    """What was compared, of the whole training where there was time for that."""
    if case.whole_run is not None and case.whole_run.compared:
        return words.compared(case.whole_run.compared)
    return words.compared(tune_reason.how_compared(claim)) if claim is not None else ""


def whole_run(whole: WholeRun) -> str:
    """What the change does to the run from its start to its end."""
    if whole.after_seconds is None:
        return clean(whole.note) or "not measured"
    before = f"{duration(1000 * whole.before_seconds)} → " if whole.before_seconds is not None else ""
    text = f"{before}{duration(1000 * whole.after_seconds)}"
    if whole.speedup is not None:
        text += f", {words.speedup(whole.speedup)}{' from start to end' if whole.complete else ''}"
    if not whole.complete:
        text += f", as far as it was run{f' ({clean(whole.note, 120)})' if whole.note else ''}"
    how = (
        "estimated from its steps"
        if whole.estimated
        else f"measured in {whole.pairs} pair{'s' if whole.pairs > 1 else ''} of runs"
    )
    if whole.next_start:
        how += f" after {FIRST_START}"
    text += f"; {how}, start-up and compiling included"
    if whole.complete and whole.note:
        text += f"; {clean(whole.note, 120)}"
    if whole.tenfold is not None:
        text += f". With ten times as many steps: {words.factor(whole.tenfold)} times as fast"
    gains_later = whole.speedup is not None and (whole.tenfold is None or whole.tenfold > whole.speedup.ratio)
    if whole.complete and whole.speedup is not None and whole.speedup.low <= 1.0 and gains_later:
        text += ". The longer the run, the more it gains"
    return f"{text}."


def _pays(whole: WholeRun, claim: Trial) -> str:
    """What the change costs once, and after how many steps that is earned back; only where both runs were measured."""
    if whole.pairs < 2 or not whole.complete or not claim.step_ms or claim.speedup is None:
        return ""
    if whole.before_seconds is None or whole.after_seconds is None or whole.speedup is None:
        return ""
    saved = claim.step_ms * (claim.speedup.ratio - 1) / 1000
    once = whole.after_seconds - whole.before_seconds + whole.steps * saved
    if saved <= 0 or once < 0.02 * whole.before_seconds:
        return ""
    steps = screen.several(max(round(once / saved), 1), "step")
    return f" About {duration(1000 * once)} is spent once (tracing, compiling), and earned back after about {steps}."


def _slow(case: Case, page: Page, room: Room) -> None:
    told = [item for item in case.findings if (item.cost_share or 0.0) >= 0.05][: room.findings]
    if not told:
        return
    page.heading("What is slow" if len(told) == 1 else "What is slow, the most expensive first")
    for number, finding in enumerate(told, 1):
        part = "of each step" if finding.of == "step" else "of the run"
        costs = f"   {_at_least(case, finding)}{share(finding.cost_share)} {part} ({clean(finding.cause, 40)})"
        spot = page.location(finding.where, min(48, max(page.width - len(costs) - 5, 20))) or "the whole program"
        page.line((f"{number}  ", "bold"), (spot, "bold"), costs)
        other = tune_patch.elsewhere(case, finding, claimed(case))
        what = elide(sentence(finding.summary), min(room.words, 3 * page.width))
        page.line(f"{what} {other}".strip(), indent=5)
        if claimed(case) is None and finding.fixes:
            _todo(case, finding, page, room)


def _todo(case: Case, finding: Finding, page: Page, room: Room) -> None:
    """What to do about a finding where nothing is claimed."""
    refused = _refused(case, finding)
    if refused:
        page.labelled("do", f"nothing yet: its cure was tried, but {refused}", indent=5, room=7)
        return
    if gives := run_screen.at_most(case, finding):
        page.labelled("gives", gives, indent=5, room=7)
    page.labelled("do", elide(screen.advice(finding), room.words), run_screen.expected(case, finding), indent=5, room=7)


def _at_least(case: Case, finding: Finding) -> str:
    """The change has saved more of a step than the first finding was seen to cost."""
    claim = claimed(case)
    if claim is None or claim.speedup is None or finding.of != "step" or finding is not case.findings[0]:
        return ""
    return "at least " if (finding.cost_share or 0.0) < 1 - 1 / claim.speedup.low else ""


def _refused(case: Case, finding: Finding) -> str:
    """Why the cure of a finding is not proposed although it was faster; empty where it was not tried, or is no cure."""
    best = refused(case)
    if best is None:
        return ""
    cures = {parse(fix.lever)[0] for fix in finding.fixes if fix.lever}
    return tune_reason.differs(best) if cures & {parse(text)[0] for text in best.levers} else ""


def _by_hand(case: Case, page: Page, room: Room) -> None:
    if case.conclusion is not None and case.conclusion.by_hand and claimed(case) is not None:
        page.heading("To write by hand")
        for told in case.conclusion.by_hand[: max(room.findings, 1)]:
            page.line(elide(clean(told), room.words))


def _next(case: Case, page: Page, claim: Trial | None) -> None:
    command, what = _advice(case, claim, elide(screen.command_words(case), max(page.width - 40, 40)))
    labelled(page, "Next", (command, "bold"), f"   {what}")
    skipped = len(case.evidence_of(LeverSkipped))
    why = " tells why" if skipped else ""
    screen.rest(page, why, (skipped, "change not tried"))


def _advice(case: Case, claim: Trial | None, program: str) -> tuple[str, str]:
    """The command to type next, and what it does."""
    if claim is not None and case.patch and not program.partition(" ")[0].endswith(".ipynb"):
        return f"flatout show --view patch | patch -p1{_base(case)}", "makes the change; so far nothing is changed"
    if claim is not None:
        return f"flatout run --with @tuned {program}", "runs it with the change, the source untouched"
    if case.program.error and case.steps is None:
        return f"flatout tune {program}", "again, when the program runs to its end"
    if case.conclusion is not None and case.conclusion.command:
        return clean(case.conclusion.command, 300), "goes on from here"
    if case.findings:
        return f"flatout explain {clean(case.findings[0].cause, 40)}", "tells what to do by hand"
    return "flatout report -o report.html", "writes all of it as a page"


def _base(case: Case) -> str:
    """The option of `patch` that names the directory of its paths, where that is not the one of the program's run."""
    here, words_ = Path(case.program.directory or "."), case.program.command
    changed = [row[6:] for row in case.patch.splitlines() if row.startswith("+++ b/")]
    programs = {os.path.normpath(here / word) for word in words_ if word.endswith(".py")}
    # Where only modules of the program are changed, it is they that tell where the paths begin.
    modules = {os.path.normpath(here / one.file) for one in queries.locations(case) if one.file}
    for known in (programs, modules):
        above = (parent for one in sorted(known) for parent in Path(one).parents)
        for base in dict.fromkeys((here, *(Path(one).parent for one in programs), *here.parents, *above)):
            if known & {os.path.normpath(base / path) for path in changed}:
                return "" if base == here else f" -d {shlex.quote(clean(base))}"
    return ""


def _steps(case: Case) -> str:
    return name_of_steps(case.steps.kind) if case.steps is not None else "steps"
