"""Makes a claim of what was confirmed: as a patch of the source, and on the whole program, to its end."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from flatout.measure.parity import Parity
from flatout.measure.race import Rules, TimeLimit
from flatout.model.case import Note, Trial, WholeRun
from flatout.model.errors import FlatoutError
from flatout.model.levers import shown
from flatout.model.vocabulary import TrialStatus
from flatout.trial import patch, whole_run
from flatout.trial.child_process import Launch
from flatout.trial.whole_run import Run
from flatout.tune import parity
from flatout.tune.by_hand import by_hand
from flatout.tune.conclusions import as_shown, holds, is_faster, not_as_promised, ratio
from flatout.tune.confirmation import Confirmed
from flatout.tune.contestant import Contestant
from flatout.tune.context import Context
from flatout.tune.run_lengths import alike
from flatout.tune.whole_runs import COMPARING, Different, Fallen, GaveUp, Saving, Slower, Unseen, measure

PATCH_SECONDS = 30.0
"""What the trial of the patch gets at least."""
FOR_WHOLE_RUNS = 0.6
"""Of the time that is left before the patch is tried."""
FOLLOWED_SECONDS = 60.0
"""For how long each side of a training that does not end is followed, to compare what it computes."""
LEAST_FOLLOWED = 30.0
"""The same where the budget is used up: nothing is claimed without it."""
MOST_SETS = 3
"""That are brought to the end of the program, where the first ones fall."""
NEARLY = 0.7
"""Of the first set's ratio: what a further one must have to be claimed with a patch where the first one has none."""


@dataclass(frozen=True)
class Claim:
    trial: Trial
    whole_run: WholeRun
    patch: str = ""
    by_hand: tuple[str, ...] = ()


class Claiming:
    def __init__(self, context: Context, confirmed: Confirmed) -> None:
        self.context = context
        self.confirmed = confirmed
        self.race = confirmed.race
        self.fallen: Fallen | None = None
        """What the last set fell by on its way to the end of the program."""
        self.why = ""
        """The same in words."""

    def run(self) -> Claim | None:
        """Of the confirmed sets the first that comes to the end of the program, with a patch where there is one."""
        found: Claim | None = None
        for number, trial in enumerate(self.confirmed.sets[:MOST_SETS]):
            if number and self.context.clock.left() <= 0:
                break
            if found is not None and ratio(trial) < NEARLY * ratio(found.trial):
                break
            claim = self._claim(trial)
            if claim is not None and claim.patch:
                return claim
            found = found or claim
        return found

    def _claim(self, trial: Trial) -> Claim | None:
        if not trial.parity:
            trial = self.context.trials.check(self.race, self.context.contestant(trial.levers), trial)
            if trial.status != "won":
                return None
        made = self._patch(trial)
        patched = self._patched(made, trial) if made is not None else None
        if patched is not None and made is not None:
            one, own = patched
            claim = self.to_the_end(own, one.launch, made)
            if claim is not None and (claim.whole_run.parity or self._begins_alike(one)):
                return claim
        return self.to_the_end(trial, self.context.contestant(trial.levers).launch, None)

    # ── the patch ────────────────────────────────────────────────────────────────────────────────────────────

    def _patch(self, trial: Trial) -> patch.Patch | None:
        try:
            made = patch.make(self.context.case, trial.levers)
        except FlatoutError as error:
            self._note("warning", f"No patch: {error}")
            return None
        return made if made.changes else None

    def _patched(self, made: patch.Patch, best: Trial) -> tuple[Contestant, Trial] | None:
        """The patched program, raced, and the trial to be claimed: that of the levers where the patch has all of them
        and holds their speedup, its own otherwise. None where it cannot be started or is not faster."""
        context = self.context
        levers = made.written if made.unwritten else best.levers
        one = self.confirmed.patched.get(levers) or context.patched(made, levers)
        if one is None:
            self._note("info", "No patch: the edited source of a command like this cannot be tried.")
            return None
        if one.verdict is None:
            context.progress.phase("running the patched program")
            if context.varies:
                self.race.rewind()
            self.race.start([one])
            until = time.monotonic() + max((1 - FOR_WHOLE_RUNS) * context.clock.left(), PATCH_SECONDS)
            rules = Rules(few_rounds=True)
            self.race.run([one], rules, TimeLimit(until, fewest_rounds=self.race.rounds_past_the_deadline(rules, 1)))
            one.verdict = self.race.claim(one)
        trial = context.trials.keep(self.race, one, "patch", check=False)
        if not made.unwritten and holds(trial, best):
            return one, best  # its results are compared to the end of the program
        if trial.status == "won":
            trial = context.trials.check(self.race, one, trial)
        if trial.status == "won" and is_faster(trial):
            text = f"The patch holds a part of what was found: {ratio(trial):.2f} × of {ratio(best):.2f} × with"
            self._note("info", f"{text} {shown(best.levers)} as levers (flatout run --with {','.join(best.levers)}).")
            return one, trial
        self._note("warning", f"The patch for {shown(levers)} is withheld: {_why_not(trial)}.")
        return None

    def _begins_alike(self, one: Contestant) -> bool:
        """Where the whole training could not be compared, the first steps of the patched program are."""
        tried = self.context.trials.found
        trial = next(each for each in reversed(tried) if (each.stage, each.levers) == ("patch", one.levers))
        if not trial.parity:
            trial = self.context.trials.check(self.race, one, trial)
        if trial.status != "won":
            self._note("warning", f"The patch for {shown(one.levers)} is withheld: {_why_not(trial)}.")
        return trial.status == "won"

    # ── the whole program ────────────────────────────────────────────────────────────────────────────────────

    def to_the_end(
        self,
        trial: Trial,
        launch: Launch,
        made: patch.Patch | None,
        *,
        pairs_decide: bool = False,
        comparisons: int = 1,
    ) -> Claim | None:
        """None where the changed program fails on its way to its end. `pairs_decide`: no race of steps stands behind
        the claim, but whole runs of as many changes as `comparisons`."""
        context = self.context
        what = "patched" if made is not None else f"with {shown(trial.levers)}"
        context.progress.phase(f"running the whole program, {what}")

        def run(changed: bool, seconds: float) -> Run:
            directory = context.new_directory("whole-run")
            one = launch if changed else context.launch
            found = whole_run.run(one, directory, context.watchdog, seconds, context.progress.tick)
            context.progress.say(f"whole run, {what if changed else 'as it is'}: {_told(found)}")
            return found

        try:
            known = context.seconds_of_program
            kept = min(2 * LEAST_FOLLOWED, max(context.clock.left(), 0.0) / 2)  # for comparing the results
            comparing = COMPARING
            if pairs_decide:  # so they come first
                comparing = 0.0
                kept = min(kept, 2 * COMPARING * (known or kept))
            elif known is not None:  # further pairs leave the time for it
                kept = 0.0
            latest = context.clock.end - kept  # a measured ratio comes before cures of the run
            end = latest - context.clock.for_run
            measured = measure(run, _saving(trial), end, made is not None, comparing, latest, comparisons)
            raced = trial.speedup is not None
            if raced and (slower := _slower(measured)):
                raise Slower(slower)
            if raced or (measured.speedup is not None and measured.speedup.low > 1.0):  # else there is no claim
                measured = self._compared(measured, trial, launch)
        except Fallen as fallen:
            self._fall(trial, fallen, made is not None)
            return None
        told = self._by_hand(trial, made)
        return Claim(trial, measured, made.diff if made is not None else "", told)

    def _compared(self, measured: WholeRun, trial: Trial, launch: Launch) -> WholeRun:
        """With what the training has come to on both sides, to its end or as far as there is time to follow it: what
        the race has compared are the first steps. Raises `Fallen`."""
        context = self.context
        context.progress.phase("are the results the same over the whole training?")
        longest = max(measured.before_seconds or 0.0, measured.after_seconds or 0.0)
        wanted = max(2 * longest, LEAST_FOLLOWED) if measured.complete else FOLLOWED_SECONDS
        seconds = min(wanted, max(context.clock.left() / 2.5, LEAST_FOLLOWED))
        directory = context.trials.directory / "whole-numbers"
        found = parity.compare_whole(context.launch, launch, self.race.starter, directory, seconds)
        found = as_shown(trial, found)
        if apart := not_as_promised(trial, found):
            raise Different(f"over the whole training, {apart}")
        if apart := _other_steps(measured, trial, found):
            raise Fallen(apart)
        if found.verdict == "unknown":
            only = "only the first steps: over the whole training " if trial.parity else ""
            return replace(measured, compared=f"{only}{found.sentence}")
        return replace(measured, parity=found.verdict, compared=found.sentence)

    def _by_hand(self, trial: Trial, made: patch.Patch | None) -> tuple[str, ...]:
        """What the user has to write where the patch lacks a lever, or where there is no patch."""
        could = made or self._patch(trial)
        lacking = could.unwritten if could is not None else trial.levers
        return tuple(by_hand(self.context.case, text) for text in lacking)

    def _fall(self, trial: Trial, fallen: Fallen, as_patch: bool) -> None:
        what = "the patch" if as_patch else "the levers"
        how = "does not end with {what} as it does without"
        if isinstance(fallen, Different):
            how = "does not compute the same with {what}"
        elif isinstance(fallen, Slower):
            how = "is slower with {what}"
        elif isinstance(fallen, GaveUp):
            how = "does not keep {what} to its end"
        elif isinstance(fallen, Unseen):
            how = "fails with {what}, and there was no time to see how it ends without"
        self.fallen, self.why = fallen, f"the whole program {how.format(what=what)}: {fallen}"
        self._note("warning", f"{shown(trial.levers)}: {self.why}")
        for one in self._raced(trial, as_patch):
            parity = "failed" if isinstance(fallen, Different) else one.parity
            told = "; ".join(filter(None, [one.note, self.why]))
            status: TrialStatus = "lost" if isinstance(fallen, Slower) else "failed"
            self.context.trials.replace(one, replace(one, status=status, parity=parity, note=told))

    def _raced(self, trial: Trial, as_patch: bool) -> list[Trial]:
        """The race of the patch, as the levers themselves may still come to the end, or that of the levers; none where
        whole runs alone decide."""
        found = self.context.trials.found
        if as_patch:
            return [one for one in found if one.stage == "patch" and one.levers == trial.levers]
        return [one for one in found if one is trial]

    def _note(self, level: str, text: str) -> None:
        note = Note("warning" if level == "warning" else "info", text)
        if note not in self.context.notes:
            self.context.notes.append(note)


def _slower(measured: WholeRun) -> str:
    """Where whole runs show that the changed program is slower, however long it runs."""
    found, more = measured.speedup, measured.tenfold
    if measured.estimated or found is None or more is None or found.high >= 1.0 or more >= 1.0:
        return ""
    seconds = f"{measured.before_seconds:.1f} s → {measured.after_seconds:.1f} s"
    return f"{seconds}, and {more:.2f} times as fast with ten times as many steps"


def _other_steps(measured: WholeRun, trial: Trial, found: Parity) -> str:
    """Where the changed program makes another number of steps, and nothing shows that it does the same in them."""
    if not measured.steps_before or alike((measured.steps, measured.steps_before)) or trial.equivalence == "semantic":
        return ""
    to_the_end = found.extent is not None and found.extent.whole and found.verdict != "unknown"
    by_chance = measured.speedup is None and found.verdict == "statistical"
    told = f"its runs make {measured.steps} steps, where they made {measured.steps_before}"
    return "" if to_the_end or by_chance else f"{told}, and what both compute was not compared to the end"


def _why_not(patched: Trial) -> str:
    if patched.undecided:
        return "there was no time to try it"
    same = patched.parity in ("", *parity.AGREE)
    return "it is not faster beyond the noise" if same and patched.status in ("noise", "lost") else patched.note


def _saving(trial: Trial) -> Saving | None:
    if trial.step_ms is None or trial.speedup is None:
        return None
    return Saving(trial.step_ms / 1e3, trial.speedup)


def _told(found: Run) -> str:
    how = "stopped" if not found.ended else f"exit code {found.exit_code}" if found.failed else "ended well"
    return f"{found.seconds:.1f} s, {how}"
