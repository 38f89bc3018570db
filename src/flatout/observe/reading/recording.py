"""Reads back what the child wrote, whole or cut short."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatout.model import json_text
from flatout.observe.recorder import TICK_FIELDS

Fact = dict[str, Any]

LARGEST = 1e12
"""Seconds, steps and numbers of streams stay below."""


@dataclass(frozen=True)
class Recording:
    directory: Path
    facts: dict[str, list[Fact]] = field(default_factory=dict)
    ticks: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, len(TICK_FIELDS))))
    damaged: int = 0

    def all(self, kind: str) -> list[Fact]:
        return self.facts.get(kind, [])

    def last(self, kind: str) -> Fact:
        """The newest fact of a kind: counters only grow, so it says it all."""
        found = self.facts.get(kind)
        return found[-1] if found else {}

    @property
    def started(self) -> bool:
        return "start" in self.facts

    @property
    def ended(self) -> bool:
        return "end" in self.facts

    def imported(self, package: str) -> Fact | None:
        return next((fact for fact in self.all("import") if fact["package"] == package), None)


def load(directory: Path) -> Recording:
    facts: dict[str, list[Fact]] = defaultdict(list)
    damaged = 0
    states = sorted(directory.glob("state-*.jsonl"))
    for path in (directory / "facts.jsonl", directory / "counters.jsonl", *states):
        if not path.exists():
            continue
        with open(path, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                try:
                    fact = json_text.parse(line)
                    facts[fact.pop("kind")].append(fact)
                except (ValueError, KeyError, AttributeError, TypeError):
                    damaged += 1  # the line that a kill cut short
    rows = np.zeros(0)
    if (directory / "ticks.bin").exists():
        raw = (directory / "ticks.bin").read_bytes()
        rows = np.frombuffer(raw[: len(raw) // 8 * 8], dtype=np.float64)
    width = len(TICK_FIELDS)
    ticks = rows[: len(rows) // width * width].reshape(-1, width)
    sound = np.abs(ticks).max(axis=1, initial=0.0) < LARGEST  # not so for NaN either
    return Recording(directory, dict(facts), ticks[sound], damaged + int((~sound).sum()))
