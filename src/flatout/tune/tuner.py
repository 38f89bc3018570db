"""The stages of `flatout tune`: scout, levers one at a time, confirmation, patch, whole program, verdict.

Every comparison of steps is a race against two baselines in the same rounds. What is claimed in the end was measured in
fresh processes after the levers had been chosen, and has run the program to its end: the best of many looks better than
it is.
"""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from flatout.cures import LoadedCure, find
from flatout.measure.race import disturbed
from flatout.model.case import Case, Note
from flatout.model.evidence.outcomes import LeverSkipped
from flatout.model.levers import parse
from flatout.model.vocabulary import INTERRUPTED, WHILE_TUNED
from flatout.report.progress import Progress
from flatout.tune import kept_cells
from flatout.tune.claim import Claim, Claiming
from flatout.tune.conclusions import FEWEST_STEPS, NO_TIME, TOO_SHORT, is_open
from flatout.tune.confirmation import Confirmation, together
from flatout.tune.context import Context
from flatout.tune.exploration import Exploration
from flatout.tune.identity import identity_of
from flatout.tune.journal import changes_since
from flatout.tune.request import TuneRequest
from flatout.tune.run_cures import RunCures
from flatout.tune.scout import imports_of, ranked, scout
from flatout.tune.spread import Cluster, Spreading, where_raced
from flatout.tune.verdict import concluded

TO_END = 0.1
"""Of the budget: a program that ends within it is observed to its end, so that it is known where the run's time goes
before anything is tried."""


class Tuner:
    def __init__(
        self, request: TuneRequest, directory: Path, progress: Progress, cluster: Cluster | None = None
    ) -> None:
        """`cluster`: whose nodes race levers beside this machine."""
        self.context = Context.of(request, directory, progress)
        if cluster is not None:
            self.context.spread = Spreading(self.context, cluster)
        self.claim: Claim | None = None

    def run(self) -> Case:
        """Whatever interrupts it, what has been found so far becomes the case."""
        context = self.context
        try:
            self._tune()
        except KeyboardInterrupt:
            context.stopped = INTERRUPTED
            context.notes.append(Note("warning", "Interrupted: these are partial results; --resume continues."))
            return self._conclude()
        except Exception as error:
            if not context.trials.found:
                raise
            self._keep(error)
            return self._conclude()
        finally:
            context.close()
            kept_cells.remove(context.directory)
        case = self._conclude()
        if case.conclusion is None or case.conclusion.outcome != "undecided":
            context.journal.finish()
        return case

    def _keep(self, error: Exception) -> None:
        """A fault of flatout's own: what was found by then is worth hours of somebody's machine."""
        context = self.context
        file = context.directory / "error.txt"
        with contextlib.suppress(OSError):
            file.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
        context.stopped = f"flatout itself failed ({type(error).__name__})"
        told = f"{context.stopped}: these are partial results; --resume continues. Please report {file}"
        context.notes.append(Note("warning", told[0].upper() + told[1:]))

    def _tune(self) -> None:
        context = self.context
        case = context.case = self._scouted()
        if case.steps is None or case.steps.count < FEWEST_STEPS:
            return
        context.launch = ranked(context.launch, case)
        if context.launch.least_step == "input" and context.launch.not_steps:
            text = "A step of the trials is a batch of the input, however many calls it takes."
            context.notes.append(Note("info", text))
        context.fork_servers.prepare(*imports_of(context.directory / "scout-1"))
        of_run = RunCures(context)
        of_run.look_ahead()
        first = of_run.run(None) if of_run.comes_before_steps and not context.request.levers else None
        self.claim = first
        if first is not None:
            if not of_run.leaves_steps(first):
                text = "No finding says that the steps could gain much"
                context.notes.append(Note("info", f"{text}: flatout tune --lever NAME tries a change of them."))
                return
            of_run.keep_time(first)
        winners = self._race_steps()
        if first is not None and self.claim is not None:
            self.claim = of_run.again(self.claim, first)
        else:
            self.claim = of_run.run(self.claim)
        if self.claim is None and self._has_time_for_others(winners):
            self._race_steps(refuted=together(winners))

    def _race_steps(self, refuted: Sequence[str] = ()) -> list[str]:
        """The levers of the steps that have won, alone; what they gain together is claimed where it is confirmed."""
        winners = Exploration(self.context, refuted).run() if self._races() else []
        if winners:
            confirmed = Confirmation(self.context).run(winners)
            self.claim = Claiming(self.context, confirmed).run() or self.claim
        return winners

    def _has_time_for_others(self, winners: Sequence[str]) -> bool:
        """Whether levers were left out while what has won could not be claimed, or cures of the run kept their time."""
        context = self.context
        waits = any(why.startswith(NO_TIME) for why in context.trials.skipped.values())
        waits = waits or any(one.stage == "single" and is_open(one) for one in context.trials.found)
        enough = all(race.seconds_for(1) < context.clock.left() for race in context.races[-1:])
        return (waits or bool(winners)) and enough

    def _races(self) -> bool:
        """Whether steps are to be raced: not where cures of the run alone were asked for."""
        named = self._named()
        return not named or not all(lever.spec.in_whole_runs for lever in named)

    def _asks_for_run(self) -> bool:
        """Whether cures of the run are to be tried: not where levers of the steps alone were asked for."""
        named = self._named()
        return not named or any(lever.spec.in_whole_runs for lever in named)

    def _named(self) -> list[LoadedCure]:
        return [find(parse(text)[0]) for text in self.context.request.levers]

    def _scouted(self) -> Case:
        context = self.context
        if context.journal.scouted is None:
            context.journal.begin(context.launch.command, os.getcwd())
            context.progress.phase("observing the program as it is")
            context.fork_servers.open()
            until = context.clock.exploring_until
            directory = context.new_directory("scout")
            found = scout(
                context.launch,
                directory,
                context.watchdog,
                until,
                context.progress.tick,
                to_end=TO_END * context.clock.budget if self._asks_for_run() else 0.0,
                keeps=kept_cells.asked_for(context.request),
            )
            if found.program.error == TOO_SHORT:
                return found  # --resume looks again
            kept_cells.take_over(context, directory)
            context.journal.keep_scouted(found, identity_of(context.launch.command, context.directory / "scout-1"))
        assert context.journal.scouted is not None
        return context.journal.scouted

    def _conclude(self) -> Case:
        context = self.context
        if changes := changes_since(context.directory):
            self.claim, context.stopped = None, f"{changes[0]} {WHILE_TUNED}"
        case, claim = context.case, self.claim
        tried = {text for trial in context.trials.found for text in trial.levers}
        skipped = (
            LeverSkipped(name, note=why)
            for name, why in sorted(context.trials.skipped.items())
            if not any(text.partition("=")[0] == name for text in tried)
        )
        taken = [*(race.taken for race in context.races), *context.taken]
        case = replace(
            case,
            kind="tune",
            trials=tuple(context.trials.found),
            tuned=claim.trial.levers if claim is not None else (),
            patch=claim.patch if claim is not None else "",
            whole_run=claim.whole_run if claim is not None else None,
            evidence=(*case.evidence, *skipped, *context.raced_on),
            notes=(*case.notes, *context.notes, *where_raced(context.raced_on), *disturbed(taken)),
            logdir="scout-1/trace" if case.logdir else None,
        )
        had = replace(context.request, budget=context.clock.budget)  # more than was asked for, where starts are slow
        case = concluded(case, had, context.problem, context.stopped)
        if claim is None or case.conclusion is None:
            return case
        return replace(case, conclusion=replace(case.conclusion, by_hand=claim.by_hand))
