"""The trials of a tune: the claim, a table with intervals, the levers that were not tried and why, the patch."""

from __future__ import annotations

from pathlib import Path

from flatout.model.case import Case, Trial
from flatout.model.evidence.outcomes import LeverSkipped
from flatout.model.levers import shown
from flatout.model.text import LONGEST, clean_code
from flatout.report import words
from flatout.report.claims import claimed, numbers
from flatout.report.formatting import clean, duration, elide
from flatout.report.labels import TUNE_OUTCOMES
from flatout.report.proof_text import told
from flatout.report.terminal.page import Column, Page
from flatout.report.trial_groups import groups, name, outcome


def has_data(case: Case) -> bool:
    return bool(case.trials)


def write(case: Case, page: Page, directory: Path | None) -> None:
    page.line((clean(case.verdict), "bold"), indent=0)
    claim(case, page)
    if case.steps:
        page.line(f"baseline: {duration(case.steps.ms.median)} a step, found by {clean(case.steps.found_by)}")
    if not case.trials:
        page.missing("No lever was tried in this case.", "`flatout tune PROGRAM` tries the levers on a program.")
    tables(case, page)
    _remarks(case, page)
    skipped = case.evidence_of(LeverSkipped)
    if skipped:
        page.heading("Left out")
        for item in skipped:
            page.labelled(clean(item.value), clean(item.note), indent=2, room=21)
    if case.notes:
        page.heading("Notes")
        for remark in case.notes:
            page.line(clean(remark.text))
    if case.tuned and case.kind == "tune":
        page.heading("To use it")
        page.line("flatout run --with @tuned …", "   runs the program for real with these levers")
    if case.conclusion is not None and case.conclusion.by_hand:
        page.heading("By hand", "levers of the claim that the patch does not hold")
        for told in case.conclusion.by_hand:
            page.line(clean(told, 900))
    if case.patch:
        page.heading("Patch", f"checked: {_checked(case)}")
        for row in case.patch.splitlines()[:60]:
            page.code(elide(clean_code(row), LONGEST))


def _checked(case: Case) -> str:
    """What was seen of the patch itself."""
    found = claimed(case)
    if case.kind == "data" or found is None:
        return "same elements" if case.kind == "data" else "it can be made of this source"
    agrees = numbers(found, case.whole_run)
    same = "same numbers" if agrees in ("exact", "reassociated") else words.agreement(agrees)
    return f"{'same speedup' if found.stage == 'combination' else 'the speedup is its own'}, {same}"


def claim(case: Case, page: Page) -> None:
    """The outcome in one word, and step and whole run side by side."""
    if case.conclusion is not None:
        word = TUNE_OUTCOMES.get(case.conclusion.outcome, clean(case.conclusion.outcome, 40))
        page.line(f"verdict: {word}")
    for line in told(case.proof) if case.proof is not None else ():
        page.line(clean(f"proof: {line}", 900))
    whole = case.whole_run
    if whole is None:
        return
    what = "patched" if whole.patched else "with the levers injected"
    how = "estimated from its steps" if whole.estimated else f"{whole.pairs} pairs of runs, imports included"
    how += " after a first start that is not counted" if whole.next_start else ""
    end = "" if whole.complete else "; the end of the program was not reached"
    page.line(f"whole run: {what}, {how}{end}")


def tables(case: Case, page: Page) -> None:
    for group in groups(case):
        page.heading(clean(group.title), clean(group.note))
        page.table(
            [
                Column("lever", flexible=True),
                Column("speedup", right=True),
                Column("interval"),
                Column("outcome"),
                Column("results", drop=1),
                Column("CPU", right=True, drop=3),
                Column("step", right=True, drop=4),
                Column("rounds", right=True, drop=5),
            ],
            [_row(trial) for trial in group.trials],
        )


def _row(trial: Trial) -> list[str]:
    speedup, cpu = trial.speedup, trial.cpu
    known = speedup is not None and speedup.high != float("inf")
    return [
        name(trial),
        f"{speedup.ratio:.2f}×" if speedup else "",
        f"[{speedup.low:.2f}, {speedup.high:.2f}]" if speedup and known else "",
        "" if trial.stage == "bound" and trial.status not in ("failed", "timeout") else outcome(trial),
        words.agreement(trial.parity) if trial.parity else "",
        f"{cpu.ratio:.2f}×" if cpu else "",
        duration(trial.step_ms) if trial.step_ms else "",
        str(trial.rounds) if trial.rounds else "",
    ]


def _remarks(case: Case, page: Page) -> None:
    """Notes that do not fit into the table: why a trial failed, how its results were compared, notes of a lever."""
    noted = [trial for trial in case.trials if trial.note and trial.stage != "bound"]
    if noted:
        page.heading("Remarks")
    for trial in noted:
        page.line((f"{clean(shown(trial.levers), 60)}: ", "bold"), clean(trial.note, 600))
