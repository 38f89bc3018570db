"""Makes the observed program a trial: shielded, seeded, held at the gate. Called before any of the user's code."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from flatout.trial.settings import GateSettings, GuestSettings, ScoutSettings, TrialSettings, WholeSettings

if TYPE_CHECKING:
    from flatout.observe.observer import Observer


def hold_back(directory: str, settings: TrialSettings) -> None:
    """For a Python of the trial that is not the one observed."""
    from flatout.trial.child import no_network, shield

    shield.install_unobserved(directory, settings.writable, settings.held, settings.moves)
    if not settings.network:
        no_network.install()


def make_trial(observer: Observer, settings: TrialSettings) -> None:
    from flatout.trial.child import gate, iterators, no_network, perturbed, pinned, scouting, seeds, shield, whole
    from flatout.trial.child.values import Values
    from flatout.trial.child.values.hooks import probe_of

    shield.install(observer.recorder.directory, settings.writable, settings.held, settings.moves)
    if not settings.network:
        no_network.install()
    observer.more_probes.append(shield.PROBE)
    if settings.seed is not None:
        seeds.install(settings.seed)
        observer.more_probes.append(seeds.PROBE)
    if settings.pinned:
        pinned.install(settings.seed or 0)
        observer.more_probes.append(pinned.PROBE)
    if settings.perturbed:
        observer.more_probes.append(perturbed.probe_of(settings.seed))
    role = settings.role
    if settings.kept or (isinstance(role, ScoutSettings) and role.keeps):
        from flatout.trial.child.kept import cells

        cells.install(observer, settings.kept)
    if isinstance(role, GuestSettings):
        importlib.import_module(role.module).start(observer, role.request)
    elif isinstance(role, GateSettings):
        values = Values(observer.recorder.directory, settings.pinned, pinned.places.seen if settings.pinned else ())
        observer.more_probes += [probe_of(values), iterators.PROBE]
        held = gate.Gate(observer, role, values)
        observer.trial.at_step = held.tick
        os.register_at_fork(after_in_child=held.leave_to_parent)
    elif isinstance(role, WholeSettings):
        observer.trial.at_step = whole.Whole(observer, role).tick
    else:
        observer.trial.at_step = scouting.Scout(observer, role).tick
