"""Loops of the graph are found where the trace shows their ops, and where it leaves all of them out as too cheap."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flatout.model.evidence.graphs import GraphLoop
from flatout.observe.reading.evidence import graph
from flatout.observe.reading.graphs import Graphs
from flatout.observe.reading.recording import Recording
from flatout.trace.host_steps import OpTime, StepSplit

PROGRAM = """\
import tensorflow as tf

@tf.function
def step(batch):
    total = 0.0
    for i in tf.range({length}):
        total += tf.reduce_sum(batch[i])
    return total
"""
FOR, BODY = 0, 1
MS = 10**9  # picoseconds


def seen(tmp_path: Path, ops: list[OpTime], length: str = "128", apart: bool = True) -> list[GraphLoop]:
    """Four steps of 20 ms, of which the executor spends 18 between small ops."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(length=length), encoding="utf-8")
    outer = [
        ["batch", "Placeholder", BODY, "float32", "64,32"],
        ["dense/MatMul", "MatMul", -1, "float32", "64,10"],
        ["range", "Range", FOR, "int32", "128" if length.isdigit() else "?"],
        ["while", "StatelessWhile", FOR, "int32", ""],
    ]
    body = [
        ["while/batch", "Placeholder", BODY, "float32", "64,32" if apart else ""],
        ["while/strided_slice", "StridedSlice", BODY, "float32", "32"],
        ["while/Sum", "Sum", BODY, "float32", ""],
        ["while/add", "AddV2", BODY, "float32", ""],
    ]
    facts = {
        "places": [{"rows": [[str(file), 6, "step"], [str(file), 7, "step"]]}],
        "graph": [
            {"name": "step", "type": "FuncGraph", "outer": "", "ops": outer},
            {"name": "while_body_12", "type": "WhileBodyFuncGraph", "outer": "step", "ops": body},
        ],
    }
    start = np.arange(4, dtype=np.int64) * 20 * MS
    split = StepSplit(
        start, start + 20 * MS, np.ones(4, np.int64), executing=np.full(4, 18 * MS, np.int64), ops=tuple(ops)
    )
    return graph.loops(Graphs(Recording(tmp_path, facts)), split)


OUTSIDE = OpTime("dense/MatMul", "MatMul", 0.002, 4)


def test_a_traced_loop_is_told_from_the_trace(tmp_path: Path) -> None:
    (found,) = seen(tmp_path, [OUTSIDE, OpTime("while/body/_1/while/Sum", "Sum", 0.004, 4 * 128)])
    assert (found.source, found.value) == ("trace", 128)
    assert found.ms_per_step == pytest.approx(1.0)
    assert found.where is not None
    assert found.where.line == 7


def test_a_loop_that_the_trace_leaves_out_is_told_from_the_graph(tmp_path: Path) -> None:
    (found,) = seen(tmp_path, [OUTSIDE])
    assert (found.source, found.value) == ("graph", 128)
    assert found.where is not None
    assert found.where.line == 7
    # 128 turns of three ops, beside one op outside: nearly all of what lies between small ops is the loop's.
    assert found.ms_per_step == pytest.approx(18 * 384 / 385)


def test_ops_of_which_few_were_traced_before_they_were_known_to_be_cheap(tmp_path: Path) -> None:
    (found,) = seen(tmp_path, [OUTSIDE, OpTime("while/body/_1/while/Sum", "Sum", 1e-5, 6)])
    assert found.source == "graph"


def test_the_length_is_that_of_what_is_taken_apart_where_the_range_is_not_known(tmp_path: Path) -> None:
    (found,) = seen(tmp_path, [OUTSIDE], length="tf.shape(batch)[0]")
    assert found.value == 64
    (found,) = seen(tmp_path, [OUTSIDE], length="tf.shape(batch)[0]", apart=False)
    assert found.value == 64  # the step's input has that size, too


def test_a_graph_that_did_not_run_tells_of_no_loop(tmp_path: Path) -> None:
    assert seen(tmp_path, [OpTime("evaluate/MatMul", "MatMul", 0.002, 4)]) == []
