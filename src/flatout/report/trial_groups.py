"""The trials of a case in the groups in which all views show them, with the name and outcome of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flatout.model.case import Case, Trial
from flatout.model.levers import shown
from flatout.report.labels import NOT_COMPARED, NOT_THE_SAME, REWRITE_STAGES, TRIAL_OUTCOMES, TRIAL_STAGES


@dataclass(frozen=True)
class Group:
    """Trials that were measured against the same program, the fastest first."""

    title: str
    note: str
    trials: tuple[Trial, ...]


def groups(case: Case) -> Iterator[Group]:
    labels = {**TRIAL_STAGES, **(REWRITE_STAGES if case.kind == "data" else {})}
    for stage in dict.fromkeys([*TRIAL_STAGES, *(trial.stage for trial in case.trials)]):
        title, note = labels.get(stage, (stage, ""))
        trials = sorted((trial for trial in case.trials if trial.stage == stage), key=_rank)
        for base in dict.fromkeys(trial.upon for trial in sorted(trials, key=lambda trial: len(trial.upon))):
            if base:
                title, note = "On top", f"one at a time, against the program with {shown(base)}"
            yield Group(title, note, tuple(trial for trial in trials if trial.upon == base))


def name(trial: Trial) -> str:
    return shown(trial.levers[len(trial.upon) :])


def outcome(trial: Trial) -> str:
    from flatout.measure.race import WORTH  # loading the race would be a tenth of the start of `show`

    if trial.undecided:
        return "not decided"
    faster = trial.speedup is not None and trial.speedup.low > WORTH
    if faster and trial.parity and trial.status in ("failed", "noise"):
        return NOT_THE_SAME if trial.status == "failed" else NOT_COMPARED
    return TRIAL_OUTCOMES.get(trial.status, trial.status)


def _rank(trial: Trial) -> float:
    return -(trial.speedup.ratio if trial.speedup else 0.0)
