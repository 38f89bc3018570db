"""A notebook as a program: what its cells become, what is refused by name, and edits back in its cells."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flatout.model.case import Where
from flatout.model.errors import NotebookUnusable, PatchFailed
from flatout.report.formatting import location
from flatout.source.notebooks import program
from flatout.trial import patch
from flatout.trial.launcher import command_for

CELLS = (
    "import helper\n%matplotlib inline\n!pip install something",
    "%%time\ntotal = 0\nfor number in range(helper.LAST):\n    total += number",
    "%time print('total', total)\nnames = !echo one; echo two\nprint(names)\ndisplay(total)",
)


def notebook(directory: Path, *cells: str, **more: Any) -> Path:
    made = [{"cell_type": "code", "metadata": {}, "execution_count": 7, "outputs": [{"text": "é"}], "source": cell}
            for cell in cells]  # fmt: skip
    made.insert(1, {"cell_type": "markdown", "metadata": {}, "source": ["# Words\n"]})
    content = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}
    path = directory / "train.ipynb"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    return path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to work in, beside that of the notebook."""
    (tmp_path / "books").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "books" / "helper.py").write_text("LAST = 5\n")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "books"


def run(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command_for(str(path), (), False), capture_output=True, text=True, check=False)


def test_cells_run_in_their_order_in_the_directory_of_the_notebook(place: Path) -> None:
    done = run(notebook(place, *CELLS))
    assert done.stderr == ""
    assert done.stdout.split("\n") == ["total 10", "['one', 'two']", "10", ""]


def test_lines_for_the_shell_know_the_values_of_the_notebook(place: Path) -> None:
    cells = (
        "from __future__ import annotations\nname = 'two words'\n!echo {name.upper()} $name \\\n    and more $UNSET_IT",
        "%%bash\necho from bash",
        "%%writefile made.txt\nline",
        "x = [7,\n  8]\nprint('%d'\n      % x[1], open('made.txt').read().strip())",
        "from __future__ import division\n% matplotlib inline\npip install something",
    )
    path = notebook(place, *cells)
    done = run(path)
    assert done.stderr == ""
    assert done.stdout.split("\n") == ["TWO WORDS two words and more", "from bash", "8 line", ""]
    content = path.read_bytes()
    assert program.edited(str(path), program.program_of(str(path)).read_text()) == content


def test_paths_of_magics_are_those_of_ipython(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place / "home"))
    (place / "home" / "my data").mkdir(parents=True)
    (place / "home" / "more").mkdir()
    cells = (
        "import os\nfolder = 'more'\n%cd '~/my data'\nprint(os.getcwd())\n%cd\n%cd $folder\nprint(os.getcwd())",
        "%%writefile ~/made.txt\nline",
        "print(open(os.path.expanduser('~/made.txt')).readlines())",
    )
    done = run(notebook(place, *cells))
    assert done.stderr == ""
    home = (place / "home").resolve()
    assert done.stdout.split("\n") == [f"{home}/my data", f"{home}/more", "['line\\n']", ""]


def test_lines_that_end_as_on_windows(place: Path) -> None:
    cells = ("%%bash\r\nif true; then\r\n  echo from bash\r\nfi\r\n", "%matplotlib inline\r\nx = 1\r\nprint(x)\r\n")
    path = notebook(place, *cells)
    done = run(path)
    assert (done.stderr, done.stdout) == ("", "from bash\n1\n")
    assert program.edited(str(path), program.program_of(str(path)).read_bytes().decode()) == path.read_bytes()


def test_a_shell_that_sets_values_of_the_notebook_is_ipythons(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_has_ipython", lambda: False)
    with pytest.raises(NotebookUnusable, match="Cell 1 has %%bash"):
        program.program_of(str(notebook(place, "%%bash --out found\necho hi")))


@pytest.mark.parametrize("name", ["a\nimport missing.ipynb", "caf\udce9.ipynb", "two words.ipynb"])
def test_any_name_of_a_notebook_will_do(place: Path, name: str) -> None:
    done = run(notebook(place, "print(7)").rename(place / name))
    assert (done.stderr, done.stdout) == ("", "7\n")


@pytest.mark.parametrize("metadata", [None, {"kernelspec": None, "language_info": None}, {"kernelspec": "python3"}])
def test_metadata_that_says_nothing_is_no_fault(place: Path, metadata: Any) -> None:
    assert "print(7)" in program.program_of(str(notebook(place, "print(7)", metadata=metadata))).read_text()


def test_a_program_is_there_whole_or_not_at_all(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = notebook(place, "print(7)")
    whole = program.program_of(str(path))
    content = whole.read_text()
    whole.unlink()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        program.program_of(str(path))
    assert not whole.exists()
    monkeypatch.undo()
    monkeypatch.chdir(place.parent / "work")
    assert program.program_of(str(path)).read_text() == content


def test_an_error_names_cell_and_line_and_so_does_a_report(place: Path) -> None:
    path = notebook(place, "x = 1", "def f():\n    return 1 / 0\n", "f()")
    done = run(path)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert done.stderr.endswith("In cell 3, line 2, of train.ipynb\n")
    file = program.program_of(str(path))
    line = next(n for n, text in enumerate(file.read_text().split("\n"), 1) if "1 / 0" in text)
    assert program.by_cells(f"slow at {file}:{line}, twice") == "slow at train.ipynb cell 3 line 2, twice"
    assert program.by_cells(f"--- a/.flatout/notebooks/ab/{file.name}") == "--- train.ipynb"
    notebook(place, "y = 1\nz = 2", "x = 1")
    program.program_of(str(path))
    assert program.by_cells(f"{file}:{line}") == "train.ipynb cell 3 line 2", "an old case is read by its own program"
    assert program.by_cells("train.py:3") == "train.py:3"


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%%bigquery\nSELECT 1", "Cell 3 has %%bigquery"),
        ("%store -r data", "Cell 3 has %store"),
        ("%run other.py", "Cell 3 has %run"),
        ("def f(:", "Cell 3 of .*not valid Python"),
    ],
)
def test_what_cannot_run_is_refused_by_name(
    place: Path, cell: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "_has_ipython", lambda: False)
    with pytest.raises(NotebookUnusable, match=words):
        program.program_of(str(notebook(place, "x = 1", cell)))


def test_magics_that_only_ipython_knows_are_left_to_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_has_ipython", lambda: True)
    path = notebook(place, "%store -r data", "x = %who_ls", "%%bigquery frame\nSELECT 1")
    text = program.program_of(str(path)).read_text()
    assert "get_ipython().run_line_magic('store', '-r data')" in text
    assert "x = get_ipython().run_line_magic('who_ls', '')" in text
    assert "get_ipython().run_cell_magic('bigquery', 'frame', 'SELECT 1')" in text


def test_the_shell_of_ipython_has_the_names_of_the_notebook(place: Path) -> None:
    pytest.importorskip("IPython")
    (place / "other.py").write_text("made = x + 1\n")
    cells = ("x = 41", "%run -i other.py\nprint(made)", "get_ipython().user_ns is globals()", "%nosuch thing")
    done = run(notebook(place, *cells))
    assert done.stdout.startswith("42\n"), done.stderr
    assert "%nosuch" in done.stdout + done.stderr
    assert "In cell 5, line 1" in done.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not a notebook"),
        ('{"worksheets": [], "nbformat": 3}', "version 3.*nbconvert"),
        ('{"cells": [], "metadata": {}}', "no code cells"),
        ('{"cells": [{"cell_type": "code", "source": "x"}], "metadata": {"kernelspec": {"language": "R"}}}', "no code"),
    ],
)
def test_what_is_no_notebook_of_python_gets_one_sentence(place: Path, content: str, words: str) -> None:
    (place / "odd.ipynb").write_text(content)
    with pytest.raises(NotebookUnusable, match=words):
        program.program_of(str(place / "odd.ipynb"))


@pytest.mark.parametrize(
    "line",
    ["x = await load()", "async with load() as x: pass", "y = [x async for x in load()]", "if 1:\n  await load()"],
)
def test_a_cell_that_awaits_outside_of_functions_is_refused_by_its_line(place: Path, line: str) -> None:
    cells = ("async def load():\n    return await other()", f"n = 1\n{line}")
    with pytest.raises(NotebookUnusable, match=r"Cell 3 of .* awaits in line [23] outside of any function"):
        program.program_of(str(notebook(place, *cells)))
    assert program.program_of(str(notebook(place, cells[0])))


def test_the_name_that_a_cell_is_captured_in_is_there(place: Path) -> None:
    cells = ("%%capture --no-stderr out\nprint(1)", "%%capture\nx = 2", "out.show()\nprint(repr(out.stdout), x)")
    done = run(notebook(place, *cells))
    assert done.stdout == "1\n'' 2\n", done.stderr


def test_an_edit_changes_one_cell_and_nothing_else(place: Path) -> None:
    path = notebook(place, *CELLS)
    before = path.read_text(encoding="utf-8")
    file = program.program_of(str(path))
    text = file.read_text(encoding="utf-8")
    changed = text.replace("total = 0\n", "total = sum(range(helper.LAST))\n")
    made = patch.Patch((patch.Change(str(file), text.encode(), changed.encode()),), str(file.parent))
    (change,) = patch.for_notebook(made, str(path), str(file)).changes
    assert (change.path, change.before) == (str(path), before.encode())
    after = change.after.decode()
    assert json.loads(after)["cells"][2]["source"] == CELLS[1].replace("total = 0", "total = sum(range(helper.LAST))")
    assert after.replace("total = sum(range(helper.LAST))", "total = 0") == before


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("x = 1", "import functools\nimport tensorflow as tf\nx = 1"),
        ("%matplotlib inline\nx = 1", "import functools\nimport tensorflow as tf\n%matplotlib inline\nx = 1"),
        ("%%time\nx = 1", "%%time\nimport functools\nimport tensorflow as tf\nx = 1"),
        (
            "from __future__ import division\nx = 1",
            "from __future__ import division\nimport functools\nimport tensorflow as tf\nx = 1",
        ),
    ],
)
def test_imports_that_an_edit_adds_come_into_the_first_cell(place: Path, first: str, expected: str) -> None:
    path = notebook(place, "", "%%bash\necho one", first, "y = 2")
    text = program.program_of(str(path)).read_text(encoding="utf-8")
    changed = text.replace("import builtins, os, sys\n", "import builtins, os, sys\nimport functools\n")
    changed = changed.replace("builtins.display =", "import tensorflow as tf\nbuiltins.display =")
    changed = changed.replace("y = 2", "y = functools")
    cells = json.loads(program.edited(str(path), changed))["cells"]
    assert [cell["source"] for cell in cells if cell["cell_type"] == "code"] == [
        "",
        "%%bash\necho one",
        expected,
        "y = functools",
    ]
    assert program.edited(str(path), text) == path.read_bytes()


def test_a_function_is_written_into_the_cell_that_calls_it(place: Path) -> None:
    path = notebook(place, "x = 1\nx", "for n in range(9):\n    x = x + n", "print(x)")
    text = program.program_of(str(path)).read_text(encoding="utf-8")
    function = "def step(x, n):\n    return x + n\n\n\n"
    changed = text.replace("x = 1\nx\n", f"x = 1\nx\n\n\n{function}").replace("x = x + n", "x = step(x, n)")
    cells = json.loads(program.edited(str(path), changed))["cells"]
    assert [cell["source"] for cell in cells if cell["cell_type"] == "code"] == [
        "x = 1\nx",
        f"{function}for n in range(9):\n    x = step(x, n)",
        "print(x)",
    ]


def test_a_name_with_blanks_is_shown_as_it_is(place: Path) -> None:
    path = notebook(place, "x = 1", "y = 2").rename(place / "my run (1).ipynb")
    file = program.program_of(str(path))
    line = next(n for n, text in enumerate(file.read_text().split("\n"), 1) if text == "y = 2")
    assert program.by_cells(f"at {file}:{line}.") == "at my run (1).ipynb cell 3 line 1."


def test_a_long_name_is_shortened_and_cell_and_line_are_kept(place: Path) -> None:
    path = notebook(place, "x = 1", "y = 2").rename(place / f"28_{'custom_' * 8}loops.ipynb")
    file = program.program_of(str(path))
    line = next(n for n, text in enumerate(file.read_text().split("\n"), 1) if text == "y = 2")
    where = Where(file=str(file), line=line)
    assert location(where, 200, str(Path.cwd())) == f"{path.name} cell 3 line 1"
    short = location(where, 60, str(Path.cwd()))
    assert short.endswith("loops.ipynb cell 3 line 1")
    assert len(short) == 60


def test_a_directory_with_blanks_is_no_part_of_a_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = place / "Chapter 03"
    (here / "deep er").mkdir(parents=True)
    monkeypatch.chdir(here)
    path = notebook(here / "deep er", "x = 1")
    file = program.program_of(str(path))
    assert program.by_cells(f"at {file}:{len(file.read_text().splitlines())}.") == "at train.ipynb cell 1 line 1."
    assert program.by_cells(f"flatout tune '{file}'") == "flatout tune 'deep er/train.ipynb'"
    monkeypatch.chdir(here / "deep er")
    assert program.by_cells(f"flatout tune {program.program_of(str(path))}") == "flatout tune train.ipynb"


def test_a_notebook_that_cannot_be_edited_is_refused(place: Path) -> None:
    path = place / "odd.ipynb"
    source = '{"metadata": {}, "cells": [{"source": "x = 1", "source": "x = 2", "cell_type": "code"}]}'
    path.write_bytes(source.encode("utf-16"))
    file = program.program_of(str(path))
    text = file.read_text(encoding="utf-8")
    change = patch.Change(str(file), text.encode(), text.replace("x = 2", "x = 3").encode())
    with pytest.raises(PatchFailed, match="cannot be edited cell by cell"):
        patch.for_notebook(patch.Patch((change,), str(file.parent)), str(path), str(file))


def test_the_same_notebook_is_the_same_program(place: Path) -> None:
    path = notebook(place, "x = 1")
    first = program.program_of(str(path))
    assert program.program_of(str(path)) == first
    notebook(place, "x = 2")
    assert program.program_of(str(path)) != first
    assert command_for(str(path), ("--epochs", "3"), False)[0] == sys.executable


def test_a_hundred_thousand_lines_of_output_stay_byte_for_byte(place: Path) -> None:
    markup = ["<script>alert('\\u2028')</script>\n", "</pre>\u202e\n"] * 50_000
    path = notebook(place, *CELLS)
    book = json.loads(path.read_text(encoding="utf-8"))
    book["cells"][0]["outputs"] = [{"output_type": "display_data", "data": {"text/html": markup}, "metadata": {}}]
    path.write_text(json.dumps(book, indent=1, ensure_ascii=False), encoding="utf-8")
    text = program.program_of(str(path)).read_text(encoding="utf-8")
    after = program.edited(str(path), text.replace("total = 0\n", "total = 10\n")).decode()
    assert after.replace("total = 10", "total = 0") == path.read_text(encoding="utf-8")
