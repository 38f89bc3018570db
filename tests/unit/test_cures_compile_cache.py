"""Where `compile-cache` has nothing to keep, or keeps it already, and what it says then."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flatout.cures import levers
from flatout.cures.compile_cache.keeping import keep_compiled
from flatout.model.case import Case, Function, Program
from flatout.tune.by_hand import by_hand

FLAGS = "TF_XLA_FLAGS"
COMPILED = Function("step", None, 1, 1.0, jit_compile=True)


def why_not(directory: Path, *functions: Function, text: str = "", version: str = "2.21.0") -> str | None:
    (directory / "train.py").write_text(text)
    program = Program(("python", "train.py"), str(directory))
    environment = {"tensorflow": {"version": version}}
    case = Case("run", program=program, functions=functions, environment=environment)
    return levers()["compile-cache"].spec.skip(case)


def test_there_is_nothing_to_keep_without_xla(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FLAGS, raising=False)
    assert why_not(tmp_path) == "XLA compiles nothing in this program"
    assert why_not(tmp_path, COMPILED) is None
    assert "half a file" in str(why_not(tmp_path, COMPILED, version="2.15.1"))
    text = 'os.environ["TF_XLA_FLAGS"] = "--tf_xla_persistent_cache_directory=/here"\n'
    assert why_not(tmp_path, COMPILED, text=text) == "what XLA compiles is kept already"
    monkeypatch.setenv(FLAGS, "--tf_xla_auto_jit=2")
    assert why_not(tmp_path) is None
    monkeypatch.setenv(FLAGS, "--tf_xla_persistent_cache_directory=/here")
    assert why_not(tmp_path, COMPILED) == "what XLA compiles is kept already"


def test_flags_of_the_user_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_CACHE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv(FLAGS, "--tf_xla_auto_jit=2")
    keep_compiled()
    first = flags()
    assert first.startswith(f"--tf_xla_auto_jit=2 --tf_xla_persistent_cache_directory={tmp_path}/")
    keep_compiled()
    assert flags() == first
    monkeypatch.setenv(FLAGS, "")
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    keep_compiled()
    assert flags().rpartition("/")[2] != first.rpartition("/")[2], "other flags compile other code"


@pytest.mark.parametrize("place", ["/proc/nothing", "two words"])
def test_a_directory_that_cannot_be_used_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FLAGS, raising=False)
    monkeypatch.setenv("XLA_CACHE_DIRECTORY", place)
    keep_compiled()
    assert flags() == ""


def test_a_program_that_sets_the_flags_is_told_where_to_add_one(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text('import\x0c os\nos.environ["TF_XLA_FLAGS"] = "--tf_xla_auto_jit=2"\n')
    case = Case("tune", program=Program(("python", "train.py"), str(tmp_path)))
    said = by_hand(case, "compile-cache")
    assert f"{tmp_path}/train.py:2: add --tf_xla_persistent_cache_directory=DIRECTORY" in said


def flags() -> str:
    return os.environ.get(FLAGS, "")
