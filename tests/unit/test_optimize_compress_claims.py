"""What compression says of its results: files that answer NaN, a latency that was chosen, samples to choose by."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flatout.model.case import Interval
from flatout.model.errors import CompressionFailed
from flatout.optimize.checks import AccuracyBudget
from flatout.optimize.compress import checks, command, litert, onnx_qdq, prune
from flatout.optimize.compress import samples as samples_module
from flatout.subject.preparation import SubjectRequest
from flatout.subject.samples import Samples

SCORES = np.random.default_rng(0).normal(size=(20, 4))


def test_a_file_that_answers_nan_is_not_what_was_trained(tmp_path: Path) -> None:
    path = tmp_path / "small.tflite"
    path.write_bytes(b"file")
    assert litert.check_file(path, [SCORES], [SCORES], 3).apart == 0.0
    broken = SCORES.copy()
    broken[4] = np.nan
    with pytest.raises(CompressionFailed, match="inf int8 steps"):
        litert.check_file(path, [SCORES, SCORES], [SCORES, broken], 3)


@pytest.mark.parametrize(
    ("output", "code", "said"),
    [
        ("Epoch 1/3\n313/313 - accuracy: 0.91\n", 1, "exit code 1"),
        ("5\n", -9, "exit code -9"),
        ("", 0, "exit code 0 and no answer"),
        ("loss 0.3\n", 0, "exit code 0 and no answer"),
        ('Epoch 1/3\n{"error": "there is no stage named prun"}\n', -6, "no stage named prun"),
    ],
)
def test_a_compression_that_died_is_an_error_whatever_its_training_printed(
    monkeypatch: pytest.MonkeyPatch, output: str, code: int, said: str
) -> None:
    child = SimpleNamespace(communicate=lambda: (output, None), returncode=code)
    monkeypatch.setattr(command.subprocess, "Popen", lambda *arguments, **options: child)
    request = command.CompressionRequest(SubjectRequest("", "m.keras"), "int8", None, AccuracyBudget(), 60.0)
    with pytest.raises(CompressionFailed, match=f"The compression failed: .*{said}"):
        command.run_compression(request)


def test_a_converter_that_raises_anything_loses_its_own_file_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(model: Any, path: Path, inputs: Any) -> None:
        raise RuntimeError("no kernel\nfor this node")

    monkeypatch.setattr(litert, "write", fails)
    monkeypatch.setattr(onnx_qdq, "write", lambda model, path, inputs: SimpleNamespace(path=path))
    model = SimpleNamespace(save=lambda path: None)
    paths, missing = command._write_files(model, True, [], tmp_path, "small")
    assert [path.name for path in paths] == ["small.keras", "small.onnx"]
    assert missing == ["small.tflite: RuntimeError: no kernel for this node"]


def test_a_distance_to_nan_is_none() -> None:
    assert not checks.distance([SCORES, SCORES], [SCORES, SCORES * np.nan]) <= 1.0


def test_an_earlier_file_and_one_that_fails_are_not_left(tmp_path: Path) -> None:
    path = tmp_path / "small.tflite"
    path.write_bytes(b"of another model")
    with litert.made_anew(path):
        assert not path.exists()
        path.write_bytes(b"new")
    assert path.read_bytes() == b"new"

    def fails() -> None:
        with litert.made_anew(path):
            path.write_bytes(b"wrong")
            raise CompressionFailed("it differs")

    with pytest.raises(CompressionFailed):
        fails()
    assert not path.exists()


def test_a_latency_is_measured_anew_once_it_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several that were tried, the one that was reached is also the one that was lucky."""
    ratios = iter([2.2, 1.5, 2.1, 1.9, 1.95, 1.99, 1.7])
    monkeypatch.setattr(prune.latency, "compiled", lambda model, batch: None)
    monkeypatch.setattr(prune.shrink, "remove_units", lambda known, removed: None)
    monkeypatch.setattr(prune.latency, "side_by_side", lambda *models: Interval(ratio := next(ratios), ratio, ratio))
    before: Any = SimpleNamespace(parameters=lambda: 1, flops=lambda: 1.0)
    goal = prune._Goal("latency", before, 4, None)
    planner: Any = SimpleNamespace(removable=64, removing=lambda count: frozenset(range(count)))
    goal._by_latency(None, planner, 0.5, final=True)  # type: ignore[arg-type]
    assert goal.details["speedup"] == "1.70× [1.70, 1.70] at batch 4"


@pytest.mark.parametrize(("count", "chosen"), [(600, 350), (1100, 600)])
def test_what_is_chosen_by_is_not_what_the_ranges_were_found_on_where_there_is_enough(
    monkeypatch: pytest.MonkeyPatch, count: int, chosen: int
) -> None:
    rows = np.arange(count)
    monkeypatch.setattr(samples_module.keras_models, "declared_inputs", lambda model: ["x"])
    monkeypatch.setattr(samples_module.data, "read_samples", lambda *given: Samples({"x": rows}, [rows]))
    monkeypatch.setattr(samples_module.input_matching, "apply_shapes", lambda inputs, *more: inputs)
    monkeypatch.setattr(samples_module.input_matching, "match_inputs", lambda samples, *more: [rows])
    request = SubjectRequest("", "m", "data.npz", calibration=250, samples=250)
    found = samples_module.read(request, None)
    assert len(found.inputs[0]) == len(found.labels[0]) == chosen
    both = set(found.inputs[0].tolist()) & set(found.calibration[0].tolist())
    assert bool(both) is (count == 600)
