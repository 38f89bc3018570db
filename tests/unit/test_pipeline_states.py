"""What keeps a stage from being cached: all state of its functions, not only the strongest."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from flatout.observe import stages
from flatout.pipeline import caching


class MapDataset:
    """As a map of TensorFlow, by the ops of its function and the types of what it holds."""

    def __init__(self, *ops: str, holds: tuple[str, ...] = ()) -> None:
        nodes = [SimpleNamespace(op=op) for op in ops]
        definition = SimpleNamespace(node=nodes, library=SimpleNamespace(function=[]))
        held = [SimpleNamespace(dtype=SimpleNamespace(name=name)) for name in holds]
        graph = SimpleNamespace(as_graph_def=lambda: definition)
        self.function: Any = SimpleNamespace(function=SimpleNamespace(graph=graph, captured_inputs=held))

    def _functions(self) -> list[Any]:
        return [self.function]


@pytest.mark.parametrize(
    ("ops", "holds", "reason"),
    [
        (("Mul", "StatelessRandomUniformV2"), (), None),
        (("EagerPyFunc",), (), None),
        (("LookupTableFindV2",), ("resource",), None),
        (("EagerPyFunc", "ReadVariableOp"), ("resource",), "variable"),
        (("LookupTableFindV2", "ReadVariableOp"), ("resource", "resource"), "variable"),
        (("EagerPyFunc", "RngReadAndSkip"), ("resource",), "resource"),
        (("EagerPyFunc", "RandomUniform"), (), "random"),
        (("SampleDistortedBoundingBoxV2",), (), "random"),
        (("RngReadAndSkip",), ("resource",), "resource"),
    ],
)
def test_no_state_hides_another_that_changes_the_elements(
    ops: tuple[str, ...], holds: tuple[str, ...], reason: str | None
) -> None:
    assert caching.hindrance(MapDataset(*ops, holds=holds)) == (reason and f"its function keeps state ({reason})")


def test_the_strongest_state_is_the_one_that_is_shown() -> None:
    assert stages.states(MapDataset("EagerPyFunc", "ReadVariableOp", holds=("resource",))) == ["python"]
    assert stages.states(MapDataset("Unknown", holds=("resource",))) == ["resource"]
    assert stages.states(MapDataset("Mul")) == []
