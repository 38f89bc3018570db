"""Makes the observed program a trial: shielded, seeded, held at the gate. Called before any of the user's code."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from flatout.trial.settings import GateSettings, GuestSettings, TrialSettings

if TYPE_CHECKING:
    from flatout.observe.observer import Observer


def make_trial(observer: Observer, settings: TrialSettings) -> None:
    from flatout.trial.child import gate, iterators, perturbed, scouting, seeds, shield, values, without_dropout

    shield.install(observer.recorder.directory)
    observer.companions.append(shield)
    if settings.seed is not None:
        seeds.install(settings.seed)
        observer.companions.append(seeds)
    if settings.without_dropout:
        observer.companions.append(without_dropout)
    if settings.perturbed:
        observer.companions.append(perturbed)
    role = settings.role
    if isinstance(role, GuestSettings):
        importlib.import_module(role.module).start(observer, role.request)
    elif isinstance(role, GateSettings):
        observer.companions += [values, iterators]
        observer.at_step = gate.Gate(observer, role, values).tick
    else:
        observer.at_step = scouting.Scout(observer).tick
