"""Tunes a dataset: rewrites are proposed one after the other, compared, raced, and kept where they win.

Each proposal builds on the rewrites kept so far. It is compared with the program's own pipeline over whole epochs, then
raced against the best so far. At the end the result is raced once more against the program's own: that is the claim.
Long pipelines are raced as copies that read fewer records; the comparison still needs an epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flatout import cures
from flatout.data import equality, excerpts, inspection
from flatout.data.contestant import FEWEST_ROUNDS, Pipeline, Raced, compare
from flatout.measure.race import TimeLimit
from flatout.model.case import Case, Evidence, Note, Trial
from flatout.model.evidence.outcomes import LeverSkipped
from flatout.model.levers import parse
from flatout.model.vocabulary import Equivalence, TrialStage
from flatout.observe import stages
from flatout.pipeline import caching, copies, recipes, stage_costs
from flatout.pipeline.rewriting import Context, Proposal, Refused

FOR_TRIALS = 0.75
"""Share of the time for trials; the rest is for the claim."""
COMPARE_SHARE = 0.3
"""Share of the time that is left which one comparison may take."""
TRIAL_SHARE = 0.15
"""Share of the time that is left after which a race gets no more rounds than it needs for an interval."""


@dataclass(frozen=True)
class TuningRequest:
    allow: frozenset[str] = frozenset()
    """`semantic` (another order of calls or elements) and `reassociated` (other rounding) have to be allowed."""
    memory: int | None = None
    """Largest size of a cache in bytes; None: a third of the free memory."""
    disk: str | None = None
    """A directory for a cache that does not fit into memory."""
    seconds: float = 120.0
    needs: float | None = None
    without: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Tuned:
    """The rewritten dataset, and the case with all trials."""

    dataset: Any
    case: Case

    def __iter__(self) -> Iterator[Any]:
        return iter(self.dataset)

    @property
    def trials(self) -> tuple[Trial, ...]:
        return self.case.trials


def tune(
    dataset: Any,
    request: TuningRequest,
    report: inspection.Report = inspection.NO_REPORT,
    keep: Callable[[Case], None] = lambda _: None,
) -> Tuned:
    """`keep` is called with the unfinished case after each trial."""
    recipes.install()
    with recipes.without_draws(), copies.files_of_copies():
        return _Tuning(stages.plain(dataset), request, report, keep).run()


@dataclass(frozen=True)
class _Line:
    """A pipeline with the rewrites that were kept, and the pipeline before each of them."""

    dataset: Any
    kept: tuple[str, ...] = ()
    before: tuple[_Line, ...] = ()
    equivalence: Equivalence = "exact"


@dataclass
class _Tuning:
    given: Any
    request: TuningRequest
    report: inspection.Report
    keep: Callable[[Case], None]
    trials: list[Trial] = field(default_factory=list)
    left_out: list[Evidence] = field(default_factory=list)
    deadline: float = 0.0
    short: Callable[[Any], Pipeline] = field(init=False)
    known: dict[int, equality.Compared] = field(default_factory=dict)
    alive: list[Any] = field(default_factory=list)
    best: tuple[Any, Pipeline] | None = None
    rewrites: dict[str, cures.Rewrite] = field(default_factory=cures.rewrites)
    """By name, in the order in which they are tried."""

    def run(self) -> Tuned:
        self.deadline = time.monotonic() + FOR_TRIALS * self.request.seconds
        costs = stage_costs.Costs(stage_costs.Limits(seconds=0.5), self.report)
        case = inspection.inspect([self.given], self.request.needs, costs, self.report)
        self.keep(case)
        memory = self.request.memory if self.request.memory is not None else caching.memory_limit()
        context = Context(memory, self.request.disk, self.request.allow, self._count, costs)
        self.short = excerpts.excerpts_of(self.given, costs)
        line = self._improved(_Line(self.given), list(self.rewrites), context, case)
        line = self._improved(line, self._once_more(line), context, case)
        other = self._instead(line, context, case)
        if other is not None:
            line = other
        best, kept = line.dataset, list(line.kept)
        if kept:
            self.report("racing the result against the program's own")
            self.deadline = float("inf")  # the claim always gets enough rounds for an interval
            claim = self._tried(self.given, Proposal(best, ""), tuple(kept), line.equivalence, stage="combination")
            self.trials.append(claim)
            if claim.status != "won":
                best, kept = self.given, []
        return Tuned(best, self._case(case, tuple(kept)))

    def _improved(self, line: _Line, names: Sequence[str], context: Context, case: Case) -> _Line:
        """Try one rewrite after the other, each on top of those that won."""
        for name in names:
            if name in self.request.without:
                continue
            if time.monotonic() > self.deadline:
                self._leave_out(name, "there was no time left")
                continue
            self.report(f"trying {name}")
            proposal = self._proposed(name, line.dataset, context)
            if proposal is None:
                continue
            lever = f"{name}={proposal.setting}" if proposal.setting else name
            promised = proposal.equivalence or cures.catalogue()[name].spec.equivalence
            equivalence = _weakest(promised, line.equivalence)
            trial = self._tried(line.dataset, proposal, (*line.kept, lever), equivalence)
            self.trials.append(trial)
            if trial.status == "won":
                line = _Line(proposal.dataset, (*line.kept, lever), (*line.before, line), equivalence)
            self.keep(self._case(case, ()))
        return line

    def _once_more(self, line: _Line) -> list[str]:
        """Rewrites that gained nothing before may gain now, if another stage limits the pipeline."""
        names = list(self.rewrites)
        kept = [parse(lever)[0] for lever in line.kept]
        last = max((names.index(name) for name in kept), default=0)
        tried = {parse(trial.levers[-1])[0] for trial in self.trials if trial.status in ("noise", "lost")}
        return [name for name in names[:last] if name in tried and name not in kept]

    def _instead(self, line: _Line, context: Context, case: Case) -> _Line | None:
        """A map moved behind the shuffle can no longer be cached: try whether the cache gains more."""
        moved, cached = "late-map", "cache"
        if moved not in line.kept or cached in line.kept or time.monotonic() > self.deadline:
            return None
        start = line.before[line.kept.index(moved)]
        rest = [name for name in self.rewrites if name not in (*line.kept, moved)]
        other = self._improved(start, rest, context, case)
        if cached not in other.kept:
            return None
        self.report(f"racing {' + '.join(other.kept)} against {' + '.join(line.kept)}")
        limit = TimeLimit(self.deadline, FEWEST_ROUNDS)
        found = compare(self.short(line.dataset), self.short(other.dataset), limit).verdict.speedup
        return other if found is not None and found.ratio > 1.0 else None

    # ── one rewrite ──────────────────────────────────────────────────────────────────────────────────────────

    def _proposed(self, name: str, best: Any, context: Context) -> Proposal | None:
        try:
            proposal = self.rewrites[name](best, context)
        except (Refused, recipes.Opaque) as reason:
            self._leave_out(name, str(reason))
            return None
        except Exception as error:  # a rewrite that fails leaves the pipeline as it is
            self._leave_out(name, f"{type(error).__name__}: {str(error)[:200]}")
            return None
        if proposal is not None and proposal.dataset.element_spec != best.element_spec:
            self._leave_out(name, "it would yield elements of another shape or type")
            return None
        return proposal

    def _tried(
        self,
        before: Any,
        proposal: Proposal,
        levers: tuple[str, ...],
        equivalence: Equivalence,
        stage: TrialStage = "single",
    ) -> Trial:
        trial = Trial(levers, "failed", note=proposal.what, equivalence=equivalence, stage=stage)
        try:
            compared = self._compared(proposal.dataset, equivalence)
            notes = "; ".join(text for text in (proposal.what, compared.note) if text)
            trial = replace(trial, parity=compared.parity, note=notes)
            if compared.result == "differs":
                return trial
            raced = self._raced(before, proposal.dataset)
        except Exception as error:
            return replace(trial, note=f"{type(error).__name__}: {str(error)[:300]}")
        return replace(
            trial,
            status=raced.verdict.status,
            note="; ".join(filter(None, [trial.note, raced.verdict.note])),
            speedup=raced.verdict.speedup,
            cpu=raced.verdict.cpu,
            step_ms=1e3 * (raced.after.unit_seconds() or 0.0),
            rounds=raced.verdict.rounds,
        )

    def _raced(self, before: Any, after: Any) -> Raced:
        now = time.monotonic()
        enough = now + TRIAL_SHARE * max(self.deadline - now, 0.0)
        return compare(self._kept(before), self.short(after), TimeLimit(self.deadline, FEWEST_ROUNDS, enough))

    def _kept(self, dataset: Any) -> Pipeline:
        """The copy of the best pipeline so far, kept with its caches for all its races."""
        if self.best is None or self.best[0] is not dataset:
            self.best = (dataset, self.short(dataset))
        return self.best[1]

    def _compared(self, dataset: Any, equivalence: str) -> equality.Compared:
        found = self.known.get(id(dataset))
        if found is None:
            left = min(max(self.deadline - time.monotonic(), 10.0), self.request.seconds)
            semantic = equivalence == "semantic"
            found = equality.compare(self.given, dataset, COMPARE_SHARE * left, any_order=semantic)
            if semantic and copies.before_randomness(self.given) is not None:
                found = replace(found, whole=False, note="other random numbers for other elements, as was allowed")
            self.known[id(dataset)] = found
            self.alive.append(dataset)  # an id is valid only while its dataset exists
        return found

    def _count(self, stage: Any) -> int | None:
        return excerpts.count(stage, 0.2 * max(self.deadline - time.monotonic(), 0.0))

    # ── the case ─────────────────────────────────────────────────────────────────────────────────────────────

    def _leave_out(self, name: str, why: str) -> None:
        self.left_out.append(LeverSkipped(name, note=why))

    def _case(self, case: Case, kept: tuple[str, ...]) -> Case:
        claim = self.trials[-1] if kept else None
        return replace(
            case,
            trials=tuple(self.trials),
            tuned=kept,
            evidence=(*case.evidence, *self.left_out),
            notes=(*case.notes, *_notes(claim)),
            verdict=_verdict(claim),
        )


def _weakest(*promises: Equivalence) -> Equivalence:
    return max(promises, key=("exact", "reassociated", "precision", "semantic").index)


def _verdict(claim: Trial | None) -> str:
    if claim is None or claim.speedup is None:
        return "Nothing worth changing was found."
    found = claim.speedup
    same = {"exact": "the same elements", "multiset": "the same elements in another order"}.get(
        claim.parity, claim.note
    )
    return f"{found.ratio:.2f}× as fast [{found.low:.2f}, {found.high:.2f}] with {' + '.join(claim.levers)}; {same}."


def _notes(claim: Trial | None) -> list[Note]:
    if claim is not None and claim.parity == "unknown" and claim.equivalence != "semantic":
        return [Note("warning", "There was no time to compare a whole epoch: give more with --budget.")]
    return []
