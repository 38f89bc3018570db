from __future__ import annotations

import random

import numpy as np

from flatout.trace.intervals import covered, gaps, innermost, merge, overlap, self_times


def array(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_the_union_is_exact() -> None:
    generator = random.Random(3)
    for _ in range(50):
        start = np.array([generator.randrange(500) for _ in range(40)], np.int64)
        end = start + np.array([generator.randrange(20) for _ in range(40)], np.int64)
        seconds = {second for a, b in zip(start, end, strict=True) for second in range(a, b)}
        assert covered(start, end) == len(seconds)
        low, high = array(0, 100, 250), array(100, 250, 600)
        wanted = [len([s for s in seconds if a <= s < b]) for a, b in zip(low, high, strict=True)]
        assert overlap(merge(start, end), low, high).tolist() == wanted
        free = gaps(merge(start, end), 0, 600)
        assert int((free[1] - free[0]).sum()) == 600 - len(seconds)


def test_self_time_is_without_children() -> None:
    # an outer call with two children, one of which has a child; then a call by itself
    start, end = array(0, 10, 20, 22, 100), array(50, 15, 40, 30, 110)
    assert self_times(start, end).tolist() == [25, 5, 12, 8, 10]
    assert innermost(array(5, 12, 25, 45, 60, 105), start, end).tolist() == [0, 1, 3, 0, -1, 4]


def test_nothing_in_gives_nothing() -> None:
    nothing = array()
    assert covered(nothing, nothing) == 0
    assert self_times(nothing, nothing).size == 0
    assert overlap((nothing, nothing), array(0), array(5)).tolist() == [0]
