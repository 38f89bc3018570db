"""A program that runs with changed sources behaves as it would with its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flatout.trial.patched_run import MAIN, command

REPORT = """\
import inspect, json, sys
import helper
def double(x):
    return 2 * x
if __name__ == "__main__":
    print(json.dumps({
        "argv": sys.argv, "path0": sys.path[0], "file": __file__, "name": __name__, "package": __package__,
        "spec": getattr(__spec__, "name", None), "loader": type(__loader__).__name__, "globals": sorted(globals()),
        "main": sys.modules["__main__"].__dict__ is globals(), "path": sys.path, "doc": __doc__,
        "source": inspect.getsource(double), "helper": inspect.getsource(helper.value), "value": helper.value(),
        "code": double.__code__.co_filename, "annotations": __annotations__,
    }))
"""
HELPER = "def value():\n    return 'old'\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for place in (tmp_path / "train.py", package / "train.py"):
        place.write_text(
            REPORT.replace(
                "import helper", "from package import helper" if place.parent == package else "import helper"
            )
        )
    for place in (tmp_path / "helper.py", package / "helper.py"):
        place.write_text(HELPER)
    return tmp_path


def run(words: list[str], folder: Path, **kept: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | kept
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=400)


def changed(folder: Path, *names: str) -> dict[str, str]:
    """The same files with one more comment on top and another value."""
    sources = {}
    for number, name in enumerate(names):
        file = folder / f"{number}.txt"
        file.write_text("# changed\n" + (folder / name).read_text().replace("2 * x", "x + x").replace("'old'", "'new'"))
        sources[str(folder / name)] = str(file)
    return sources


@pytest.mark.parametrize("options", [[], ["-B", "-X", "utf8", "-W", "ignore"]], ids=["plain", "options"])
@pytest.mark.parametrize("program", [["train.py"], ["./train.py"], ["-m", "package.train"]], ids=" ".join)
def test_as_the_interpreter_would(
    folder: Path, program: list[str], options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    words = [sys.executable, *options, *program, "--epochs", "3"]
    plain = run(words, folder)
    patched_words = command(words, {str(folder / "other.py"): str(folder / "train.py")})
    assert str(MAIN) in patched_words
    patched = run(patched_words, folder)
    assert plain.returncode == 0, plain.stderr
    assert patched.returncode == 0, patched.stderr
    assert json.loads(patched.stdout) == json.loads(plain.stdout)


def test_isolated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "alone.py").write_text("import sys\nprint(sys.path, __file__, sys.argv)\n")
    words = [sys.executable, "-I", "alone.py", "x"]
    assert run(command(words, changed(folder, "helper.py")), folder).stdout == run(words, folder).stdout != ""


@pytest.mark.parametrize(
    ("program", "names"),
    [(["train.py"], ("train.py", "helper.py")), (["-m", "package.train"], ("package/train.py", "package/helper.py"))],
    ids=["file", "module"],
)
def test_the_changed_text_runs(
    folder: Path, program: list[str], names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    run([sys.executable, *program], folder)  # leaves compiled files of the old text behind
    stamps = {file: file.stat().st_mtime_ns for file in folder.rglob("*.pyc")}
    done = run(command([sys.executable, *program], changed(folder, *names)), folder)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["value"] == "new"
    assert "x + x" in report["source"]
    assert "new" in report["helper"], "AutoGraph reads the source of what it traces"
    assert report["code"] == report["file"] == str(folder / names[0])
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*.pyc")} == stamps


def test_errors_exit_codes_and_tracebacks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "fails.py").write_text("import sys\nif len(sys.argv) > 1:\n    sys.exit(7)\nraise KeyError('gone')\n")
    sources = changed(folder, "helper.py")
    plain = run([sys.executable, "fails.py"], folder)
    patched = run(command([sys.executable, "fails.py"], sources), folder)
    assert (patched.returncode, patched.stderr) == (plain.returncode, plain.stderr)
    assert run(command([sys.executable, "fails.py", "x"], sources), folder).returncode == 7


def test_processes_that_are_spawned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "spawns.py").write_text(
        "import multiprocessing\ndef work(x):\n    return x + 1\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n        print(pool.map(work, [1, 2]))\n"
    )
    done = run(command([sys.executable, "spawns.py"], changed(folder, "spawns.py")), folder)
    assert done.stdout == "[2, 3]\n", done.stderr


def test_other_commands_are_left_alone(folder: Path) -> None:
    sources = {"/a.py": "/b.py"}
    for words in (
        ["bash", "train.sh"],
        ["python", "-c", "print()"],
        ["/usr/bin/train"],
        ["python3.11"],
        ["python", "absent.py"],
    ):
        assert command(words, sources) == words
    assert command(["python", str(folder / "train.py"), "-m"], sources)[1] == str(MAIN)
    assert command(["python", str(folder / "train.py")], {}) == ["python", str(folder / "train.py")]


def test_the_changed_text_stays_the_source_of_its_functions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AutoGraph makes `linecache` read the file again before it asks for the source of a function."""
    monkeypatch.chdir(folder)
    text = "import inspect, linecache, sys\ndef double(x):\n    return 2 * x\n"
    text += "linecache.updatecache(__file__, globals())\nprint(inspect.getsource(double))\n"
    (folder / "asks.py").write_text(text)
    (folder / "new.txt").write_text("def other():\n    pass\n\n\n" + text.replace("2 * x", "x + x"))
    words = [sys.executable, "asks.py"]
    assert run(words, folder).stdout == "def double(x):\n    return 2 * x\n\n"
    patched = run(command(words, {str(folder / "asks.py"): str(folder / "new.txt")}), folder)
    assert patched.stdout == "def double(x):\n    return x + x\n\n", patched.stderr


def test_what_runs_it_is_no_import_of_the_program(folder: Path) -> None:
    program = folder / "looked.py"
    program.write_text(
        "import threading\nfrom flatout.observe import frames, run_sampler\n"
        "print(run_sampler._seen(frames.stack_of(threading.get_ident(), 200))[0] or 'none')\n"
    )
    words = command([sys.executable, str(program)], {str(program): str(program)})
    assert str(MAIN) in words
    done = run(words, folder)
    assert done.stdout == "none\n", done.stderr
