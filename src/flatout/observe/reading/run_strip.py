"""The run over time: stretches in which the main thread did mostly one thing, from the moments of the sampler."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flatout.model.run_tree import PartKind, Stretch
from flatout.observe.reading.run_samples import Phases, Sample
from flatout.source import context

MOST_EPOCHS = 200


def stretches(
    fact: Mapping[str, Any],
    rows: Mapping[int, Sample],
    kinds: Mapping[int, tuple[PartKind, str]],
    phases: Phases,
    times: tuple[float, float],
) -> tuple[Stretch, ...]:
    """`rows`: samples by their place in the fact; `kinds`: what the spans are, by number; `times`: of the process."""
    began, ended = times
    try:
        first, width = float(fact["strip"]["began"]) - began, float(fact["strip"]["width"])
        moments = [[(rows.get(int(place)), float(s)) for place, s in one] for one in fact["strip"]["moments"]]
    except (KeyError, TypeError, ValueError):
        return ()
    if not math.isfinite(first) or not width > 0:
        return ()
    found: list[Stretch | None] = [Stretch(0.0, first, "interpreter")] if first > 0 else []
    for number, moment in enumerate(moments):
        at = first + number * width
        seconds = min(width, ended - began - at)
        if seconds <= 0:
            break
        found.append(_stretch(moment, kinds, phases, at, seconds) if moment else None)
    end = min(first + len(moments) * width, ended - began)
    if ended - began - end > 0:
        found.append(Stretch(end, ended - began - end, "exit"))
    return _joined(found)


def _stretch(
    moment: Sequence[tuple[Sample | None, float]],
    kinds: Mapping[int, tuple[PartKind, str]],
    phases: Phases,
    at: float,
    seconds: float,
) -> Stretch:
    """By what most of the moment was."""
    by_kind: dict[tuple[PartKind, str], float] = defaultdict(float)
    lines: dict[tuple[PartKind, str], tuple[float, Sample]] = {}
    for sample, part in moment:
        if sample is None:
            continue
        kind = kinds.get(sample.span) or (phases.kind_of(sample), _package(sample))
        by_kind[kind] += part
        if sample.frames and part > lines.get(kind, (0.0,))[0]:
            lines[kind] = (part, sample)
    if not by_kind:
        return Stretch(at, seconds, "unattributed")
    best = max(by_kind, key=lambda kind: by_kind[kind])
    frame = lines[best][1].frames[0] if best in lines else None
    where = context.where(frame[0], frame[1], frame[2]) if frame is not None else None
    return Stretch(at, seconds, best[0], best[1], where)


def _package(sample: Sample) -> str:
    return sample.importing if sample.importing not in ("", "?", "exit") else ""


def _joined(found: Sequence[Stretch | None]) -> tuple[Stretch, ...]:
    """Neighbours that are the same are one; a moment without a look (None) goes to the one before it."""
    joined: list[Stretch] = []
    for one in found:
        last = joined[-1] if joined else None
        if one is None:
            continue
        if last is not None:
            last = joined[-1] = replace(last, seconds=one.at - last.at)
        if last is not None and _alike(last, one):
            joined[-1] = replace(last, seconds=one.at + one.seconds - last.at, where=last.where or one.where)
        else:
            joined.append(one)
    return tuple(joined)


def _alike(last: Stretch, one: Stretch) -> bool:
    same = (last.kind, last.name) == (one.kind, one.name)
    return same and (last.where == one.where or last.where is None or one.where is None)


def epoch_starts(facts: Sequence[Mapping[str, Any]], began: float) -> tuple[float, ...]:
    """Seconds after the start of the process; of many epochs every n-th."""
    found = [float(fact["at"]) - began for fact in facts if isinstance(fact.get("at"), (int, float))]
    return tuple(round(at, 3) for at in found[:: max(math.ceil(len(found) / MOST_EPOCHS), 1)])
