"""Turns the observed program into a trial: shielded, seeded, held at the gate. Called before any of the user's code."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flatout.observe.observer import Observer


def start(observer: Observer, settings: dict[str, Any]) -> None:
    """`settings`: shield, calm, shaken (bool), seed, gate ({read, write, priority, passing, fills}), scout or guest."""
    from flatout.trial import calm, gate, iterators, numbers, seeds, shaken, shield

    if settings.get("shield", True):
        shield.install(observer.recorder.directory)
        observer.companions.append(shield)
    if settings.get("seed") is not None:
        seeds.install(settings["seed"])
        observer.companions.append(seeds)
    if settings.get("calm"):
        observer.companions.append(calm)
    if settings.get("shaken"):
        observer.companions.append(shaken)
    if settings.get("guest"):
        # The command that started this program brings its own work into it (`data inspect`, `data tune`).
        importlib.import_module(settings["guest"]["module"]).start(observer, settings["guest"])
        return
    if settings.get("scout"):
        observer.at_step = gate.Scout(observer).tick
        return
    observer.companions += [numbers, iterators]
    observer.at_step = gate.Gate(observer, settings["gate"], numbers).tick
