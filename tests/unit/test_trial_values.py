"""What is kept of a program's values before there is any TensorFlow."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flatout.measure.parity import Numbers
from flatout.trial.child.values import Values, kept, targets, weights
from flatout.trial.child.values.kept import MOST_STEPS


def test_nothing_is_wanted_of_a_program_that_has_not_imported_tensorflow(tmp_path: Path) -> None:
    values = Values(str(tmp_path))
    assert not values.wanted, "a look at the weights would import TensorFlow for the program"
    values.write()
    assert not list(tmp_path.iterdir())
    values.begin(str(tmp_path))
    assert values.wanted


def test_scalars_are_kept_with_the_steps_before_them_and_read_back(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    values = Values(str(tmp_path))
    values.begin(str(tmp_path))
    values.steps = 2
    values.keep_scalar("loss", 1, 0.5)
    values.keep_output("predict[0]", numpy.ones((2, 3), numpy.float32))
    values.keep_output("predict[0]", numpy.zeros((1, 3), numpy.float32))
    values.write()
    with numpy.load(tmp_path / "numbers.npz") as stored:
        assert stored["series/0"].tolist() == [[1.0, 0.5, 2.0]]
        assert stored["outputs/0"].tolist() == [1.0] * 6 + [0.0] * 3
    (tmp_path / "numbers.npz").unlink()
    values.write()
    assert not (tmp_path / "numbers.npz").exists(), "nothing was kept since"


def test_results_whose_keys_have_no_order_are_kept_in_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numpy = pytest.importorskip("numpy")

    def flatten(structure: Any) -> list[Any]:
        return [structure[key] for key in sorted(structure)] if isinstance(structure, dict) else [structure]

    for name in ("tensorflow", "tensorflow.python", "tensorflow.python.util"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    nest: Any = ModuleType("tensorflow.python.util.nest")
    nest.flatten = flatten
    monkeypatch.setitem(sys.modules, nest.__name__, nest)
    monkeypatch.setattr(sys.modules["tensorflow.python.util"], "nest", nest, raising=False)
    values = Values(str(tmp_path))
    one, other = numpy.zeros(2, numpy.float32), numpy.ones(2, numpy.float32)
    values.keep_results("sorted", {"b": other, "a": one}, 1)
    values.keep_results("mixed", {"b": (other, one), 1: [one]}, 1)
    kept_now = {name: [part.tolist() for part in parts] for name, parts in values.outputs.items()}
    first = {"sorted[0]": [one.tolist()], "sorted[1]": [other.tolist()]}
    assert kept_now == first | {
        "mixed[0]": [other.tolist()],
        "mixed[1]": [one.tolist()],
        "mixed[2]": [one.tolist()],
    }


def test_calls_are_counted_up_to_the_last_that_is_kept(tmp_path: Path) -> None:
    values = Values(str(tmp_path))
    assert [values.count_call("model") for _ in range(2)] == [1, 2]
    numbers = [values.count_call("step") for _ in range(MOST_STEPS + 2)]
    assert numbers == [*range(1, MOST_STEPS + 1), None, None]


def test_a_run_that_is_only_compared_is_looked_at_to_its_end_and_as_epochs_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "snapshot", lambda *given: {})
    values = Values(str(tmp_path), dense=True)
    values.begin(str(tmp_path))
    for step in range(1, 301):
        if step in (1, 78, 250):
            values.begin_epoch()
        values.tick(step)
    assert values.epochs == [0, 77, 249]
    assert set(range(1, 65)) <= set(values.snapshots)
    assert {78, 79, 81, 85, 250, 251, 253, 257} <= set(values.snapshots), "as the epochs begin"
    assert {128, 144, 160, 256, 288} <= set(values.snapshots), "and in between"
    assert len(values.snapshots) < 110
    values.finish()
    assert 301 in values.snapshots, "what follows the last step"
    assert values.ended


def test_all_losses_of_such_a_run_are_kept(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    values = Values(str(tmp_path), dense=True)
    values.begin(str(tmp_path))
    for step in range(1, 401):
        values.steps = step
        values.keep_scalar("loss", step, numpy.float32(step))
    values.write()
    with numpy.load(tmp_path / "numbers.npz") as stored:
        assert stored["series/0"][:, 1].tolist() == [float(step) for step in range(1, 401)]


class Counted:
    """Stands for a variable that ops count in."""

    def __init__(self, value: object) -> None:
        self.value = value

    def numpy(self) -> object:
        return self.value


def test_a_run_without_end_is_kept_in_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets, marks and beginnings of epochs, where each step begins a dataset."""
    monkeypatch.setattr(targets, "MOST", 2000)
    monkeypatch.setattr(kept, "MOST_BEGUN", 500)
    values = Values(str(tmp_path), dense=True)
    values.wanted = True
    assert values.targets is not None
    values.targets._count, values.targets._log = Counted(0), Counted([0.5] * targets.SIZE)
    for step in range(1, 10_000):
        values.targets._count.value = step
        values.begin_epoch()
        values.tick(step, "updates")
    values.write()
    assert targets.MOST <= len(values.targets._read) <= targets.MOST + targets.SIZE
    assert len(values.targets.marks) <= targets.MOST + targets.SIZE
    assert len(values.epochs) == kept.MOST_BEGUN
    assert len(values.snapshots) < 400
    numbers = Numbers.load(tmp_path / "numbers.npz")
    assert (numbers.made, max(numbers.series["tape target"])) == (9_999, len(values.targets._read))


def test_losses_that_are_no_numbers_are_kept_and_those_that_were_missed_are_not(tmp_path: Path) -> None:
    values = Values(str(tmp_path), dense=True)
    assert values.targets is not None
    values.wanted = True
    values.targets._count, values.targets._log = Counted(0), Counted([float("nan")] * targets.SIZE)
    for step in range(1, 9):
        values.targets._count.value = step
        values.tick(step, "updates")
        values.keep_scalar("loss", step, float("inf"))
    values.keep_scalar("loss", 9, "what cannot be read")
    values.targets._count.value = targets.SIZE + 9
    values.write()
    series = Numbers.load(tmp_path / "numbers.npz").series
    assert len(series["tape target"]) == targets.SIZE, "the first nine were written over"
    assert all(value != value for (value,) in series["tape target"].values())
    assert series["loss"] == {step: [float("inf")] for step in range(1, 9)}


def test_of_a_variable_all_elements_that_are_no_numbers_count() -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.ones(100)
    array[[3, 50]] = numpy.nan, numpy.inf
    assert weights._no_numbers(array) == 2
    assert weights._no_numbers(numpy.arange(5)) == 0
    assert weights._no_numbers(numpy.array(["text"])) == 0
