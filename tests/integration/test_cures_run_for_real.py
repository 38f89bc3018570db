"""Cures of the run in a real training: what they leave behind is what the program leaves without them."""

from __future__ import annotations

import json
import signal
import sys
import zipfile
from pathlib import Path
from typing import Any

import forked
import h5py
import pytest

from flatout.cures.compile_cache.edit import edit
from flatout.model.case import Case, Program

PROGRAM = Path(__file__).parent.parent / "programs" / "run_cures" / "checkpoints.py"
COMPILED = PROGRAM.with_name("compiled.py")
FIGURES = PROGRAM.with_name("figures.py")
MATPLOTLIB = Path(sys.prefix) / "figures"
"""Where `scripts/environment` has put it."""
KINDS = (("at", "png"), ("at", "svg"), ("own", "png"))
EPOCHS = 2

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    directory = tmp_path_factory.mktemp("checkpoints")
    code, said, errors = forked.run(PROGRAM, str(directory), directory=directory)
    assert code == -signal.SIGKILL, errors[-3000:]
    return directory, json.loads(said.splitlines()[-1])


def test_checkpoints_of_the_background_hold_the_same_values(trained: tuple[Path, dict[str, Any]]) -> None:
    told = trained[1]
    assert len(told["plain"]) == 7
    assert all(any(values) for values in told["plain"].values())
    assert told["background"] == told["plain"]
    assert sum("checkpoints are written beside the training" in note for note in told["notes"]) == 3


def test_one_iterator_gives_the_same_batches(trained: tuple[Path, dict[str, Any]]) -> None:
    as_it_is, cured = trained[1]["losses"]
    assert len(as_it_is[0]) == 4
    assert cured == as_it_is
    assert any("one iterator for 4 epochs of 7 steps" in note for note in trained[1]["notes"])


def test_larger_batches_of_validation_give_the_same_metrics(trained: tuple[Path, dict[str, Any]]) -> None:
    (as_it_is, weights), (cured, cured_weights) = trained[1]["validations"]
    assert cured_weights == weights
    assert len(as_it_is) == 4
    for one, other in zip(as_it_is, cured, strict=True):
        assert one.keys() == other.keys() >= {"loss", "val_loss", "val_mae", "val_root_mean_squared_error"}
        for name in one:
            assert other[name] == pytest.approx(one[name], rel=1e-5)
    assert cured[3] == as_it_is[3]
    told = [note for note in trained[1]["notes"] if "validat" in note][:3]  # the others are of what comes after
    assert [note.partition(" (")[0] for note in told] == [
        "fit validates in batches of 40, not of 1",
        "fit validates in batches of 40, not of 10",
        "validation stays as it is: validation_steps counts its batches",
    ]


def test_fewer_results_leave_the_training_as_it_is(trained: tuple[Path, dict[str, Any]]) -> None:
    (as_it_is, weights), (cured, cured_weights) = trained[1]["fewer"]
    assert cured_weights == weights
    assert (as_it_is[0], cured[0]) == ([1, True, 1], [10, False, 500])
    assert (len(as_it_is[1]["val_loss"]), len(cured[1]["val_loss"])) == (7, 1)
    assert cured[1]["loss"] == as_it_is[1]["loss"]
    assert cured[1]["val_loss"] == as_it_is[1]["val_loss"][4:5]
    assert cured[2] == as_it_is[2]
    told = [note.partition(" (")[0] for note in trained[1]["notes"]]
    assert "fit validates every 5 epochs" in told
    assert "validation stays as it is: EarlyStopping looks at val_loss after each epoch" in told
    assert "TensorBoard has histogram_freq=10, write_images=False, update_freq=500" in told


def test_what_xla_compiled_is_read_at_the_next_start(tmp_path: Path) -> None:
    text = COMPILED.read_text()
    program = Program(("python", str(COMPILED)), str(tmp_path))
    edited = edit(text, str(COMPILED), Case("run", program=program), "")
    assert edited is not None
    patched = tmp_path / "compiled.py"
    patched.write_text(edited)
    kept = tmp_path / "kept"

    def start(program: Path, directory: Path) -> str:
        code, said, errors = forked.run(program, directory=tmp_path, XLA_CACHE_DIRECTORY=str(directory))
        assert code == 0, errors[-3000:]
        return said

    bare = start(COMPILED, kept)
    assert not kept.exists()
    first = start(patched, kept)
    written = {path: path.stat().st_mtime_ns for path in kept.rglob("*.pb")}
    assert written
    again = start(patched, kept)
    assert {path: path.stat().st_mtime_ns for path in kept.rglob("*.pb")} == written
    assert bare == first == again == start(patched, Path("/proc/nothing"))


def test_a_kill_leaves_no_half_file_under_its_name(trained: tuple[Path, dict[str, Any]]) -> None:
    names = {path.name for path in (trained[0] / "killed").iterdir()}
    complete = {name for name in names if not name.startswith(".part-")}
    assert names - complete
    assert complete
    for path in (trained[0] / "killed" / name for name in complete):
        if path.suffix == ".keras":
            assert zipfile.ZipFile(path).testzip() is None
        else:
            with h5py.File(path) as opened:
                assert "layers" in opened


def test_figures_of_the_background_are_the_same_files(tmp_path: Path) -> None:
    program = tmp_path / "figures.py"
    program.write_text(f"import sys\nsys.path.append({str(MATPLOTLIB)!r})\n{FIGURES.read_text()}")
    code, said, errors = forked.run(program, str(tmp_path), directory=tmp_path)
    assert code == 0, errors[-3000:]
    told = json.loads(said.splitlines()[-1])
    assert sorted(told["plain"]) == sorted(f"{name}-{n}.{end}" for name, end in KINDS for n in range(EPOCHS))
    assert told["background"] == told["plain"]
    notes = [note.partition(" (")[0] for note in told["notes"]]
    assert notes.count("figures are drawn in a process of their own") == EPOCHS * 2 + 2
    assert notes.count("a figure is drawn as ever") == EPOCHS * 2 + 1
    assert "No such file or directory" in told["raised"]
    assert (tmp_path / "last.png").stat().st_size > 1000  # complete when the program has ended
