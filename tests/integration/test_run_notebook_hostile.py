"""Notebooks that go wrong: one clear message each, and nothing of the notebook, its output or the run is lost.

None of them imports TensorFlow, so all of this takes seconds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from observed import FLATOUT, Outcome, case_in, environment, observed

from waiting import until

HTML = "<script>alert(1)</script><img src=x onerror=alert(2)>"
PYTHON = {"kernelspec": {"name": "conda-env-gone-py", "display_name": "gone", "language": "python"}}


def notebook(directory: Path, *cells: str, outputs: tuple[Any, ...] = (), metadata: dict[str, Any] = PYTHON) -> Path:
    made = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": list(outputs), "source": cell}
        for cell in cells
    ]
    content = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}
    path = directory / "book.ipynb"
    path.write_text(json.dumps(content, indent=1))
    return path


def message(ended: Outcome) -> str:
    """What flatout refuses with: one line."""
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    return line


def test_an_error_in_cell_seven_is_named_and_what_was_printed_before_is_kept(tmp_path: Path) -> None:
    before = [f"print('cell {number}')" for number in range(1, 7)]
    path = notebook(tmp_path, *before, "def share(x):\n    return 1 / x\nshare(0)", "print('never')")
    content = path.read_bytes()
    ended = observed(tmp_path, path.name)
    assert ended.returncode == 1
    assert ended.stdout.decode().splitlines() == [f"cell {number}" for number in range(1, 7)]
    told = " ".join(ended.stderr.split())  # its lines are as wide as the terminal
    assert "The program failed: ZeroDivisionError: division by zero (book.ipynb cell 7 line 2)" in told
    assert ended.stderr.count("Traceback") == 1, "the program's own"
    assert case_in(tmp_path).program.exit_code == 1
    assert path.read_bytes() == content


def test_an_endless_cell_is_interrupted_and_named(tmp_path: Path) -> None:
    path = notebook(tmp_path, "print('begun', flush=True)", "import time\nwhile True:\n    time.sleep(0.1)")
    with open(tmp_path / "out", "wb") as out, open(tmp_path / "err", "wb") as err:
        process = subprocess.Popen(
            [*FLATOUT, "run", path.name],
            cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
        )  # fmt: skip
        until(lambda: b"begun" in (tmp_path / "out").read_bytes())
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        assert process.wait(120) == -signal.SIGINT
    told = (tmp_path / "err").read_text()
    assert "The program failed: KeyboardInterrupt (book.ipynb cell 2" in told
    assert "before its first step (KeyboardInterrupt), so" in told
    assert told.count("Traceback") == 1
    assert (tmp_path / "out").read_text() == "begun\n"
    assert case_in(tmp_path).program.signal == "SIGINT"


def test_a_kernel_that_is_not_there_is_not_needed(tmp_path: Path) -> None:
    ended = observed(tmp_path, notebook(tmp_path, "print('ran')").name)
    assert (ended.returncode, ended.stdout) == (0, b"ran\n")


@pytest.mark.parametrize(
    "metadata",
    [
        {"kernelspec": {"name": "julia-1.9", "display_name": "Julia", "language": "julia"}},
        {"kernelspec": {"name": "julia-1.9", "display_name": "Julia"}, "language_info": {"name": "julia"}},
    ],
    ids=["by its kernel", "by what it was run in"],
)
def test_a_notebook_of_another_language_is_refused(tmp_path: Path, metadata: dict[str, Any]) -> None:
    path = notebook(tmp_path, "using Flux", metadata=metadata)
    for command in ("run", "tune"):
        ended = observed(tmp_path, path.name) if command == "run" else tuned(tmp_path, path)
        assert message(ended) == "flatout: book.ipynb has no code cells in Python: its language is julia."


def test_a_notebook_of_version_three_is_refused_with_the_way_out(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "input": "x = 1", "language": "python", "outputs": []}
    path = tmp_path / "book.ipynb"
    path.write_text(json.dumps({"worksheets": [{"cells": [cell]}], "metadata": {}, "nbformat": 3, "nbformat_minor": 0}))
    content = path.read_bytes()
    for ended in (observed(tmp_path, path.name), tuned(tmp_path, path)):
        told = message(ended)
        assert told.startswith("flatout: book.ipynb is not a notebook: it has no list of cells. It is of version 3: ")
        assert "jupyter nbconvert --to notebook --nbformat 4" in told
    assert path.read_bytes() == content


def test_a_hundred_megabytes_of_outputs_are_nobodys_business(tmp_path: Path) -> None:
    outputs = (
        {"output_type": "display_data", "metadata": {}, "data": {"image/png": "A" * 60_000_000}},
        {"output_type": "stream", "name": "stdout", "text": ["a line of a long log\n"] * 1_400_000},
    )
    path = notebook(tmp_path, "print('ran')", outputs=outputs)
    assert path.stat().st_size > 100_000_000
    ended = observed(tmp_path, path.name)
    assert (ended.returncode, ended.stdout) == (0, b"ran\n")
    kept = sum(file.stat().st_size for file in (tmp_path / ".flatout").rglob("*") if file.is_file())
    assert kept < 5_000_000


def test_markup_in_outputs_comes_nowhere(tmp_path: Path) -> None:
    outputs = ({"output_type": "display_data", "metadata": {}, "data": {"text/html": [HTML]}},)
    path = notebook(tmp_path, "print('ran')", "raise KeyError('no such column')", outputs=outputs)
    ended = observed(tmp_path, path.name)
    assert ended.returncode == 1
    assert HTML not in ended.stderr
    assert not [file for file in (tmp_path / ".flatout").rglob("*") if file.is_file() and HTML in content_of(file)]


def content_of(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def tuned(directory: Path, path: Path) -> Outcome:
    done = subprocess.run(
        [*FLATOUT, "tune", "--budget", "60s", path.name], cwd=directory, env=environment(), capture_output=True,
        timeout=400, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Outcome(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))
