"""The patch: made from a case, a diff that tools apply, files changed safely."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from flatout.model.case import Case, Distribution, Finding, Pipeline, Program, Stage, Steps, Where
from flatout.model.errors import PatchFailed, UnknownLever
from flatout.model.evidence.steps import StepStack
from flatout.model.location import Frame, stack_of
from flatout.source import context
from flatout.trial import patch as patches

PROGRAM = """\
import tensorflow as tf
from parts import build

tf.debugging.enable_check_numerics()

data = tf.data.Dataset.from_tensor_slices(paths)
data = data.map(read)  # café
data = data.batch(8)


def step(x):
    return x


model = build()
model.fit(data)
"""
PARTS = "import keras\n\n\ndef build():\n    model = keras.Model()\n    model.compile('adam')\n    return model\n"


def place(path: Path, piece: str) -> Where:
    rows = path.read_bytes().split(b"\n")
    found = context.where(str(path), next(number for number, row in enumerate(rows, 1) if piece.encode() in row))
    assert found is not None
    return found


def case_of(path: Path) -> Case:
    where = place(path, "model.fit")
    return Case(
        kind="run",
        program=Program(("python", path.name), str(path.parent)),
        steps=Steps(9, "", Distribution(1, 1, 1), where=where),
        evidence=(StepStack("fit", (Frame(str(path), where.line or 0, "", 1),), of="fit", where=where),),
        findings=(Finding("uncached-prefix", "", place(path, ".map(read)")),),
        pipelines=(
            Pipeline(
                "pipeline",
                None,
                tuple(
                    Stage(op, op, place(path, piece), name)
                    for op, piece, name in (
                        ("TensorSlice", "from_tensor_slices", None),
                        ("Map", ".map(read)", "read"),
                        ("Batch", ".batch(8)", None),
                    )
                ),
            ),
        ),
    )


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "my project"
    folder.mkdir()
    (folder / "parts.py").write_text(PARTS)
    path = folder / "train.py"
    path.write_text(PROGRAM)
    return path


def levers_for(path: Path) -> list[str]:
    definition = place(path, "def step").line
    return [f"function={path}:{definition}", "prefetch", "steps-per-execution=8", "cache", "no-debug", "memory-growth"]


def test_levers_in_one_file_find_their_places_after_each_other(program: Path) -> None:
    made = patches.make(case_of(program), levers_for(program)[:-1])
    assert made.files[str(program)] == PROGRAM.replace("tf.debugging.enable_check_numerics()\n\n", "").replace(
        "data = data.batch(8)\n",
        "data = data.batch(8)\ndata = data.cache()\ndata = data.prefetch(tf.data.AUTOTUNE)\n",
    ).replace("def step", "@tf.function(reduce_retracing=True)\ndef step")
    assert made.files[str(program.parent / "parts.py")] == PARTS.replace("'adam'", "'adam', steps_per_execution=8")
    assert made.unwritten == ()


def test_a_step_is_traced_and_compiled(tmp_path: Path) -> None:
    path = tmp_path / "loop.py"
    text = "import tensorflow as tf\n\n\ndef step(x):\n    return x\n\n\nfor x in data:\n    step(x)\n"
    path.write_text(text)
    where = place(path, "return x")
    stack = [[str(path), 5, "step", 4], [str(path), 9, "<module>", 1]]
    case = Case(
        kind="run",
        program=Program(("python", "loop.py"), str(tmp_path)),
        evidence=(StepStack("apply", stack_of(stack), of="apply", where=where),),
    )
    made = patches.make(case, [f"function={path}:4", "xla"])
    traced = "@tf.function(reduce_retracing=True, jit_compile=True)"
    assert made.files[str(path)] == text.replace("def step", f"{traced}\ndef step")
    assert patches.make(case, ["xla"]).unwritten == ("xla",)


def test_a_lever_without_an_edit_is_told(program: Path) -> None:
    made = patches.make(case_of(program), ["float32", "cache"])
    assert made.unwritten == ("float32",)
    assert made.written == ("cache",)
    for unknown in ("warp-drive", "calls"):
        with pytest.raises(UnknownLever):
            patches.make(case_of(program), [unknown])


def test_an_edit_that_stumbles_is_no_edit(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flatout.cures.prefetch import edit as prefetch

    for broken in (lambda *_: "def :", lambda *_: 1 / 0):
        monkeypatch.setattr(prefetch, "edit", broken)
        monkeypatch.setattr(patches, "edit_of", lambda cure: prefetch.edit)
        made = patches.make(case_of(program), ["prefetch"])
        assert (made.changes, made.diff, made.unwritten) == ((), "", ("prefetch",))


def test_the_names_of_files_outside_of_the_working_directory_say_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "main").mkdir()
    (tmp_path / "agents").mkdir()
    path = tmp_path / "agents" / "dqn.py"
    path.write_text("import tensorflow as tf\n\n\ndef step(x):\n    return x\n")
    case = Case(
        kind="run",
        program=Program(("python", "play.py"), str(tmp_path / "main")),
        evidence=(
            StepStack("apply", stack_of([[str(path), 5, "step", 4]]), of="apply", where=place(path, "return x")),
        ),
    )
    made = patches.make(case, [f"function={path}:4"])
    assert made.directory == str(tmp_path)
    assert "+++ b/agents/dqn.py" in made.diff


TOOLS: dict[str, list[str]] = {"git": ["git", "apply"], "patch": ["patch", "-p1", "-s", "--binary"]}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.encode(), id="plain"),
        pytest.param(lambda text: text.rstrip("\n").encode(), id="no newline at the end"),
        pytest.param(lambda text: text.replace("\n", "\r\n").encode(), id="CRLF"),
        pytest.param(lambda text: b"\xef\xbb\xbf" + text.encode(), id="byte order mark"),
        pytest.param(lambda text: ("# -*- coding: latin-1 -*-\n# caf\xe9\n" + text).encode("latin-1"), id="latin-1"),
        pytest.param(lambda text: text.replace("    ", "\t").encode(), id="tabs"),
        pytest.param(lambda text: text.replace("\n\n\n", "\n\x0c\n\n").encode(), id="form feed"),
    ],
)
def test_the_diff_applies(program: Path, tool: str, change: Any) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    before = change(PROGRAM)
    program.write_bytes(before)
    case = case_of(program)
    made = patches.make(case, levers_for(program)[:-1])
    assert made.directory == str(program.parent)
    from flatout.source.editing.unified_diff import to_bytes

    subprocess.run(TOOLS[tool], cwd=made.directory, input=to_bytes(made.diff), check=True)
    after = program.read_bytes()
    assert after == made.changes[0].after
    assert b".cache()" in after
    # Outside of the change every byte is as it was.
    old, new = before.split(b"\n"), after.split(b"\n")
    ending = b"\r" if b"\r\n" in before else b""
    added = [b"data = data.cache()", b"data = data.prefetch(tf.data.AUTOTUNE)", b"@tf.function(reduce_retracing=True)"]
    kept = [row for row in new if row.rstrip(b"\r") not in added]
    gone = old.index(b"tf.debugging.enable_check_numerics()" + ending)
    assert kept == old[:gone] + old[gone + 2 :]
    assert all(row + ending in new for row in added)


def test_apply_keeps_mode_and_old_text_and_is_done_once(program: Path) -> None:
    program.chmod(0o751)
    backup = program.with_name("train.py.orig")
    backup.write_text("older\n")
    made = patches.make(case_of(program), ["cache"])
    assert patches.apply(made) == (str(program),)
    assert program.stat().st_mode & 0o777 == 0o751
    assert "cache()" in program.read_text()
    assert backup.read_text() == "older\n"
    assert program.with_name("train.py.orig.1").read_text() == PROGRAM
    listing = sorted(os.listdir(program.parent))
    assert patches.apply(made) == ()
    assert sorted(os.listdir(program.parent)) == listing


def test_a_link_stays_a_link(program: Path, tmp_path: Path) -> None:
    real = tmp_path / "real.py"
    program.rename(real)
    program.symlink_to(real)
    patches.apply(patches.make(case_of(program), ["cache"]))
    assert program.is_symlink()
    assert "cache()" in real.read_text()


def test_a_file_that_changed_is_not_touched(program: Path) -> None:
    case = case_of(program)
    made = patches.make(case, levers_for(program)[:-1])
    parts = program.parent / "parts.py"
    parts.write_text(PARTS + "\n")
    with pytest.raises(PatchFailed, match=r"parts\.py has changed"):
        patches.apply(made)
    assert program.read_text() == PROGRAM, "all files or none"
    program.write_text("\n" + PROGRAM)
    with pytest.raises(PatchFailed, match="has changed since the program was observed"):
        patches.make(case, ["cache"])


def test_what_would_not_parse_is_not_written(program: Path) -> None:
    broken = patches.Patch((patches.Change(str(program), PROGRAM.encode(), b"def :\n"),), str(program.parent))
    with pytest.raises(PatchFailed, match="valid Python"):
        patches.apply(broken)
    assert program.read_text() == PROGRAM


def test_a_failure_half_way_leaves_all_as_it_was(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = patches.make(case_of(program), levers_for(program)[:-1])
    replace, calls = os.replace, []

    def fail_at_the_second(source: str, target: str) -> None:
        calls.append(target)
        if len(calls) == 2:
            raise OSError(28, "No space left on device", target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_at_the_second)
    with pytest.raises(PatchFailed, match="No space left"):
        patches.apply(made)
    assert program.read_text() == PROGRAM
    assert (program.parent / "parts.py").read_text() == PARTS
    assert not [name for name in os.listdir(program.parent) if name.startswith(".")]


def test_a_full_disk_and_an_interrupt_leave_no_temporary_file(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = patches.make(case_of(program), levers_for(program)[:-1])
    replace, calls = os.replace, []

    def interrupt_after_the_first(source: str, target: str) -> None:
        calls.append(target)
        replace(source, target)
        if len(calls) == 1:
            raise KeyboardInterrupt

    def fails(path: str, mode: int) -> None:
        raise OSError(28, "No space left on device", path)

    with monkeypatch.context() as change:
        change.setattr(os, "chmod", fails)
        with pytest.raises(PatchFailed, match="No space left"):
            patches.apply(made)
    monkeypatch.setattr(os, "replace", interrupt_after_the_first)
    with pytest.raises(KeyboardInterrupt):
        patches.apply(made)
    assert program.read_text() == PROGRAM
    assert (program.parent / "parts.py").read_text() == PARTS
    assert not [name for name in os.listdir(program.parent) if name.startswith(".")]


def test_files_of_libraries_are_left_alone(program: Path) -> None:
    library = program.parent / "site-packages" / "parts.py"
    library.parent.mkdir()
    (program.parent / "parts.py").rename(library)
    case = case_of(program)
    where = place(library, "compile")
    from dataclasses import replace

    made = patches.make(replace(case, findings=(Finding("run-eagerly", "", where),)), ["steps-per-execution=8"])
    assert made.changes == ()
    forged = patches.Patch((patches.Change(str(library), PARTS.encode(), b""),), str(program.parent))
    with pytest.raises(PatchFailed, match="library"):
        patches.check(forged)
