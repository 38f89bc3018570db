"""Cures that whole runs alone can show: what they save lies outside of the steps, or a step with them is another one.

The program runs once to its end, watched: the tree of the run says what a cure could save. Where that is worth it, the
program with the cure and the program as it is run in turns, from start to end; what is claimed is the ratio of those.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import cast

from flatout.cures import find
from flatout.measure.parity import Parity
from flatout.measure.parity.verdict import Agreement
from flatout.model.case import Case, Note, RunTree, Trial, WholeRun
from flatout.model.errors import FlatoutError
from flatout.model.levers import parse, shown
from flatout.trial import patch, whole_run
from flatout.trial.child_process import Launch
from flatout.trial.whole_run import Run
from flatout.tune import plan
from flatout.tune.claim import Claim, Claiming
from flatout.tune.conclusions import NO_TIME, judge, promise
from flatout.tune.confirmation import Confirmed
from flatout.tune.context import Context
from flatout.tune.race import Race
from flatout.tune.run_lengths import samples_seen
from flatout.tune.starter import Starter
from flatout.tune.whole_runs import MOST_PAIRS, Different, Fallen, measure

FEWEST_PAIRS = 2
"""For a claim: no race of steps stands behind it, and one pair does not show how far runs lie apart here."""
WORTH = 0.05
"""Share of the run that a cure can save at most, from which on it is tried."""
WORTH_BESIDE = 0.1
"""Share of what is left of the run, from which on the steps are raced after a cure of the run has won."""
RUNS = 3.0
"""Whole runs that have to fit into the time that is left: one watched, one with a cure, one without."""
LONGER = 1.5
"""How much longer than it was seen to take a run may go on."""
AHEAD = 0.12
"""Of the budget: a program that takes no longer is watched before its steps are raced."""
FEWEST_SAMPLES = 0.95
"""Of those that the program sees as it is: a run that leaves out more of them is no faster for it."""
EACH = 2 * MOST_PAIRS + 2.5
"""Whole runs that a cure takes: its pairs, and comparing what both compute."""
LEAST_KEPT, MOST_KEPT = 0.25, 0.6
"""Of the budget, for all cures of the run; between them by what they could save beside all steps."""


UNNAMED = 0.1
"""Share of the steps that levers could save which no finding names. Where a cure of the run could save more than those
of the steps, its whole runs come before races of steps."""


class RunCures:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.claim: Claim | None = None
        self.tried: set[str] = set()
        self.seen: Case | None = None
        """Of a run that was watched: as the program is, or with what is claimed."""
        self.tree: RunTree | None = None
        """Of that run."""
        self.was_watched = False
        """Whether that was tried, though the program may not have come to its end."""
        self.comes_before_steps = False
        self.comparisons = 1
        """Cures that are worth whole runs."""

    def look_ahead(self) -> None:
        """Before the steps are raced: watch a short program, and keep time for what is worth trying in whole runs."""
        context = self.context
        known = context.seconds_of_program
        planned = self._planned()
        if not planned or (known is None and not self._comes_first(planned)):
            return
        if (known or 0.0) > AHEAD * context.clock.budget:
            return
        self.tree = self._watched(planned, None)
        worth = self._worth(planned)
        if self.tree is None or not worth:
            return
        saved, steps = max(seconds for _, seconds in worth), self.tree.seconds_of("steps")
        self.comes_before_steps = saved > self._could_save_of_steps()
        most = min(max(saved / (saved + steps), LEAST_KEPT), MOST_KEPT) * context.clock.budget
        runs = sum(EACH + find(parse(text)[0]).spec.next_start for text, _ in worth)
        context.clock.for_run = min(runs * self.tree.seconds, most)

    def _could_save_of_steps(self) -> float:
        """Seconds of the run that cures of the steps could save, by what the findings say."""
        assert self.tree is not None
        findings = (self.seen or self.context.case).findings
        named = [one.cost_share or 0.0 for one in findings if one.of == "step" and plan.cures_of(one)]
        return max(min(max(named, default=0.0), 1.0), UNNAMED) * self.tree.seconds_of("steps")

    def leaves_steps(self, claim: Claim) -> bool:
        """Whether cures of the steps could still save a good part of the run that is claimed."""
        return self._could_save_of_steps() > WORTH_BESIDE * (claim.whole_run.after_seconds or 0.0)

    def keep_time(self, claim: Claim) -> None:
        """For whole runs with the cures of the steps beside what is claimed."""
        clock, seconds = self.context.clock, claim.whole_run.after_seconds or 0.0
        clock.for_run = min(EACH * seconds, MOST_KEPT * max(clock.left(), 0.0))

    def again(self, claim: Claim, first: Claim) -> Claim:
        """The claim of the steps with the cures of `first` on top; else that of both which gains more. They are the
        same where nothing could be claimed of the steps."""
        if claim is first:
            return first
        self.tried -= set(first.trial.levers)
        return max(self.run(claim) or claim, first, key=_gain)

    def run(self, claim: Claim | None) -> Claim | None:
        """The claim so far, with the cures of the run that have won on top of it."""
        context = self.context
        self.claim, context.clock.for_run = claim, 0.0
        planned = self._planned()
        if planned and self.tree is None and not self.was_watched:
            self.tree = self._watched(planned, claim)
        worth = dict(self._worth(planned))
        self.comparisons = max(len(worth), 1)
        for text in planned if self.tree is not None else ():
            if text in self.tried:
                continue
            if text in worth and context.clock.left() > 0:
                self.tried.add(text)
                self._try(text)
            elif text in worth:
                context.trials.skip((text,), f"{NO_TIME} in whole runs")
        return self.claim

    def _comes_first(self, levers: tuple[str, ...]) -> bool:
        """Whether what costs most lies between the steps, and one of these cures it: a race of steps shows little."""
        first = self.context.case.findings[:1]
        cured = {parse(fix.lever)[0] for finding in first if finding.of == "run" for fix in finding.fixes if fix.lever}
        return any(parse(text)[0] in cured for text in levers)

    def _planned(self) -> tuple[str, ...]:
        context, request = self.context, self.context.request
        planned = plan.of_run(context.case, request.levers, request.allow, request.without)
        for name, why in planned.skipped:
            context.trials.skipped.setdefault(name, why)
        return planned.levers

    def _worth(self, levers: tuple[str, ...]) -> list[tuple[str, float]]:
        """Those that could save a good part of the run, with its seconds."""
        found = []
        for text in levers if self.tree is not None else ():
            assert self.tree is not None
            spec, whole = find(parse(text)[0]).spec, self._seconds(self.tree)
            case = self.seen or self.context.case
            seconds = spec.could_save(case) if spec.could_save is not None else self.tree.under(*spec.saves)
            if seconds >= WORTH * whole:
                found.append((text, seconds))
            else:
                told = f"it could save {seconds:.1f} s of a run of {whole:.1f} s at most"
                self.context.trials.skip((text,), told)
        return found

    def _seconds(self, tree: RunTree) -> float:
        """Of a run with what is claimed so far: what lies beside the steps is a larger part of it."""
        claimed = self.claim.whole_run.after_seconds if self.claim is not None else None
        return min(tree.seconds, claimed or tree.seconds)

    # ── the run as it is ─────────────────────────────────────────────────────────────────────────────────────

    def _watched(self, levers: tuple[str, ...], claim: Claim | None) -> RunTree | None:
        """The tree of a whole run of the program, with what is claimed so far: what is left then is what counts. None
        where there was no time for that."""
        context = self.context
        known = (claim.whole_run.after_seconds if claim is not None else None) or context.seconds_of_program or 0.0
        if context.clock.left() < RUNS * known:
            context.trials.skip(levers, f"{NO_TIME}: a run takes {known:.0f} s, and whole runs are compared")
            return None
        self.was_watched = True
        if context.case.run is not None:  # the scouting run has come to the end
            return context.case.run
        claimed = claim.trial.levers if claim is not None else ()
        context.progress.phase(
            f"watching a whole run{' of the program' if not claimed else f', with {shown(claimed)}'}"
        )
        directory = context.new_directory("watched")
        limit = max(context.clock.left() / RUNS, LONGER * known)
        launch = context.contestant(claimed).launch if claimed else context.launch
        found = whole_run.run(launch, directory, context.watchdog, limit, context.progress.tick, watched=True)
        if not found.ended:
            context.trials.skip(levers, f"{NO_TIME}: the program had not ended after {found.seconds:.0f} s")
            return None
        self.seen = _read(directory, context.case)
        if self.seen.run is None:
            context.trials.skip(levers, "where the time of a whole run goes could not be seen")
            return None
        if not claimed:
            of_run = tuple(finding for finding in self.seen.findings if finding.of == "run")
            context.case = replace(context.case, run=self.seen.run, findings=(*context.case.findings, *of_run))
        return self.seen.run

    # ── with a cure ──────────────────────────────────────────────────────────────────────────────────────────

    def _try(self, text: str) -> None:
        context, before = self.context, self.claim
        has = before.trial.levers if before is not None else ()
        if plan.excluded(text, has):
            context.trials.skip((text,), f"it cannot be combined with {shown(has)}")
            return
        levers = (*has, text)
        # A patch that was withheld is not brought back with a further edit.
        made = self._patch(levers) if before is None or before.patch else None
        patched = context.patched(made, levers) if made is not None else None
        if before is not None and before.patch and patched is None:
            context.trials.skip((text,), f"no edit of it fits beside the patch: --lever {text} tries it by itself")
            return
        launch = patched.launch if patched is not None else context.contestant(levers).launch
        made = made if patched is not None else None
        if find(parse(text)[0]).spec.next_start and not self._started_once(launch, text):
            return
        if before is not None and not self._adds(before, launch, text):
            return
        trial = _trial(levers)
        claiming = self._claiming()
        claim = claiming.to_the_end(trial, launch, made, pairs_decide=True, comparisons=self.comparisons)
        if claim is None and made is not None and before is None and not isinstance(claiming.fallen, Different):
            injected = context.contestant(levers).launch
            claim = claiming.to_the_end(trial, injected, None, pairs_decide=True, comparisons=self.comparisons)
        if claim is None:
            self._keep(replace(_trial(levers), status="failed", note=claiming.why))
            return
        if any(find(parse(one)[0]).spec.next_start for one in levers):
            # What is kept is read once, however long the run is: the steps of both sides differ by noise alone.
            tenfold = claim.whole_run.tenfold if before is not None else None
            claim = replace(claim, whole_run=replace(claim.whole_run, next_start=True, tenfold=tenfold))
        claim = replace(claim, trial=_judged(claim))
        self._keep(claim.trial)
        if claim.trial.status == "won":
            self.claim = claim

    def _started_once(self, launch: Launch, text: str) -> bool:
        """The start that keeps what the measured ones read. False where it does not come to its end in time."""
        context = self.context
        known = context.seconds_of_program or 0.0
        if context.clock.left() < RUNS * known:
            context.trials.skip((text,), f"{NO_TIME} in whole runs")
            return False
        context.progress.phase(f"the first start with {text}, which is not measured")
        limit = max(context.clock.left() / RUNS, LONGER * known)
        directory = context.new_directory("whole-run")
        found = whole_run.run(launch, directory, context.watchdog, limit, context.progress.tick)
        if not found.ended:
            note = f"its first start took more than {limit:.0f} s"
            self._keep(replace(_trial((text,)), status="timeout", note=note))
        return found.ended

    def _adds(self, before: Claim, launch: Launch, text: str) -> bool:
        """Whether the cure makes the program faster that has what was claimed already."""
        context = self.context
        base = self._base(before)
        context.progress.phase(f"whole runs with {text} and without it")

        def run(changed: bool, seconds: float) -> Run:
            directory = context.new_directory("whole-run")
            one = launch if changed else base
            return whole_run.run(one, directory, context.watchdog, seconds, context.progress.tick)

        try:
            half = (context.clock.end + time.monotonic()) / 2  # the other half is for the claim
            found = measure(run, None, half, patched=False, comparing=0.0, comparisons=self.comparisons)
        except Fallen as fallen:
            self._keep(replace(_trial((text,)), status="failed", note=str(fallen)))
            return False
        enough = found.pairs >= FEWEST_PAIRS
        won = enough and found.speedup is not None and found.speedup.low > 1.0
        if not won:
            speedup, note = (found.speedup, "") if enough else (None, _too_few(found))
            self._keep(replace(_trial((text,)), speedup=speedup, status="noise", note=note))
        return won

    def _base(self, before: Claim) -> Launch:
        made = self._patch(before.trial.levers) if before.patch else None
        patched = self.context.patched(made, before.trial.levers) if made is not None else None
        return patched.launch if patched is not None else self.context.contestant(before.trial.levers).launch

    def _patch(self, levers: tuple[str, ...]) -> patch.Patch | None:
        try:
            made = patch.make(self.context.case, levers)
        except FlatoutError as error:
            self.context.notes.append(Note("warning", f"No patch: {error}"))
            return None
        return made if made.changes and not made.unwritten else None

    def _claiming(self) -> Claiming:
        context = self.context
        starter = Starter(
            context.new_directory("race"), context.watchdog, context.fork_servers, tell=context.progress.say
        )
        return Claiming(context, Confirmed(Race([], starter), (), {}))

    def _keep(self, trial: Trial) -> None:
        self.context.trials.found.append(trial)
        self.context.progress.finished(trial)


def _read(directory: Path, case: Case) -> Case:
    from flatout.causes import diagnose
    from flatout.environment import summary
    from flatout.observe.reading import assemble

    return diagnose(assemble(directory, case.program, summary))


def _gain(claim: Claim) -> float:
    return claim.whole_run.speedup.ratio if claim.whole_run.speedup is not None else 1.0


def _trial(levers: tuple[str, ...]) -> Trial:
    """Whatever was raced of these levers before: a race of steps holds for those that were in it."""
    return Trial(levers, "won", equivalence=promise(levers), stage="run")


def _judged(claim: Claim) -> Trial:
    """By its whole runs, and by what was compared to the end."""
    found, trial = claim.whole_run, claim.trial
    if found.pairs < FEWEST_PAIRS:
        return replace(trial, status="noise", speedup=None, rounds=found.pairs, note=_too_few(found))
    samples = samples_seen(trial.levers, found)
    if samples is None or samples < FEWEST_SAMPLES:
        known = f"its runs see {samples:.2f} times as many samples" if samples else "its samples cannot be counted"
        return replace(trial, status="failed", speedup=None, rounds=found.pairs, note=f"not comparable: {known}")
    won = found.speedup is not None and found.speedup.low * min(samples, 1.0) > 1.0
    note = "; ".join(filter(None, [f"{found.pairs} pairs of whole runs", found.note]))
    trial = replace(trial, speedup=found.speedup, rounds=found.pairs, note=note)
    if not won:
        return replace(trial, status="noise")
    agreement = cast("Agreement", found.parity or "unknown")
    return judge(trial, Parity(agreement, None, found.compared))


def _too_few(found: WholeRun) -> str:
    if not found.pairs or found.before_seconds is None or found.after_seconds is None:
        return "no time for a pair of whole runs"
    seconds = f"{found.before_seconds:.1f} s and {found.after_seconds:.1f} s"
    return f"no time for more than one pair of whole runs ({seconds}), which shows nothing"
