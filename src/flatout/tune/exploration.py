"""Tries levers one at a time: those that findings name first, the others on top of what has won."""

from __future__ import annotations

import time
from collections.abc import Sequence

from flatout.cures import find
from flatout.cures import levers as all_levers
from flatout.measure.race import Rules, TimeLimit
from flatout.measure.race.rules import Until
from flatout.model.case import Case, Interval
from flatout.model.levers import parse
from flatout.report import words
from flatout.trial.child_process import Launch
from flatout.tune import plan
from flatout.tune.attempts import Attempts
from flatout.tune.clock import BOUNDS
from flatout.tune.conclusions import FEWEST_STEPS, hurts, is_open, ratio
from flatout.tune.context import Context
from flatout.tune.elsewhere import Wanted
from flatout.tune.race import Race
from flatout.tune.scout import ranked, scout

BOUND_LEVERS = ("free-input", "free-compute")
BOUND_ROUNDS = 7
AGAIN_FROM = 1.25
"""A gain from which the changed program is observed anew: other levers may pay now."""
AGAIN_AT_MOST = 2
UNNAMED = 0.4
"""Of the time that is left for trying once something has won in a program that was not seen to end: what levers may
take that no finding names. They gain little; whole runs that are measured to their end are worth more."""
LITTLE = 0.2
"""Share of the run that its steps take with what has won, from which on levers that no finding names are left out: a
step 1.3 times as fast would save a twentieth of the run."""
BESIDE, MOST_BESIDE = 0.1, 2
"""Share of the time that is left with the winners, which a lever saves that was not told from noise alone, and how many
of these are confirmed beside the winners: 5 % of the program may be a third of what is left of it."""
MOST_AT_ONCE = 5
"""As many as are confirmed together."""
AGAIN_STARTS = 6
"""Starts of the program that observing anew and trying further levers takes at least."""


class Exploration(Attempts):
    def __init__(self, context: Context, refuted: Sequence[str] = ()) -> None:
        """`refuted`: levers that had won alone, and could not be claimed."""
        super().__init__(context)
        self.refuted = refuted
        self.gained = 1.0
        """The ratio of a step that the winners have together, as far as it is known."""

    def run(self) -> list[str]:
        """The levers that have won, the most valuable first."""
        context = self.context
        case, launch = context.case, context.launch
        race = context.race(launch)
        for again in range(AGAIN_AT_MOST + 1):
            won = self._try_all(race, case, suggested=True)
            if again == AGAIN_AT_MOST or not won or not self._worth_observing_again(won, race):
                break
            changed = self._observed_with(won)
            if changed is None:
                break
            race.close()
            case, launch = changed
            race = context.race(launch)
        if not self.winners:
            self._try_again(race)  # what a finding names has a better chance than what none does
        if self.winners and not context.request.levers and self._share_of_steps() < LITTLE:
            self._leave_out_unnamed(case)
        else:
            if not context.request.levers and not self._waits_for_confirmation():
                if self.winners and context.seconds_of_program is None:
                    self.until = time.monotonic() + UNNAMED * max(context.clock.left_to_explore(), 0.0)
                self._try_all(race, case, suggested=False)
            self._try_again(race)
        in_time = race.seconds_for(1) < context.clock.left()
        race.close()
        return [*self.winners, *self._beside(case)] or (self._most_promising() if in_time else [])

    # ── which levers, when ───────────────────────────────────────────────────────────────────────────────────

    def _try_all(self, race: Race, case: Case, *, suggested: bool) -> list[str]:
        """Levers on top of the base: those that a finding suggests, or all others. Returns those that have won."""
        context = self.context
        request = context.request
        bounds = {} if suggested or request.levers else self._bounds(race, case)
        planned = plan.make(case, request.levers, request.allow, self._excluded(), bounds)
        for name, why in planned.skipped:
            context.trials.skipped.setdefault(name, why)
        wanted = [
            text for text in planned.levers if self._is_suggested(text, case) == suggested and text not in self.base
        ]
        untried = [text for text in wanted if not context.journal.known("single", (*self.base, text))]
        if untried and not any(one.active for one in race.baselines):
            return []
        at_once = self._try_at_once(race, case, untried) if suggested and not self.base else ()
        untried = [text for text in untried if text not in at_once and not plan.excluded(text, at_once)]
        self.race_all(race, self._left_here(race, untried, len(wanted)), len(wanted))
        won = list(dict.fromkeys([*at_once, *self._winners(wanted)]))
        self.winners += won
        self.gained *= max((self._gain_of(text) for text in won), default=1.0)
        return won

    def _try_at_once(self, race: Race, case: Case, levers: Sequence[str]) -> tuple[str, ...]:
        """The first cure of each finding, all together, where starts or steps are so slow that there is no time to try
        each lever alone. Returns them where they have won; the confirmation shows which of them pay."""
        context = self.context
        chosen = plan.first_of_each(case, [text for text in levers if context.combinable(text)])[:MOST_AT_ONCE]
        enough = race.seconds_for(1) * len(levers) <= context.clock.left_to_explore()
        if len(chosen) < 2 or enough or context.spread is not None:
            return ()
        trial = context.journal.known("at-once", chosen)
        if trial is None and race.seconds_for(1) <= self._time_to_try():
            one = context.contestant(chosen)
            context.progress.phase(f"trying these at once: {words.change_here(chosen)}")
            if context.varies:
                race.rewind()
            race.start([one])
            self._run(race, [one], Rules(few_rounds=True))
            if not one.unchanged and not one.idle():
                trial = context.trials.keep(race, one, "at-once")
        if trial is None or not (trial.status == "won" or chosen in context.trials.nominated):
            return ()
        self.gained *= ratio(trial) or 1.0
        return chosen

    def _leave_out_unnamed(self, case: Case) -> None:
        context = self.context
        planned = plan.make(case, (), context.request.allow, self._excluded())
        left_out = [text for text in planned.levers if not self._is_suggested(text, case) and text not in self.base]
        why = f"no finding names it, and the steps take {self._share_of_steps():.0%} of the run by now"
        context.trials.skip([text for text in left_out if _name(text) not in context.trials.skipped], why)

    def _share_of_steps(self) -> float:
        """Of the run, with what has won; all of it where the program was not seen to its end."""
        run = self.context.case.run
        if run is None or not run.seconds:
            return 1.0
        steps = run.seconds_of("steps")
        return steps / self.gained / (run.seconds - steps + steps / self.gained)

    def _is_suggested(self, text: str, case: Case) -> bool:
        return bool(self.context.request.levers) or plan.suggested(find(_name(text)), case)

    def _excluded(self) -> set[str]:
        """Levers not to plan with: as asked for; those in the program already; with these, what was slower before."""
        several = {name for name in map(_name, self.base) if find(name).spec.several}
        without = {*self.context.request.without, *map(_name, self.base), *map(_name, self.refuted)} - several
        if self.base:
            singles = (trial for trial in self.context.trials.found if trial.stage == "single")
            without |= {_name(trial.levers[-1]) for trial in singles if hurts(trial)}
        return without

    def _try_again(self, race: Race) -> None:
        """What was not decided, in fresh processes, the most promising first, while there is time."""
        left = self._still_open()
        if self.context.spread is not None and left and race.seconds_for(1) < self._time_to_try():
            asked, left = left, self._left_here(race, left, len(left), "closed")
            self.winners += self._winners([text for text in asked if text not in left])
        while left and any(one.active for one in race.baselines):
            size = self._group_size(race, len(left))
            group, left = left[:size], left[size:]
            if race.seconds_for(len(group)) > self._time_to_try():
                return
            self._try(race, group, len(group), "closed")
            self.winners += self._winners(group)

    def _left_here(self, race: Race, levers: Sequence[str], comparisons: int, until: Until = "decided") -> list[str]:
        """Race these on other machines, where there are some. Returns what is left for this one."""
        spread = self.context.spread
        if spread is None or not levers:
            return list(levers)
        step = race.baselines[0].launch
        wanted = Wanted(
            tuple(levers),
            self.base,
            comparisons,
            until,
            step.least_step,
            step.not_steps,
            ahead=self._has_to_confirm(),
            seconds=None if self.until is None else self.until - time.monotonic(),
        )
        return spread.race(wanted)

    def _still_open(self) -> list[str]:
        singles = [one for one in self.context.trials.found if one.stage == "single" and one.upon == self.base]
        found = sorted((one for one in singles if is_open(one)), key=lambda one: -(ratio(one) or 1.0))
        return [one.levers[-1] for one in found if one.levers[-1] not in (*self.winners, *self.refuted)]

    def _most_promising(self) -> list[str]:
        """Where nothing has won: what was ahead when the time for trying was up. Confirming decides it."""
        found = self.context.trials.promising
        here = {levers[-1]: gain for levers, gain in found.items() if levers[:-1] == self.base}
        ahead = {text: gain for text, gain in here.items() if text not in self.refuted}
        return sorted(filter(self.context.combinable, ahead), key=lambda text: -ahead[text])[:1]

    def _beside(self, case: Case) -> list[str]:
        """Levers that a finding names and that save little of the program, but much of what the winners leave."""
        found = [one for one in self.context.trials.found if one.stage == "single" and one.upon == self.base]
        saved = {one.levers[-1]: 1 - 1 / one.speedup.ratio for one in found if one.speedup is not None}
        left = 1 - sum(saved.get(text, 0.0) for text in self.winners)
        likely = [
            one.levers[-1]
            for one in found
            if (one.status, one.parity != "failed") == ("noise", True)
            and one.speedup is not None
            and one.speedup.low >= 1.0
            and saved[one.levers[-1]] > BESIDE * left
            and self._is_suggested(one.levers[-1], case)
            and self.context.combinable(one.levers[-1])
        ]
        ahead = sorted(dict.fromkeys(likely), key=lambda text: -saved[text])[:MOST_BESIDE]
        return ahead if self.winners else []

    def _waits_for_confirmation(self) -> bool:
        """Whether a lever was ahead in each of too few rounds, and there was no time to try it again: what is left of
        the time decides it, and is not for others."""
        return not self.winners and not set(self._most_promising()).isdisjoint(self._still_open())

    def _winners(self, levers: Sequence[str]) -> list[str]:
        gains: dict[str, float] = {}
        for text in filter(self.context.combinable, levers):
            tried = (*self.base, text)
            trial = self.context.journal.known("single", tried)
            if trial is not None and trial.status == "won":
                gains[text] = ratio(trial)
            elif tried in self.context.trials.nominated:
                gains[text] = self.context.trials.nominated[tried]
        return sorted(gains, key=lambda text: -gains[text])

    # ── bounds ───────────────────────────────────────────────────────────────────────────────────────────────

    def _bounds(self, race: Race, case: Case) -> dict[str, Interval]:
        """What a free input and a free computation would give: which side is worth curing at all."""
        context = self.context
        wanted = [name for name in BOUND_LEVERS if name in all_levers() and not context.journal.known("bound", (name,))]
        affordable = race.seconds_for(len(wanted)) < min(BOUNDS * context.clock.budget, context.clock.left_to_explore())
        if wanted and affordable and not self.base and any(one.active for one in race.baselines):
            limits = [context.contestant((name,)) for name in wanted]
            context.progress.phase("bounds: what would a free input give, and a free computation?")
            race.start(limits)
            until = time.monotonic() + BOUNDS * context.clock.budget
            race.run(limits, Rules(rounds=BOUND_ROUNDS), TimeLimit(min(until, context.clock.exploring_until)))
            context.trials.keep_all(race, limits, "bound")
        known = [context.journal.known("bound", (name,)) for name in BOUND_LEVERS]
        return {trial.levers[0]: trial.speedup for trial in known if trial is not None and trial.speedup is not None}

    # ── the changed program ──────────────────────────────────────────────────────────────────────────────────

    def _worth_observing_again(self, won: Sequence[str], race: Race) -> bool:
        context = self.context
        enough = context.clock.left_to_explore() > AGAIN_STARTS * race.seconds_to_start(1)
        return not context.request.levers and self._gain_of(won[0]) >= AGAIN_FROM and enough

    def _gain_of(self, text: str) -> float:
        """On top of the base; 1 for what was only nominated, and is confirmed first."""
        found = self.context.journal.known("single", (*self.base, text))
        return ratio(found) if found is not None else 1.0

    def _observed_with(self, won: Sequence[str]) -> tuple[Case, Launch] | None:
        """The program with the winners in it: what costs most now? None where it does not run with all of them."""
        context = self.context
        base = (*self.base, *plan.combinations(won)[-1])
        context.progress.phase(f"observing the program again, with: {words.change_here(base)}")
        launch = context.contestant(base).launch
        directory, until = context.new_directory("scout-again"), context.clock.exploring_until
        changed = scout(launch, directory, context.watchdog, until, context.progress.tick, waits=False)
        if changed.steps is None or changed.steps.count < FEWEST_STEPS or changed.program.exit_code not in (None, 0):
            return None
        self.base = base
        return changed, ranked(launch, changed)


def _name(text: str) -> str:
    return parse(text)[0]
