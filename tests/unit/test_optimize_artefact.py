"""Where an artefact is put together, and when it takes its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatout.model.errors import OutputNotWritable
from flatout.optimize import artefact


def test_an_earlier_artefact_stands_until_the_new_one_is_whole(tmp_path: Path) -> None:
    output = tmp_path / "served"
    output.mkdir()
    (output / artefact.MANIFEST).write_text("earlier")
    made = artefact.unfinished(output)
    made.mkdir()
    (made / "model.bin").write_text("half")
    assert (output / artefact.MANIFEST).read_text() == "earlier"
    (made / artefact.MANIFEST).write_text("new")
    artefact.publish(output)
    assert {path.name: path.read_text() for path in output.iterdir()} == {"model.bin": "half", artefact.MANIFEST: "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["served"]


def test_an_artefact_that_cannot_take_its_name_leaves_the_earlier_one(tmp_path: Path) -> None:
    output = tmp_path / "served"
    output.mkdir()
    (output / artefact.MANIFEST).write_text("earlier")
    with pytest.raises(FileNotFoundError):
        artefact.publish(output)  # nothing was made
    assert (output / artefact.MANIFEST).read_text() == "earlier"
    assert [path.name for path in tmp_path.iterdir()] == ["served"]


def test_the_size_is_that_of_what_serves(tmp_path: Path) -> None:
    for name in ("model.tflite", "any_length/weights", "core/model.onnx", "load.py", "load_batch_8.py", "check.npz",
                 "manifest.json", "triton/model/1/model.onnx", "saved_model/assets/tables.py"):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"0123456789")
    assert artefact.size(tmp_path) == 4 * 10, "two models, the stage, and the file of its own"


def test_what_is_left_of_an_interrupted_run_is_in_nobodys_way(tmp_path: Path) -> None:
    output = tmp_path / "served"
    artefact.unfinished(output).mkdir()
    assert artefact.output_directory(output, tmp_path, force=False) == output
    output.mkdir()
    (output / "mine.txt").write_text("a file of the user's")
    with pytest.raises(OutputNotWritable, match="not an artefact"):
        artefact.output_directory(output, tmp_path, force=True)


def test_where_nothing_can_be_written_is_told_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(OutputNotWritable, match="nothing can be created in"):
        artefact.output_directory(tmp_path / "file" / "served", tmp_path, force=False)
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(OutputNotWritable, match="nothing can be created in"):
        artefact.output_directory(tmp_path / "new" / "served", tmp_path, force=False)
    monkeypatch.undo()
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    monkeypatch.setattr("os.path.ismount", lambda path: Path(path) == mounted)
    with pytest.raises(OutputNotWritable, match=f"give --output {mounted}/artefact"):
        artefact.output_directory(mounted, tmp_path, force=False)
    assert artefact.output_directory(mounted / "artefact", tmp_path, force=False) == mounted / "artefact"
