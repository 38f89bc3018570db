"""How much a session is fed: arrays by their bytes, lists by their numbers, a learning rate next to nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flatout.causes.feed_dict import SCALARS
from flatout.observe.probes.steps_of_sessions import _size


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (0.01, 8),
        (True, 8),
        (np.float32(0.5), 4),
        (np.zeros((32, 10), np.float32), 1280),
        ([[0.0] * 10] * 32, 2560),
        ([np.zeros(10, np.float32)] * 32, 1280),
        ([], 0),
    ],
    ids=["rate", "switch", "scalar", "array", "list", "list of arrays", "nothing"],
)
def test_the_size_of_what_is_fed(value: Any, size: int) -> None:
    assert _size(value) == size


def test_a_batch_of_pictures_is_more_than_a_few_rows() -> None:
    assert _size([[0.0] * 10] * 32) <= SCALARS < _size(np.zeros((32, 784), np.float32))
