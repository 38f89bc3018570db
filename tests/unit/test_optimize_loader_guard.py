"""What is added to every loader: what a runtime would take silently and answer otherwise than the original."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flatout.optimize.loader_guard import guard
from flatout.routes._route import run_loader
from flatout.subject import Subject, Tensor

IDS, MASK = np.arange(6, dtype="int32").reshape(2, 3), np.ones((2, 3), "float32")
LENIENT = """
def load(directory):
    kept = {}

    def run(inputs):
        kept.update(enumerate(inputs))
        return [kept[0].astype("int32") + kept[1].astype("float32")]
    return run
"""
"""As runtimes that cast, and that keep an input from the call before."""
LATER = """
def load(directory):
    return lambda inputs: [(directory / "weights").read_text()]
"""
"""It opens a file at its first call, as some do for another number of samples."""


def loaded(source: str, directory: Path | str, **options: Any) -> Any:
    inputs = (Tensor("ids", "int32", (None, 3), (3,)), Tensor("mask", "float32", (None, 3), (3,)))
    subject = Subject(Path(directory), "m", "keras", inputs, ())
    return run_loader(source + guard(subject, **options), Path(directory))


def test_an_input_that_is_missing_is_not_that_of_the_call_before(tmp_path: Path) -> None:
    run = loaded(LENIENT, tmp_path)
    assert run([IDS, MASK])[0].shape == (2, 3)
    with pytest.raises(ValueError, match=r"a list of 2 arrays \(ids, mask\), not of 1"):
        run([IDS])
    with pytest.raises(ValueError, match="not of 3"):
        run([IDS, MASK, MASK])


@pytest.mark.parametrize("kind", ["int64", "float32", "uint8"])
def test_a_type_that_the_original_refuses_is_not_cast(tmp_path: Path, kind: str) -> None:
    run = loaded(LENIENT, tmp_path, finite_only=True)
    with pytest.raises(ValueError, match=f"input ids takes int32, not {kind}"):
        run([IDS.astype(kind), MASK])
    with pytest.raises(ValueError, match="input mask takes float32, not float64"):
        run([IDS, MASK.astype("float64")])


def test_arrays_of_other_libraries_are_taken_by_what_they_hold(tmp_path: Path) -> None:
    class Foreign:
        dtype = "theirs.int32"

        def __init__(self, array: Any) -> None:
            self.array = array

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return self.array

        def astype(self, kind: str) -> Any:
            return self.array.astype(kind)

    run = loaded(LENIENT, tmp_path)
    assert run([Foreign(IDS), MASK])[0].shape == (2, 3)
    with pytest.raises(ValueError, match="input ids takes int32, not int64"):
        run([Foreign(IDS.astype("int64")), MASK])


def test_what_is_opened_later_is_found_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("here", "there"):
        (tmp_path / place / "artefact").mkdir(parents=True)
        (tmp_path / place / "artefact" / "weights").write_text(place)
    monkeypatch.chdir(tmp_path / "here")
    run = loaded(LATER, "artefact")
    os.chdir(tmp_path / "there")
    assert run([IDS, MASK]) == ["here"]


def test_files_of_an_artefact_that_took_its_place_are_not_opened(tmp_path: Path) -> None:
    old, new, place = tmp_path / "old", tmp_path / "new", tmp_path / "artefact"
    for directory in (place, new):
        directory.mkdir()
        (directory / "manifest.json").write_text(directory.name)
        (directory / "weights").write_text(directory.name)
    run, other = loaded(LATER, place, opens_later=True), loaded(LENIENT, place)
    assert run([IDS, MASK]) == ["artefact"]
    place.rename(old)
    with pytest.raises(ValueError, match="was replaced after it had been loaded: load it again"):
        run([IDS[:1], MASK[:1]])
    new.rename(place)
    assert other([IDS[:1], MASK[:1]])[0].shape == (1, 3), "it has opened all its files"
    for _ in range(2):
        with pytest.raises(ValueError, match="was replaced after it had been loaded: load it again"):
            run([IDS[:1], MASK[:1]])
