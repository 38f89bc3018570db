"""Findings that add up: one place is listed once, and the same milliseconds are counted once.

Several causes may stand for the same time: each that slows down the input stands for the wait for it. All of them are
worth reading, as each has a cure of its own, but their costs are no sum. The findings are taken from the most
expensive to the cheapest, and each gets of its milliseconds those that no finding before it has. The rest is put down
as `counted_before`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding

NOTHING = 1e-9


def listed_once(found: Iterable[Finding]) -> list[Finding]:
    """One finding of each cause at each place: the most expensive."""
    best: dict[tuple[object, ...], Finding] = {}
    for item in found:
        # Without a place, what it says tells two findings apart.
        spot = (item.where.file, item.where.line) if item.where is not None else (item.summary,)
        key = (item.cause, *spot)
        if key not in best or best[key].full_share < item.full_share:
            best[key] = item
    return list(best.values())


def rank(item: Finding, case: Case, causes: Mapping[str, Cause]) -> tuple[bool, float]:
    """By cost to the run; but what ended the program comes before what slowed it down."""
    part_of_run = 1.0 if item.of == "run" else queries.steps_share(case)
    return not causes[item.cause].ends_program, -item.full_share * part_of_run


def counted_once(ranked: Sequence[Finding], case: Case, causes: Mapping[str, Cause]) -> list[Finding]:
    """The findings in their order, none with milliseconds that one before it has counted."""
    left = {"step": 1.0, "run": 1.0}
    of_input = [item for item in ranked if _is_input(item, causes)]
    waiting = max([queries.share(case, queries.input_ms(case)), *(item.full_share for item in of_input[:1])])
    counted = []
    for item in ranked:
        if item.cost_share is None:
            counted.append(item)
            continue
        room = left[item.of]
        if _is_input(item, causes):
            room = min(room, waiting)
        own = min(item.cost_share, room)
        if own < item.cost_share - NOTHING:
            scale = own / item.cost_share
            item = replace(
                item,
                cost_ms=None if item.cost_ms is None else item.cost_ms * scale,
                cost_share=own,
                counted_before=item.cost_share - own,
            )
        left[item.of] = max(left[item.of] - own, 0.0)
        if _is_input(item, causes):
            waiting = max(waiting - own, 0.0)
        counted.append(item)
    return counted


def _is_input(item: Finding, causes: Mapping[str, Cause]) -> bool:
    return item.of == "step" and causes[item.cause].group == "input"
