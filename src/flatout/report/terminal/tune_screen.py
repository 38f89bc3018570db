"""The screen of a tune: what it has come to, what that does to the run, how it is known, the patch, what to type."""

from __future__ import annotations

import re
from collections.abc import Mapping

from flatout.model.case import Case, Interval, Trial, WholeRun
from flatout.model.evidence.outcomes import LeverSkipped
from flatout.model.levers import shown
from flatout.model.text import LONGEST, clean_code
from flatout.report import words
from flatout.report.formatting import clean, duration, elide, sentence, share
from flatout.report.gain_text import gain
from flatout.report.labels import NO_VERDICT, name_of_steps
from flatout.report.terminal import screen
from flatout.report.terminal.page import Page
from flatout.report.terminal.screen import Room, labelled

WEAKNESS = ("exact", "reassociated", "precision", "statistical")
OUT_OF_TIME = "no time was left for "
"""How a conclusion names the levers that were not tried any more (`tune/verdict.py`)."""
TOO_FEW = "too few rounds "
"""How it names those that were not decided: `too few rounds of xla 1.18× [0.76, 2.32]`."""
_MEASURED = re.compile(r"(\d[\d.]*)× ?\[(\d[\d.]*), (\d[\d.]*)\]")


_ONE_TRIED = "the one change tried was not measurably faster, and cannot"


def write(case: Case, page: Page, room: Room) -> None:
    screen.title(case, page)
    claim = claimed(case)
    page.line((headline(case), "bold"), indent=0)
    page.gap()
    if claim is not None:
        _gain(case, claim, page, room)
    elif case.conclusion is not None:
        _reason(case, page, room)
    _slow(case, page, room)
    _patch(case, page, room)
    page.gap()
    screen.notes(case, page, room)
    _next(case, page, claim)


def headline(case: Case) -> str:
    """One sentence that needs no knowledge of flatout."""
    claim = claimed(case)
    names, outcome = words.names_in(case), case.conclusion.outcome if case.conclusion is not None else ""
    if claim is not None and claim.speedup is not None:
        count = len(claim.levers)
        how = "one change" if count == 1 else f"{count} changes"
        told = "; ".join(words.lever(text, names) for text in claim.levers)
        gives = gain(claim, case.whole_run, _steps(case))
        return f"{gives}, with {how}: {told}. {_capital(words.agreement(numbers(case, claim)))}."
    tried = [trial for trial in case.trials if trial.stage in ("single", "run")]
    if outcome == "done":
        none = f"none of {len(tried)} changes that were tried is faster" if tried else "no change fits this program"
        none = "the one change that was tried is not faster" if len(tried) == 1 else none
        return f"Nothing worth changing: {none}."
    best = _different(case)
    if outcome == "not-the-same" and best is not None and best.speedup is not None:
        did = f"{words.speedup(best.speedup)}: {words.trial(best, names)}"
        return f"No change is proposed. One was {did}; but {_differs(best)}."
    if outcome == "undecided" and tried:
        so_far = f"{screen.several(len(tried), 'change')} {'was' if len(tried) == 1 else 'were'} tried"
        return f"Not decided yet: the time was up. {so_far}, and none is proven so far."
    return sentence(case.verdict) or NO_VERDICT


def claimed(case: Case) -> Trial | None:
    """The trial whose speedup is claimed: the interval that the verdict states."""
    if not case.tuned or (case.conclusion is not None and case.conclusion.outcome != "won"):
        return None
    won = [one for one in case.trials if one.status == "won" and one.levers == case.tuned and one.speedup is not None]
    stages = [one for one in won if one.stage in ("combination", "patch", "run")]
    told = (one for one in stages if one.speedup is not None and _bounds(one.speedup) in case.verdict)
    return next(told, next(iter(stages), None))


def _bounds(interval: Interval) -> str:
    """As the verdict writes them (`tune/verdict.py`)."""
    return f"[{interval.low:.2f}, {interval.high:.2f}]"


def how_known(case: Case) -> str:
    """What the change does to the whole run and what was compared, or why nothing is claimed, for people."""
    claim = claimed(case)
    if claim is not None:
        whole = f"This run: {whole_run(case.whole_run)} " if case.whole_run is not None else ""
        return whole + proof(case, claim)
    if case.conclusion is None:
        return ""
    reason = clean(case.conclusion.reason).partition(" By hand: the lever")[0]
    return "" if reason in headline(case) else _capital(_plain(_in_words(case, reason.replace(" ×", "×"))))


def _gain(case: Case, claim: Trial, page: Page, room: Room) -> None:
    whole = case.whole_run
    if whole is not None:
        labelled(page, "This run", whole_run(whole), _pays(whole, claim))
    before = f"{duration(claim.step_ms * claim.speedup.ratio)} → " if claim.step_ms and claim.speedup else ""
    if claim.step_ms and claim.speedup is not None:
        bounds = f"{words.factor(claim.speedup.low)} to {words.factor(claim.speedup.high)}"
        rounds = f"; {bounds} is the 95 % interval of {claim.rounds} paired rounds" if claim.rounds else ""
        labelled(page, "A step", f"{before}{duration(claim.step_ms)}, measured side by side{rounds}")
    if told := proof(case, claim):
        labelled(page, "Same?", elide(told, room.words))


def proof(case: Case, claim: Trial | None) -> str:
    """What was compared, of the whole training where there was time for that."""
    if case.whole_run is not None and case.whole_run.compared:
        return words.compared(case.whole_run.compared)
    return words.compared(_how(claim)) if claim is not None else ""


def whole_run(whole: WholeRun) -> str:
    """What the change does to the run from its start to its end."""
    if whole.after_seconds is None:
        return clean(whole.note) or "not measured"
    before = f"{duration(1000 * whole.before_seconds)} → " if whole.before_seconds is not None else ""
    text = f"{before}{duration(1000 * whole.after_seconds)}"
    if whole.speedup is not None:
        text += f", {words.speedup(whole.speedup)}{' as a whole' if whole.complete else ''}"
    if not whole.complete:
        text += f", as far as it was run{f' ({clean(whole.note, 120)})' if whole.note else ''}"
    how = (
        "estimated from its steps"
        if whole.estimated
        else f"measured in {whole.pairs} pair{'s' if whole.pairs > 1 else ''} of runs"
    )
    text += f"; start-up and warm-up included, {how}"
    if whole.complete and whole.note:
        text += f"; {clean(whole.note, 120)}"
    if whole.tenfold is not None:
        text += f". With ten times as many steps: {words.factor(whole.tenfold)} times as fast"
    if whole.complete and whole.speedup is not None and whole.speedup.low <= 1.0:
        text += ". Runs this short may gain nothing; longer ones gain more"
    return f"{text}."


def _pays(whole: WholeRun, claim: Trial) -> str:
    """What the change costs once, and after how many steps that is earned back; only where both runs were measured."""
    if whole.pairs < 2 or not whole.complete or not claim.step_ms or claim.speedup is None:
        return ""
    if whole.before_seconds is None or whole.after_seconds is None:
        return ""
    saved = claim.step_ms * (claim.speedup.ratio - 1) / 1000
    once = whole.after_seconds - whole.before_seconds + whole.steps * saved
    if saved <= 0 or once < 0.02 * whole.before_seconds:
        return ""
    steps = screen.several(max(round(once / saved), 1), "step")
    return f" About {duration(1000 * once)} is spent once (tracing, compiling), and earned back after about {steps}."


def _reason(case: Case, page: Page, room: Room) -> None:
    """How an outcome is known that is no win."""
    assert case.conclusion is not None
    best = _different(case)
    if case.conclusion.outcome == "not-the-same" and best is not None:
        told = words.compared(_how(best)).replace("agree to", "differ by up to").replace("agrees to", "differs by")
        labelled(page, "Why", elide(told or _capital(clean(best.note).rpartition("; ")[2]), min(room.words, 500)))
        return
    reason = clean(case.conclusion.reason).partition(" By hand: the lever")[0]
    for begin in ("Nothing worth changing: ", "Undecided: "):
        reason = reason.removeprefix(begin)
    if reason and reason not in headline(case):
        told = _plain(_in_words(case, reason.replace(" ×", "×")))
        labelled(page, "Why", elide(_capital(told), min(room.words, 700)))


def _in_words(case: Case, reason: str) -> str:
    """A reason with what levers do in place of their names. Advice stays: there a name may be a common word."""
    names = words.names_in(case)
    known = {shown(one.levers): words.change(one.levers, names) for one in case.trials if one.levers}
    skipped = {str(item.value): words.untried(str(item.value)) for item in case.evidence_of(LeverSkipped)}
    clauses = []
    for clause in reason.split("; "):
        if clause.startswith("by hand:"):
            clauses.append(clause)
        elif clause.startswith(TOO_FEW):
            told = _quoted(clause.removeprefix(f"{TOO_FEW}of"), known)
            clauses.append(_MEASURED.sub(_measured, f"{TOO_FEW}to decide about{told}"))
        elif clause.startswith(OUT_OF_TIME):
            clauses.append(_quoted(clause, skipped))
        else:
            clause = _quoted(clause, known)
            clauses.append(re.sub(r"\(([\w-]+): ", lambda found: f"({skipped.get(found[1], found[1])}: ", clause))
    return "; ".join(clauses)


def _plain(text: str) -> str:
    """Without `×`, `beyond the noise` and `of 1 changes`."""
    text = _MEASURED.sub(_measured, text).replace("faster beyond the noise", "measurably faster")
    text = text.replace("of 1 changes tried, none was measurably faster, and none can", _ONE_TRIED)
    text = re.sub(r"give more than (\d[\d.]*)×", r"make it more than \1 times as fast", text)
    return sentence(re.sub(r"(?<=\d)×", " times", text))


def _measured(found: re.Match[str]) -> str:
    """`1.18× [0.76, 2.32]` in the words of all other speedups."""
    return f"({found[1]} times as fast, {found[2]} to {found[3]})"


def _quoted(text: str, said: Mapping[str, str]) -> str:
    if not said:
        return text
    names = "|".join(re.escape(name) for name in sorted(said, key=len, reverse=True))
    return re.sub(rf"(?<![\w=/-])(?:{names})(?![\w=/-])", lambda found: f'"{said[found[0]]}"', text)


def _slow(case: Case, page: Page, room: Room) -> None:
    told = [item for item in case.findings if (item.cost_share or 0.0) >= 0.05][: room.findings]
    if not told:
        return
    page.heading("What is slow" if len(told) == 1 else "What is slow, the most expensive first")
    for number, finding in enumerate(told, 1):
        spot = page.location(finding.where, min(48, page.width - 6)) or "the whole program"
        part = "of each step" if finding.of == "step" else "of the run"
        page.line(
            (f"{number}  ", "bold"),
            (spot, "cyan"),
            f"   {share(finding.cost_share)} {part} ({clean(finding.cause, 40)})",
        )
        page.line(elide(sentence(finding.summary), min(room.words, 3 * page.width)), indent=5)
        if claimed(case) is None and finding.fixes:
            page.labelled("do", elide(screen.advice(finding), room.words), indent=5, room=4)


def _patch(case: Case, page: Page, room: Room) -> None:
    if case.conclusion is not None and case.conclusion.by_hand:
        page.heading("To write by hand")
        for told in case.conclusion.by_hand[: max(room.findings, 1)]:
            page.line(elide(clean(told), room.words))
    if not case.patch or not room.patch:
        return
    lines = [row for row in case.patch.splitlines() if not row.startswith("--- ")]
    left = len(lines) - room.patch
    note = f"the first {room.patch} of {len(lines)} lines" if left > 0 else ""
    page.heading("The patch", note or "measured as written: same speedup, same results")
    for row in lines[: room.patch]:
        page.code(elide(clean_code(row), min(LONGEST, page.width - 4)))


def _next(case: Case, page: Page, claim: Trial | None) -> None:
    command, what = _advice(case, claim, elide(screen.command_words(case), max(page.width - 40, 40)))
    labelled(page, "Next", (command, "cyan"), f"   {what}")
    skipped = len(case.evidence_of(LeverSkipped))
    counts = (len(case.trials), "trial"), (skipped, "change not tried")
    screen.rest(page, " tells of each" if any(count for count, _ in counts) else "", *counts)


def _advice(case: Case, claim: Trial | None, program: str) -> tuple[str, str]:
    """The command to type next, and what it does."""
    if claim is not None and case.patch and not program.partition(" ")[0].endswith(".ipynb"):
        return "flatout show --view patch | patch -p1", "makes the change in this directory"
    if claim is not None:
        return f"flatout run --with @tuned {program}", "runs it with the change, the source untouched"
    if case.program.error and case.steps is None:
        return f"flatout tune {program}", "again, when the program runs to its end"
    if case.conclusion is not None and case.conclusion.command:
        return clean(case.conclusion.command, 300), "goes on from here"
    if case.findings:
        return f"flatout explain {clean(case.findings[0].cause, 40)}", "tells what to do by hand"
    return "flatout report -o report.html", "writes all of it as a page"


def _steps(case: Case) -> str:
    return name_of_steps(case.steps.kind) if case.steps is not None else "steps"


def numbers(case: Case, claim: Trial) -> str:
    """The weaker of what the race and the comparison of the whole training show."""
    found = [claim.parity, case.whole_run.parity if case.whole_run is not None else ""]
    known = [one for one in found if one]
    return max(known, key=lambda one: WEAKNESS.index(one) if one in WEAKNESS else len(WEAKNESS), default="unknown")


def _how(claim: Trial) -> str:
    """The part of a trial's note that tells how it was compared."""
    parts = clean(claim.note, 600).split("; ")
    begins = [n for n, part in enumerate(parts) if "agree" in part or "are the same" in part or "is the same" in part]
    return "; ".join(parts[begins[0] :]) if begins else ""


def _different(case: Case) -> Trial | None:
    """The fastest of what was faster and is not proposed, as its results are not the same or could not be compared."""
    found = [
        trial
        for trial in case.trials
        if trial.speedup is not None
        and trial.stage != "bound"
        and trial.speedup.low > 1.0
        and (trial.status in ("failed", "noise") or trial.equivalence in ("precision", "semantic"))
    ]
    return max(found, key=lambda trial: trial.speedup.ratio if trial.speedup is not None else 0.0, default=None)


def _differs(trial: Trial) -> str:
    if trial.status == "won":
        what = "computes in lower precision" if trial.equivalence == "precision" else "changes the training"
        return f"it {what}, which --allow {clean(trial.equivalence, 20)} accepts"
    if trial.parity in ("", "unknown", "exact", "reassociated", "statistical"):
        return (
            "the program does not end well with it" if trial.status == "failed" else "its results could not be compared"
        )
    return "its results differ by more than rounding" if trial.parity == "precision" else "its results are different"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
