"""`flatout data inspect`: how a target is understood, the view of its case, the alignment with what TensorFlow runs."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest
from rich.cells import cell_len

from flatout.data import inspection
from flatout.data.progress import Progress
from flatout.data.session import TARGET, PipelineRequest
from flatout.model.case import Case, Pipeline, Stage, StageDetail, Where
from flatout.model.errors import FlatoutError, ProgramNotFound
from flatout.model.evidence.pipelines import PipelinePace
from flatout.model.quantities import size
from flatout.pipeline.runtime_model import Node, runs_as
from flatout.report.terminal import render


def stage(name: str, ms: float, share: float, **detail: Any) -> Stage:
    known = {"ms_per_batch": ms * 32, "cpu_ms_per_batch": ms * 16, "cpu_ms": ms / 2, "per_batch": 32.0, **detail}
    where = Where("/home/ada/train.py", 31)
    return Stage(
        name, name, where, "decode" if name == "Map" else None, ms, share, 64, 6400, detail=StageDetail(**known)
    )


def case(**pace: Any) -> Case:
    stages = (
        stage("TensorSlice", 0.001, 0.01),
        stage("Map", 2.0, 0.9, critical=True, runs_as="ParallelMapV2", element_bytes=150528),
        stage("Batch", 0.1, 0.09, batch=32, memory_bytes=1 << 22),
    )
    measured = {"now_ms": 33.0, "divided_ms": 20.0, "unbounded_ms": 0.5, "cores": 2.0, **pace}
    evidence = PipelinePace(33.0, "pipeline 1", **measured, critical=1)
    pipeline = Pipeline("pipeline 1", Where("/home/ada/train.py", 31), stages, ("ParallelMapV2", "Prefetch"))
    found = Case("data", pipelines=(pipeline,), evidence=(evidence,))
    return Case("data", pipelines=(pipeline,), evidence=(evidence,), verdict=inspection.verdict(found))


@pytest.mark.parametrize("width", [80, 120])
def test_the_view_draws_the_pipeline_and_marks_the_stage_that_limits_it(width):
    text = render(case(needs_ms=10.0), "stages", width, color=False, unicode=True)
    assert all(cell_len(line) <= width for line in text.splitlines())
    hot = next(line for line in text.splitlines() if "◀ limits it" in line)
    assert "Map decode" in hot
    assert "█" in hot
    assert "░" in hot
    for expected in ("64.0 ms", "2.00 ms", "90 %", "ParallelMapV2 → Prefetch", "30.3 a second", "100 a second"):
        assert expected in " ".join(text.split()), expected
    assert "?" not in render(case(), "stages", width, color=False, unicode=False).replace("�", "?")


def test_the_verdict_names_the_stage_and_says_whether_it_is_enough():
    assert "the map decode at train.py:31 is the stage that limits it (90% of its work)" in case().verdict
    assert "it has to wait" in inspection.verdict(case(needs_ms=10.0))
    assert "enough" in inspection.verdict(case(needs_ms=50.0))


def test_a_case_without_measured_stages_says_what_to_do():
    assert "flatout data inspect" in render(Case("data"), "stages", 80, color=False)


@pytest.mark.parametrize(
    ("written", "nodes", "expected"),
    [
        (["TensorSlice", "Map", "Batch"], ["TensorSlice", "MapAndBatch", "Prefetch"], {0: 0, 1: 1, 2: 1}),
        (["Range", "Map", "Shuffle", "Map"], ["Range", "ParallelMapV2", "Shuffle", "Map"], {0: 0, 1: 1, 2: 2, 3: 3}),
        (["Range", "ParallelMap"], ["Range", "ParallelMapV2"], {0: 0, 1: 1}),
        (["Tensor", "Map"], [], {}),
    ],
)
def test_written_stages_find_the_node_that_runs_them(written, nodes, expected):
    made = [Node(name) for name in nodes]
    assert {at: made.index(node) for at, node in runs_as(written, made).items()} == expected


def test_a_target_is_a_function_or_a_program(tmp_path):
    assert PipelineRequest("data.images:train").command == (sys.executable, str(TARGET), "data.images:train")
    assert PipelineRequest("input.py:Data.train").command[1:] == (str(TARGET), "input.py:Data.train")
    program = tmp_path / "train.py"
    program.write_text("")
    assert PipelineRequest(str(program), ("--epochs", "3")).command == (sys.executable, str(program), "--epochs", "3")
    assert PipelineRequest("package.train", module=True).command == (sys.executable, "-m", "package.train")
    with pytest.raises(ProgramNotFound):
        _ = PipelineRequest("nowhere.py").command


def test_sizes():
    """One rule in all options: MB is 10⁶, MiB is 2²⁰."""
    texts = ("512", "500M", "128MB", "1.5 GiB", "4g", "2k", "1TiB")
    assert [size(text, "--memory") for text in texts] == [
        512, 500_000_000, 128_000_000, 3 << 29, 4_000_000_000, 2000, 1 << 40
    ]  # fmt: skip
    for text in ("much", "", "MB", "0", "-1MB"):
        with pytest.raises(FlatoutError, match="--memory takes a size such as 128MB"):
            size(text, "--memory")


def test_progress_tells_each_thing_once(tmp_path):
    path, stream = tmp_path / "progress.txt", io.StringIO()
    with Progress(path, 60.0, stream=stream) as progress:
        progress.update()
        path.write_text("0.1\tmeasuring Map\n0.2\ttrying \x1b[31mcache\n")
        progress.update()
        progress.update()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert "measuring Map" in lines[1]
    assert "left at most" in lines[1]
    assert "\x1b" not in lines[2]
