"""Functions that an edit writes stand apart from what is around them, as PEP 8 asks for."""

from __future__ import annotations

import libcst as cst
import pytest

from flatout.source.editing import statements
from flatout.source.editing.document import read

FUNCTION = ("def f():", "    pass")


def defined(source: str, kind: type[cst.CSTNode], blanks: int = 2) -> str | None:
    document = read(source)
    assert document is not None
    statements.define(document, next(document.all(kind)), *FUNCTION, blanks=blanks)
    return document.result()


@pytest.mark.parametrize(
    ("above", "wanted"),
    [
        ("x = 1\n", "x = 1\n\n\n"),
        ("x = 1\n\n", "x = 1\n\n\n"),
        ("x = 1\n\n\n", "x = 1\n\n\n"),
        ("", ""),
        ("# of the file\n", "# of the file\n\n\n"),
        ("# a\n\n", "# a\n\n\n"),
    ],
)
def test_two_blank_lines_above_and_below(above: str, wanted: str) -> None:
    loop = "for i in y:\n    print(i)\n"
    assert defined(above + loop, cst.For) == f"{wanted}def f():\n    pass\n\n\n{loop}"


def test_a_comment_stays_with_its_statement() -> None:
    text = "x = 1\n# all of them\n# in order\nfor i in y:\n    print(i)\n"
    wanted = "x = 1\n\n\ndef f():\n    pass\n\n\n# all of them\n# in order\nfor i in y:\n    print(i)\n"
    assert defined(text, cst.For) == wanted


def test_one_blank_line_inside_of_a_block() -> None:
    text = "def g():\n    for i in y:\n        print(i)\n"
    assert defined(text, cst.For, 1) == "def g():\n    def f():\n        pass\n\n    for i in y:\n        print(i)\n"


def test_windows_line_ends_are_kept() -> None:
    assert defined("x = 1\r\nfor i in y: pass\r\n", cst.For) == (
        "x = 1\r\n\r\n\r\ndef f():\r\n    pass\r\n\r\n\r\nfor i in y: pass\r\n"
    )
