"""Cells that are marked to be kept, by their source: which they are, what of them runs again, which names matter."""

from __future__ import annotations

import ast

import pytest

from flatout.source.notebooks import kept_cells
from flatout.source.notebooks.kept_cells import KeptCell, Piece
from flatout.source.notebooks.text import MARK, ORIGINAL

LOAD = "# flatout: keep\nimport numpy as np\ndef read(path):\n    return np.load(path)\nx = read('x.npy')\ny = x + 1"


def program(*cells: str) -> str:
    text = "import os  # what stands before the first cell\n"
    return text + "".join(f"{MARK}{number}\n{cell}\n" for number, cell in enumerate(cells, start=2))


def pieces(*cells: str) -> list[Piece]:
    text = program(*cells)
    return kept_cells.pieces(text, ast.parse(text))


def kept(*cells: str) -> KeptCell:
    return next(one.kept for one in pieces(*cells) if one.kept is not None)


@pytest.mark.parametrize(
    ("cell", "marked"),
    [
        ("# flatout: keep\nx = 1", True),
        ("\n# The data.\n\n#flatout:keep  \nx = 1", True),
        (f"pass  {ORIGINAL}%%time\n# flatout: keep\nx = 1", True),
        ("x = 1\n# flatout: keep", False),
        (f"pass  {ORIGINAL}!ls\n# flatout: keep\nx = 1", False),
        ("# flatout: keeps\nx = 1", False),
        ("text = '# flatout: keep'", False),
        ("", False),
    ],
)
def test_a_cell_is_marked_by_its_first_line(cell: str, marked: bool) -> None:
    assert kept_cells.any_marked(program("a = 1", cell)) == marked
    assert any(one.kept for one in pieces("a = 1", cell)) == marked


def test_a_program_is_cut_around_the_cells_that_are_marked() -> None:
    found = pieces("a = 1\nb = 2", LOAD, "@str\ndef f(): ...", "# flatout: keep\nimport re", "c = 3")
    assert [[ast.unparse(one).split("\n")[0] for one in piece.statements] for piece in found] == [
        ["import os", "a = 1", "b = 2"],
        ["import numpy as np", "def read(path):", "x = read('x.npy')", "y = x + 1"],
        ["@str"],
        ["import re"],  # nothing in it could be left out
        ["c = 3"],
    ]
    assert [piece.kept.number if piece.kept else None for piece in found] == [None, 3, None, None, None]
    cell = kept("a = 1", LOAD)
    assert [(kind, len(group)) for kind, group in cell.groups] == [("import", 1), ("definition", 1), ("once", 2)]
    assert cell.bound == {"x", "y"}
    assert cell.statements[0].lineno == 6, "lines are those of the program"


def test_settings_of_tensorflow_run_again() -> None:
    threads = "tf.config.threading.set_intra_op_parallelism_threads(1)"
    for line in (threads, "tf.keras.mixed_precision.set_global_policy('x')"):
        assert kept_cells.runs_again(ast.parse(line).body[0])
    for line in (f"x = {threads}", "tf.random.set_seed(1)", "'text'"):
        assert not kept_cells.runs_again(ast.parse(line).body[0])


@pytest.mark.parametrize(
    ("definition", "needs"),
    [
        ("def f(a=size): return other", {"size"}),
        ("def f(*, a: kind = size) -> result: ...", {"kind", "size", "result"}),
        ("@wrap(size)\nasync def f(): ...", {"wrap", "size"}),
        ("class A(Base, metaclass=Meta):\n    b = size\n    def f(self, a=c): return d", {"Base", "Meta", "size", "c"}),
        ("f = lambda: size", set()),
    ],
)
def test_what_a_definition_needs_while_it_is_made(definition: str, needs: set[str]) -> None:
    assert kept(f"# flatout: keep\nz = 1\n{definition}").defined_with == needs


def test_names_that_it_reads_and_changes() -> None:
    cell = kept(
        "# flatout: keep\nx += a.size\nfor i in b:\n    y = [i]\ndel c\nd[0] = e.f()\n"
        "def g(h, k=l):\n    global m\n    n, m = h, o.p\n    return [q for q in n]"
    )
    assert {"x", "a", "b", "i", "c", "d", "e", "l", "o"} == cell.names
    assert cell.attributes == {"size", "f", "p"}
    assert cell.bound == {"x", "i", "y", "c"}
    assert not cell.by_text
    assert kept("# flatout: keep\nglobals()['x'] = 1").by_text


@pytest.mark.parametrize(
    ("elsewhere", "read"),
    [
        ("print(x)", {"x"}),
        ("def f():\n    global raw\n    raw = raw + model(x=x)", {"x", "raw"}),
        ("frame.query('a > @raw')", {"raw"}),
        ("eval(text)", {"x", "raw", "file"}),
        ("print(7)\nraw = 1\ndef f(x): return x", set()),
    ],
)
def test_names_that_the_rest_of_the_notebook_may_read(elsewhere: str, read: set[str]) -> None:
    cell = kept("import sys", "# flatout: keep\nraw = open('x')\nfile = raw\nx = raw", elsewhere)
    assert cell.read_elsewhere(["raw", "file", "x"]) == read


def test_names_that_its_own_functions_read_are_read_elsewhere() -> None:
    assert kept("# flatout: keep\nx = y = 1\ndef f(): return x").read_elsewhere(["x", "y"]) == {"x"}


def test_a_program_that_differs_up_to_the_end_of_the_cell() -> None:
    history = kept("a = 1", LOAD, "print(x)").history
    holds = lambda *cells: kept_cells.still_holds(history, kept(*cells).history)  # noqa: E731
    assert holds("a = 1", LOAD, "print(x)")
    assert holds("a  =  1  # the same", LOAD.replace("y =", "\n\ny ="), "print(x + 1)")
    assert holds("from time import time\na = 1", LOAD, ""), "a patch adds imports"
    assert holds("a = 1\nkeras.mixed_precision.set_global_policy('mixed_float16')", LOAD, "")
    assert not holds("a = 2", LOAD, "")
    assert not holds("a = 1", LOAD.replace("+ 1", "+ 2"), "")
    assert not holds("a = 1", LOAD.replace("return np", "return 2 * np"), "")
    assert not holds("a = 1\nprint(a)", LOAD, "")
    assert not holds(LOAD, ""), "something is missing"
