"""The first of a row of environments that is slow, asked for as few times as possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Answer = bool | None
"""Whether it is slow; None where it cannot be told, because it cannot be installed or does not run the program."""


@dataclass(frozen=True)
class Found:
    good: int
    """The last that is known to be fast…"""
    bad: int
    """…and the first after it that is known to be slow."""
    unknown: tuple[int, ...] = ()
    """Those between them, which could not be asked."""


def first_slow(count: int, ask: Callable[[int], Answer]) -> Found:
    """Of `count` in a row, of which number 0 is fast and the last one slow, by halving what is open.

    One that cannot be asked is passed over; the nearest to the middle that can is asked in its place.
    """
    good, bad = 0, count - 1
    unknown: set[int] = set()
    while True:
        between = [one for one in range(good + 1, bad) if one not in unknown]
        if not between:
            return Found(good, bad, tuple(range(good + 1, bad)))
        middle = min(between, key=lambda one: (abs(2 * one - good - bad), one))
        answer = ask(middle)
        if answer is None:
            unknown.add(middle)
        elif answer:
            bad = middle
        else:
            good = middle
