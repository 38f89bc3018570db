"""What a tune has come to: won, done, undecided, or faster but not the same; one sentence or two, and how it is known.

Nothing is called done while a cure that a finding names was not tried, a lever was left out for want of time, or an
interval is open.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from flatout.causes import catalogue as causes
from flatout.cures import levers as all_levers
from flatout.model.case import Case, Conclusion, Finding, Interval, Trial, WholeRun
from flatout.model.evidence.outcomes import LeverSkipped
from flatout.model.levers import parse, shown
from flatout.report import claims
from flatout.tune.clock import DEFAULT_SECONDS
from flatout.tune.conclusions import (
    FEWEST_STEPS,
    NO_TIME,
    TOO_SHORT,
    claim_of,
    is_open,
    keeps_the_numbers,
    not_the_same,
    ratio,
)
from flatout.tune.plan import excludes
from flatout.tune.request import TuneRequest

CURE_MATTERS = 0.1
"""Share of a step that a finding must cost for an untried cure of it to keep the verdict open."""
COMPUTE_BOUND = 0.9
"""Share of a step that is computing, from which on the verdict says so."""
BROKEN = ("failed", "timeout")
UNKNOWN_GAIN = {"not-measured": "no whole run was measured", "no-end": "its end was not reached"}
"""Why nothing is claimed of the run."""
LEAST_MINUTES = 15
"""The budget that an undecided tune asks for."""


def concluded(case: Case, request: TuneRequest, problem: str = "", stopped: str = "") -> Case:
    """The case with its conclusion and its verdict; it claims only what was confirmed, to the end of the program."""
    conclusion = conclude(case, request, problem, stopped)
    text = conclusion.reason + (f" Decide it: {conclusion.command}" if conclusion.command else "")
    return replace(case, conclusion=conclusion, verdict=text)


def conclude(case: Case, request: TuneRequest, problem: str = "", stopped: str = "") -> Conclusion:
    """`problem`: why nothing could be tried; `stopped`: why the tune did not come to its end."""
    if stopped and claim_of(case) is None:
        return Conclusion("undecided", f"Undecided: {stopped}.", command(request))
    if case.steps is None:
        if case.program.error == TOO_SHORT:
            seconds = f"after {case.program.seconds:.0f} s, before its first step"
            return Conclusion("undecided", f"Undecided: the program {TOO_SHORT} {seconds}.", command(request))
        if case.program.error:
            return Conclusion("undecided", f"The program failed before its first step: {case.program.error}")
        return Conclusion("undecided", "No step was seen, so there is nothing to tune.")
    if case.steps.count < FEWEST_STEPS:
        if case.program.error and case.program.error != TOO_SHORT:
            return Conclusion("undecided", f"The program failed at its first steps: {case.program.error}")
        return Conclusion("undecided", "Only one step was seen: there is nothing to compare it with.")
    claim = claim_of(case)
    if claim is not None and claim.speedup is not None:
        text = won_text(claim, claim.speedup, case.whole_run)
        return Conclusion("won", text, stage=claim.stage, levers=claim.levers)
    tried = [trial for trial in case.trials if _tells(trial)]
    if problem and not tried:
        return Conclusion("undecided", problem)
    different = [trial for trial in tried if not_the_same(trial) or _changes_the_numbers(trial) or _fell(trial, tried)]
    left = _left_open(case, tried)
    if different:
        best = max(different, key=ratio)
        text = _different_text(best, different, left)
        return Conclusion("not-the-same", text, stage=best.stage, levers=best.levers)
    if by_hand := _to_write(case, tried):
        return Conclusion("undecided", f"Undecided: {'; '.join(left)}.", by_hand=tuple(by_hand))
    if left:
        return Conclusion("undecided", f"Undecided: {'; '.join(left)}.", command(request, _asked_for(case, tried)))
    return _done(case, tried)


def _tells(trial: Trial) -> bool:
    """Whether the verdict rests on it. Several levers at once that have not won show nothing of each."""
    return trial.stage in ("single", "combination", "patch", "run") or (trial.stage, trial.status) == ("at-once", "won")


# ── won ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def won_text(claim: Trial, speedup: Interval, whole: WholeRun | None) -> str:
    """`The run is 2.35 times as fast [2.10, 2.60], a step 10.90 times [9.60, 11.50], with xla; numbers: exact. …`"""
    numbers = claims.numbers(claim, whole)
    what = f"the patch for {shown(claim.levers)}" if claim.stage == "patch" else shown(claim.levers)
    text = f"{_gain_text(claim, speedup, whole)} with {what}; numbers: {numbers}."
    if whole is not None and whole.compared:
        text += f" Compared: {whole.compared}."
    return f"{text} {whole_run_text(whole)}" if whole is not None else text


def _gain_text(claim: Trial, speedup: Interval, whole: WholeRun | None) -> str:
    """The claim is that for the run which was started; the step's stands beside it, or alone where the run's is not
    known."""
    step = f"{speedup.ratio:.2f} times as fast [{speedup.low:.2f}, {speedup.high:.2f}]"
    tenfold = f", {whole.tenfold:.2f} times for ten times as many steps" if whole is not None and whole.tenfold else ""
    the_run = "From its second start on, the run" if whole is not None and whole.next_start else "The run"
    if claim.stage == "run":
        return f"{the_run} is {step}{tenfold},"
    why = claims.not_claimed(claim, whole)
    if whole is None or whole.speedup is None or why in UNKNOWN_GAIN:
        told = UNKNOWN_GAIN.get(why) or (whole.note if whole is not None else "")
        return f"Steps are {step} (what the run gains is not known: {told})"
    run = f"{whole.speedup.ratio:.2f} times as fast [{whole.speedup.low:.2f}, {whole.speedup.high:.2f}]"
    estimated = ", estimated" if whole.estimated else ""
    if why:
        gains = "is slower" if why == "slower" else "may gain nothing"
        return f"Steps are {step} (a run as short as this one {gains}: {run}{estimated}{tenfold})"
    return f"{the_run} is {run}{estimated}{tenfold}, a step {step},"


def whole_run_text(whole: WholeRun) -> str:
    """`Whole run 20.4 s → 8.7 s (2.35 × [2.1, 2.6]).`"""
    parts = [f"{'Whole run' if whole.complete else 'Of the whole run'}"]
    if whole.before_seconds is not None and whole.after_seconds is not None:
        parts.append(f"{whole.before_seconds:.1f} s → {whole.after_seconds:.1f} s")
    elif whole.after_seconds is not None:
        parts.append(f"{whole.after_seconds:.1f} s")
    if whole.speedup is not None:
        parts.append(f"({_bounds(whole.speedup)}{', estimated' if whole.estimated else ''})")
    note = f" ({whole.note})" if whole.note else ""
    return f"{' '.join(parts)}{note}."


# ── faster but not the same ──────────────────────────────────────────────────────────────────────────────────────────


def _changes_the_numbers(trial: Trial) -> bool:
    """A win that keeps less than the numbers, and is not combined unless asked for."""
    return trial.stage == "single" and trial.status == "won" and not keeps_the_numbers(trial.equivalence)


def _fell(trial: Trial, tried: Sequence[Trial]) -> bool:
    """Levers that had won alone, with which the program failed when that was to be confirmed."""
    won = {one.levers for one in tried if one.stage == "single" and one.status == "won"}
    return trial.stage == "combination" and trial.status == "failed" and trial.levers in won


def _different_text(best: Trial, trials: Sequence[Trial], left: Sequence[str]) -> str:
    interval = f" {_bounds(best.speedup)}" if best.speedup is not None else ""
    if best.status == "won":
        differs = f"its promise is {best.equivalence}; --allow {best.equivalence} accepts that"
    else:
        differs = best.note or "its numbers could not be compared"
    others = sorted({shown(trial.levers) for trial in trials} - {shown(best.levers)})
    more = f" The same holds for {', '.join(others)}." if others else ""
    still = f" Also open: {'; '.join(left)}." if left else ""
    return f"Faster but not the same, and not claimed: {shown(best.levers)}{interval}: {differs}.{more}{still}"


# ── undecided ────────────────────────────────────────────────────────────────────────────────────────────────────────


def command(request: TuneRequest, asked_for: Sequence[str] = ()) -> str:
    """The command that goes on with this tune, with more time; `asked_for`: further options."""
    minutes = max(LEAST_MINUTES, math.ceil(2 * (request.budget or DEFAULT_SECONDS) / 60))
    words = ["flatout", "tune", "--resume", "--budget", f"{minutes}m"]
    for option, values in (("--lever", request.levers), ("--without", request.without), ("--allow", request.allow)):
        words += [word for value in values for word in (option, value)]
    words += ["--on", request.on] if request.on is not None else []
    module = ["-m"] if request.module else []
    return shlex.join([*words, *asked_for, *module, request.program, *request.arguments])


def _asked_for(case: Case, tried: Sequence[Trial]) -> list[str]:
    """The option that tries a cure which is tried on request only, where nothing else is open."""
    if any(True for _ in (*_unconfirmed(tried), *_open_intervals(tried), *_out_of_time(case))):
        return []
    text = "; ".join(_untried_cures(case, tried))
    option = re.search(r"--(allow|lever) [\w-]+", text)
    return option[0].split() if option else []


def _left_open(case: Case, tried: Sequence[Trial]) -> list[str]:
    """What could still pay, in words; empty where nothing could."""
    return [*_unconfirmed(tried), *_open_intervals(tried), *_out_of_time(case), *_untried_cures(case, tried)]


def _unconfirmed(tried: Sequence[Trial]) -> Iterator[str]:
    """Levers that have won alone, of which no confirmation was finished. One that did not answer in time on a machine
    that others use shows nothing, and several with which the program fails show nothing of each."""
    every = [trial for trial in tried if trial.stage == "combination" and not trial.undecided]
    fell = [trial for trial in every if trial.status == "failed" and len(trial.levers) > 1]
    decided = [trial for trial in every if trial.status != "timeout" and trial not in fell]
    confirmed = {text for trial in decided for text in trial.levers}
    won = [trial for trial in tried if trial.stage in ("single", "at-once") and trial.status == "won"]
    names = [shown(one.levers) for one in won if keeps_the_numbers(one.equivalence) and not confirmed & {*one.levers}]
    if names:
        yield f"{', '.join(names)} was faster, and there was no time to confirm it"


def _open_intervals(tried: Sequence[Trial]) -> Iterator[str]:
    texts = [
        f"{shown(one.levers)} {_bounds(one.speedup)}" if one.speedup is not None else shown(one.levers)
        for one in tried
        if is_open(one) and one.stage != "patch"
    ]
    if texts:
        yield f"too few rounds of {', '.join(dict.fromkeys(texts))}"


def _out_of_time(case: Case) -> Iterator[str]:
    names = [str(item.value) for item in case.evidence_of(LeverSkipped) if item.note.startswith(NO_TIME)]
    if names:
        yield f"no time was left for {', '.join(names)}"


def _untried_cures(case: Case, tried: Sequence[Trial]) -> Iterator[str]:
    """Findings that cost much, of which no cure was tried, or none with which the program runs."""
    for finding, reasons, broken in _uncured(case, tried):
        where = f" at {finding.where.file}:{finding.where.line}" if finding.where and finding.where.line else ""
        whole = "each step" if finding.of == "step" else "the run"
        first = reasons[0] if reasons else ""
        what = "the program does not run with its cure" if broken else "no cure of it was tried"
        what = "its cure was refused" if "gave up" in first else what
        text = f"{finding.cause} costs {finding.cost_share:.0%} of {whole}{where}, and {what}"
        reason = f" ({first.partition('; ')[0] if broken else first})" if first else ""
        advice = _advice(finding)
        yield f"{text}{reason}" + (f"; by hand: {advice}" if advice else "")


def _uncured(case: Case, tried: Sequence[Trial]) -> Iterator[tuple[Finding, list[str], bool]]:
    """These findings, why each of their cures was not tried or has failed, and whether one has."""
    failed = {parse(one.levers[-1])[0]: one.note for one in tried if one.stage == "single" and one.status in BROKEN}
    names = {parse(text)[0] for trial in tried if trial.status not in BROKEN for text in trial.levers}
    skipped = {str(item.value): item.note for item in case.evidence_of(LeverSkipped)} | failed
    for finding in case.findings:
        cures = [name for name in _cures_of(finding) if name in all_levers()]
        if (finding.cost_share or 0.0) < CURE_MATTERS or names & set(cures):
            continue
        why = [f"{name}: {skipped[name].removeprefix(f'{name} ')}" for name in cures if name in skipped]
        if why and all("costs nothing gives" in text for text in why):  # its bound excludes it
            continue
        yield finding, why, bool(failed.keys() & set(cures))


def _to_write(case: Case, tried: Sequence[Trial]) -> list[str]:
    """What to write by hand where that is all that is left: more time would try the same cures again, and refuse them
    for the same reasons. Empty where time or an option could decide something."""
    found = list(_uncured(case, tried))
    late = any(one.status == "timeout" for one in tried)
    if late or any(True for _ in (*_unconfirmed(tried), *_open_intervals(tried), *_out_of_time(case))):
        return []
    if not all(why and not any(NO_TIME in text or "--allow" in text or "--lever" in text for text in why)
               for _, why, _ in found):  # fmt: skip
        return []
    return [
        f"{finding.where.file}:{finding.where.line}: {advice}"
        for finding, _, _ in found
        if (advice := _advice(finding)) and finding.where is not None and finding.where.line
    ]


def _advice(finding: Finding) -> str:
    return next((fix.advice for fix in finding.fixes if fix.advice), "").rstrip(".")


def _cures_of(finding: Finding) -> list[str]:
    """Those that this very finding names; else what its cause has in general."""
    named = [parse(fix.lever)[0] for fix in finding.fixes if fix.lever]
    known = causes()
    return named or list(known[finding.cause].spec.cures if finding.cause in known else ())


# ── done ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _done(case: Case, tried: Sequence[Trial]) -> Conclusion:
    reasons = [*_by_trials(tried), *_by_bounds(case), *_by_split(case)]
    if not reasons:
        reasons = ["no finding names a cure, and no lever changes anything in this program"]
    return Conclusion("done", f"Nothing worth changing: {'; '.join(reasons)}.")


def _by_trials(tried: Sequence[Trial]) -> Iterator[str]:
    won = [trial for trial in tried if trial.stage == "single" and trial.status == "won"]
    for trial in won:
        yield f"{shown(trial.levers)} was faster at first, and the confirmation did not show it"
    singles = [trial for trial in tried if trial.stage in ("single", "run") and trial not in won]
    highest = max((trial.speedup.high for trial in singles if trial.speedup is not None), default=0.0)
    if not singles:
        return
    most = f", and none can give more than {max(highest, 1.0):.2f} ×" if highest else ""
    ends = {"failed": "failed", "timeout": "did not answer in time"}
    fell = {how: [shown(one.levers) for one in singles if one.status == status] for status, how in ends.items()}
    told = "; ".join(f"{', '.join(names)} {how}" for how, names in fell.items() if names)
    broken = f" ({told})" if told else ""
    others = "other changes" if won else "changes"
    yield f"of {len(singles)} {others} tried, none was faster beyond the noise{most}{broken}"


def _by_bounds(case: Case) -> Iterator[str]:
    for trial in case.trials:
        if trial.stage == "bound" and trial.speedup is not None and excludes(trial.speedup):
            side = "an input" if trial.levers[0] == "free-input" else "a computation"
            yield f"{side} that costs nothing would give {_bounds(trial.speedup)}"


def _by_split(case: Case) -> Iterator[str]:
    split = case.steps.split_ms if case.steps is not None else None
    total = split.total() if split is not None else 0.0
    if split is not None and total > 0 and split.compute / total >= COMPUTE_BOUND:
        yield f"computing is {split.compute / total:.0%} of a step"


def _bounds(interval: Interval) -> str:
    return f"{interval.ratio:.2f} × [{interval.low:.2f}, {interval.high:.2f}]"
