"""Behind which stages files may be read in another order: without TensorFlow."""

from __future__ import annotations

from typing import Any

import pytest

from flatout.cures.parallel_reads.dataset import is_shuffled


def stages(*kinds: str) -> list[Any]:
    """As they stand behind the reader, the last one first."""
    made = [type(f"_{kind}Dataset", (), {"_functions": lambda self: []})() for kind in kinds]
    return made[::-1]


@pytest.mark.parametrize("kinds", [("Shuffle",), ("Map", "Prefetch", "Shuffle", "Batch"), ("Shuffle", "Take")])
def test_a_shuffle_behind_stages_that_take_elements_in_any_order(kinds):
    assert is_shuffled(stages(*kinds))


@pytest.mark.parametrize("kinds", [(), ("Map",), ("Take", "Shuffle"), ("Skip", "Shuffle"), ("Batch", "Shuffle")])
def test_elements_that_are_picked_by_their_order_before_a_shuffle_would_be_others(kinds):
    assert not is_shuffled(stages(*kinds))
