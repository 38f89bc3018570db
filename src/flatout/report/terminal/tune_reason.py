"""Why a tune proposes nothing: what differed, what is still open, how it is known that nothing is left to gain."""

from __future__ import annotations

import re
from collections.abc import Mapping

from flatout.model.case import Case, Trial
from flatout.model.evidence.outcomes import LeverSkipped
from flatout.model.levers import shown
from flatout.report import words
from flatout.report.claims import bounds, refused
from flatout.report.formatting import clean, elide, sentence
from flatout.report.terminal.page import Column, Page
from flatout.report.terminal.screen import Room, labelled

TOO_FEW, OUT_OF_TIME = "too few rounds of ", "no time was left for "
"""How a conclusion names levers that were not tried for long enough, or not any more (`tune/verdict.py`)."""
TOO_LITTLE = "too few measurements"
_MEASURED = re.compile(r"(\d[\d.]*)× ?\[(\d[\d.]*), (\d[\d.]*)\]")
_ONE_TRIED = "the one change tried was not measurably faster, and cannot"


def write(case: Case, page: Page, room: Room, headline: str) -> None:
    """How an outcome is known that is no win."""
    assert case.conclusion is not None
    best = refused(case)
    if best is not None:
        seen = words.compared(how_compared(best))
        seen = seen.replace("agree to", "differ by up to").replace("agrees to", "differs by")
        why = seen or capital(clean(best.note).rpartition("; ")[2])
        labelled(page, "Why", elide(why, min(room.words, 500)))
        if best.speedup is not None:
            what = "A run" if best.stage == "run" else "A step"
            labelled(page, what, f"with it, {words.speedup(best.speedup)}, which is not claimed")
        return
    reason = clean(case.conclusion.reason).partition(" By hand: the lever")[0]
    if case.program.directory:
        reason = reason.replace(f"{clean(case.program.directory)}/", "")
    for begin in ("Nothing worth changing: ", "Undecided: "):
        reason = reason.removeprefix(begin)
    if case.conclusion.outcome == "undecided":
        reason = _open_changes(case, reason, page, room)
    if reason and reason not in headline:
        labelled(page, "Why", elide(told(case, reason), min(room.words, 700)))


def told(case: Case, reason: str) -> str:
    """A reason in words for people."""
    return capital(_plain(in_words(case, reason.replace(" ×", "×"))))


def _plain(text: str) -> str:
    """Without `×`, `beyond the noise` and `of 1 changes`."""
    text = _MEASURED.sub(_measured, text).replace("faster beyond the noise", "measurably faster")
    text = text.replace("of 1 changes tried, none was measurably faster, and none can", _ONE_TRIED)
    text = re.sub(r"give more than (\d[\d.]*)×", r"make it more than \1 times as fast", text)
    return sentence(re.sub(r"(?<=\d)×", " times", text))


def _measured(found: re.Match[str]) -> str:
    """`1.18× [0.76, 2.32]` in the words of all other speedups."""
    return f"({found[1]} times as fast, {found[2]} to {found[3]})"


def _open_changes(case: Case, reason: str, page: Page, room: Room) -> str:
    """A table of what was not decided; returns what else the reason says."""
    names, rows, rest = words.names_in(case), [], []
    for clause in filter(None, reason.rstrip(".").split("; ")):
        if clause.startswith(TOO_FEW):
            rows += [
                [words.trial(one, names), words.speedup(one.speedup) if one.speedup else TOO_LITTLE]
                for one in case.trials
                if one.stage != "bound" and _in_reason(one) in f"{clause},"
            ]
        elif clause.startswith(OUT_OF_TIME):
            rows += [
                [words.untried(name), "not tried: no time left"]
                for name in clause.removeprefix(OUT_OF_TIME).split(", ")
            ]
        elif not clause.startswith("by hand:"):  # the findings say it
            rest.append(clause)
    most = 2 * room.findings + 1
    rows = [list(row) for row in dict.fromkeys(map(tuple, rows))]
    if rows:
        left = f"the first {most} of {len(rows)}" if len(rows) > most else ""
        page.heading("Not decided", left)
        page.table([Column("change", flexible=True), Column("measured so far")], rows[:most])
    return "; ".join(rest)


def _in_reason(trial: Trial) -> str:
    """How a conclusion names a trial (`tune/verdict.py`)."""
    found = trial.speedup
    return f"{shown(trial.levers)}{f' {found.ratio:.2f} × {bounds(trial)}' if found is not None else ''},"


def in_words(case: Case, reason: str) -> str:
    """A reason with what levers do in place of their names. Advice stays: there a name may be a common word."""
    names = words.names_in(case)
    known = {shown(one.levers): words.change(one.levers, names) for one in case.trials if one.levers}
    skipped = {str(item.value): words.untried(str(item.value)) for item in case.evidence_of(LeverSkipped)}
    clauses = []
    for clause in reason.split("; "):
        if clause.startswith("by hand:"):
            clauses.append(clause)
        elif clause.startswith(OUT_OF_TIME):
            clauses.append(_quoted(clause, skipped))
        else:
            clause = _quoted(clause, known)
            clauses.append(re.sub(r"\(([\w-]+): ", lambda found: f"({skipped.get(found[1], found[1])}: ", clause))
    return "; ".join(clauses)


def _quoted(text: str, said: Mapping[str, str]) -> str:
    if not said:
        return text
    names = "|".join(re.escape(name) for name in sorted(said, key=len, reverse=True))
    return re.sub(rf"(?<![\w=/-])(?:{names})(?![\w=/-])", lambda found: f'"{said[found[0]]}"', text)


def differs(trial: Trial) -> str:
    if trial.status == "won":
        what = "computes in lower precision" if trial.equivalence == "precision" else "changes the training"
        return f"it {what}, which --allow {clean(trial.equivalence, 20)} accepts"
    if trial.parity in ("", "unknown", "exact", "reassociated", "statistical"):
        return (
            "the program does not end with it as it does without"
            if trial.status == "failed"
            else "its results could not be compared"
        )
    return "its results differ by more than rounding" if trial.parity == "precision" else "its results are different"


def how_compared(claim: Trial) -> str:
    """The part of a trial's note that tells how it was compared."""
    parts = clean(claim.note, 600).split("; ")
    begins = [n for n, part in enumerate(parts) if "agree" in part or "are the same" in part or "is the same" in part]
    return "; ".join(parts[begins[0] :]) if begins else ""


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
