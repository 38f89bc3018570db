"""Turns the observed program into a trial: shielded, seeded, held at the gate. Called before any of the user's code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flatout.observe.observer import Observer


def start(observer: Observer, settings: dict[str, Any]) -> None:
    """`settings`: shield, calm, shaken (bool), seed, gate ({read, write, priority, passing, fills}), scout or data."""
    from flatout.tune.child import calm, gate, iterators, numbers, seeds, shaken, shield

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
    if settings.get("data"):
        from flatout.pipeline import child as data

        data.start(observer, settings["data"])
        return
    if settings.get("scout"):
        observer.at_step = gate.Scout(observer).tick
        return
    observer.companions += [numbers, iterators]
    observer.at_step = gate.Gate(observer, settings["gate"], numbers).tick
