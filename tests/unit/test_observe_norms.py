"""Batch normalisation by hand is told from an optimizer's squares and roots, and from means of losses."""

from __future__ import annotations

from pathlib import Path

from flatout.observe.reading.evidence import graph
from flatout.observe.reading.graphs import Graphs
from flatout.observe.reading.recording import Recording

MEAN, VARIANCE, ROOT, UPDATE = range(4)
NORM = [
    ["norm/Mean", "Mean", MEAN, "float32", "1,1,1,16"],
    ["norm/SquaredDifference", "SquaredDifference", VARIANCE, "float32", "32,8,8,16"],
    ["norm/variance", "Mean", VARIANCE, "float32", "1,1,1,16"],
]
ADAM = [
    ["adam/Square", "Square", UPDATE, "float32", "16"],
    ["adam/Sqrt", "Sqrt", UPDATE, "float32", "16"],
    ["adam/AssignSubVariableOp", "AssignSubVariableOp", UPDATE, "float32", ""],
]


def lines(tmp_path: Path, *ops: list[object]) -> list[int | None]:
    """The lines at which a norm was found, in a function whose rows are mean, variance, root and update."""
    file = tmp_path / "program.py"
    file.write_text("def step(x):\n" + "    x = x\n" * 6, encoding="utf-8")
    facts = {
        "places": [{"rows": [[str(file), 2 + row, "step"] for row in range(4)]}],
        "graph": [{"name": "step", "type": "FuncGraph", "outer": "", "ops": list(ops)}],
    }
    found = graph.norms(Graphs(Recording(tmp_path, facts)))
    return [item.where.line if item.where else None for item in found]


def test_a_norm_by_hand_is_found_beside_an_optimizer(tmp_path):
    assert lines(tmp_path, *NORM, ["norm/Rsqrt", "Rsqrt", ROOT, "float32", "1,1,1,16"], *ADAM) == [2 + ROOT]


def test_losses_and_an_optimizer_are_no_norm(tmp_path):
    losses = [[f"loss_{i}/Mean", "Mean", MEAN, "float32", "16"] for i in range(3)]
    assert lines(tmp_path, *losses, ["error/Square", "Square", VARIANCE, "float32", "16,1"], *ADAM) == []


def test_a_root_of_other_channels_is_no_norm(tmp_path):
    assert lines(tmp_path, *NORM, ["length/Sqrt", "Sqrt", ROOT, "float32", "64"]) == []
