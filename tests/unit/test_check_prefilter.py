"""What is left out before a file is parsed: only what no pattern can find anything in."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from flatout.check.checker import Checker
from flatout.check.prefilter import Code, code_of, words_in
from flatout.check.selection import select
from flatout.source.analysis.patterns import Match, Pattern, pattern
from flatout.source.analysis.scopes import Site

HEAD = "import tensorflow as tf\n"


def _never(node: ast.AST, site: Site) -> Iterator[Match]:
    return iter(())


def _of(**how: object) -> list[Pattern]:
    return [pattern("p", **how)(_never)]  # type: ignore[arg-type]


def may_apply(patterns: list[Pattern], text: str) -> bool:
    return Code(text, words_in(text)).may_have(patterns[0])


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("ds.map(f)", True),
        ("ds.map (f)", True),
        ("ds.map\\\n  (f)", True),
        ("(ds.map\n(f))", True),
        ("# the map\nx = 1", False),
        ('def f():\n    """Call map(f)."""\n', False),
        ("def f():\n    '''Call map(f).'''\n", True),  # not worth a closer look
        ('a = \'"""\'\nds.map(f)\nb = \'"""\'', True),  # no docstring at all
        ('# """\nds.map(f)\n# """', True),
    ],
)
def test_a_call_outside_of_docstrings(text: str, may: bool) -> None:
    assert may_apply(_of(calls=["map"]), text) is may


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("for i in x:\n    y = concat(y, i)\n", True),
        ("while True:\n\n  # comment\n  y = concat(y)\n", True),
        ("for i in x: y = concat(y)\n", True),
        ("def f():\n    for i in x:\n        def g():\n            pass\n        y = concat(y)\n", True),
        ("def f():\n    for i in x:\n        pass\n\ndef g():\n    y = concat(y)\n", False),
        ("y = concat(y)\nfor i in x:\n    pass\n", False),
    ],
)
def test_a_word_inside_a_loop(text: str, may: bool) -> None:
    assert may_apply(_of(nodes=[ast.Assign], words=["concat"], in_loop=["concat"]), text) is may


def test_a_word_inside_a_method_named_call() -> None:
    patterns = _of(calls=["Dense"], in_call=["Dense"])
    assert may_apply(patterns, "class A:\n    def call(self, x):\n        return Dense(1)(x)\n")
    made = "class A:\n  def call(self, x):\n    return self.a(x)\n\n  def build(self):\n    self.a = Dense(1)\n"
    assert not may_apply(patterns, made)


def test_docstrings_go_and_code_stays() -> None:
    text = 'def f():\n    """About map."""\n    return """a""" + g()\n'
    assert "About" not in code_of(text)
    assert "return" in code_of(text)
    assert "g()" in code_of(text)


def test_a_file_with_no_more_than_words_is_still_read_for_its_syntax() -> None:
    checker = Checker(select(["all"]))
    assert checker.check(HEAD + "# fit, map and predict\nx = (\n", "a.py").problem.startswith(
        "line 3: not valid Python"
    )
    assert not checker.check(HEAD + "# fit, map and predict\nx = 1\n", "a.py").problem
