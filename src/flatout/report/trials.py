"""How the trials of a case are told, in whatever form: in which groups, under which names, with which outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flatout.model.case import Case, Trial
from flatout.model.levers import shown

STAGES = {
    "bound": ("Bounds", "what a side would give if it cost nothing"),
    "single": ("Levers", "one at a time, against two baselines in the same rounds"),
    "combination": ("Together", "in fresh processes: this is the claim"),
    "patch": ("Patch", "the edited source, run as one more trial"),
    "route": ("Routes", "ways to serve the model, in the same rounds against tf-function"),
    "setting": ("Settings", "the same artefacts with other settings of their runtime"),
    "claim": ("Measured again", "in fresh processes, against two baselines: this is the claim"),
}
REWRITES = {
    "single": ("Rewrites", "one at a time, against the pipeline as written, in turns"),
    "combination": ("Together", "raced once more against the pipeline as written: this is the claim"),
}
"""The same for the rewrites of a pipeline (`flatout data tune`)."""
OUTCOMES = {
    "won": "faster",
    "lost": "slower",
    "noise": "no measurable difference",
    "failed": "failed",
    "timeout": "given up",
}


@dataclass(frozen=True)
class Group:
    """Trials that were measured against the same program, the fastest first."""

    title: str
    note: str
    trials: tuple[Trial, ...]


def groups(case: Case) -> Iterator[Group]:
    for stage in dict.fromkeys([*STAGES, *(trial.stage for trial in case.trials)]):
        title, note = {**STAGES, **(REWRITES if case.kind == "data" else {})}.get(stage, (stage, ""))
        trials = sorted((trial for trial in case.trials if trial.stage == stage), key=_rank)
        for base in dict.fromkeys(trial.upon for trial in sorted(trials, key=lambda trial: len(trial.upon))):
            if base:
                title, note = "On top", f"one at a time, against the program with {shown(base)}"
            yield Group(title, note, tuple(trial for trial in trials if trial.upon == base))


def name(trial: Trial) -> str:
    return shown(trial.levers[len(trial.upon) :])


def outcome(trial: Trial) -> str:
    return "not decided" if trial.undecided else OUTCOMES.get(trial.status, trial.status)


def _rank(trial: Trial) -> float:
    return -(trial.speedup.ratio if trial.speedup else 0.0)
