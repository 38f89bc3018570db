"""A function that a lever would trace is called with whatever the program has."""

from __future__ import annotations

from typing import Any

import pytest

from flatout.cures._tracing import Traced


class Unhashable:
    def __init__(self) -> None:
        self.shape, self.dtype = (2,), ["float32"]


class Incomparable(str):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("it is compared with nothing")

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize("given", [Unhashable(), Incomparable("a")], ids=["hash", "eq"])
def test_a_call_runs_as_written_where_its_arguments_cannot_be_told_apart(given: Any) -> None:
    traced = Traced(lambda value: value, "step", lambda: None, lambda why: None)
    traced.ways[(((Incomparable, Incomparable("b")),), ())] = None  # type: ignore[assignment]
    assert traced.call((given,), {}) is given
