"""What is left out before a file is parsed: only what no pattern can find anything in."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from flatout.check.checker import Checker
from flatout.check.prefilter import Code, code_of, words_in
from flatout.check.selection import select
from flatout.source.analysis.patterns import Match, Pattern, pattern
from flatout.source.analysis.quick_look import may_be_argument, may_be_given
from flatout.source.analysis.scopes import Site

HEAD = "import tensorflow as tf\n"
TESTS = Path(__file__).parents[1]


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


def test_what_is_left_out_has_no_finding() -> None:
    """Each pattern, with nothing but its words asked for, finds in all fixtures what it finds as it is."""
    patterns = select(["all"])
    of_words_alone = [
        dataclasses.replace(
            item,
            needs=frozenset(),
            among=frozenset(),
            called=frozenset(),
            in_loop=(),
            in_call=frozenset(),
            written="",
            may_be_in=None,
            alone=frozenset(),
            of_tensorflow=False,
            on_dataset=False,
        )
        for item in patterns
    ]
    as_they_are, all_of_them = Checker(patterns), Checker(of_words_alone)
    files = sorted((TESTS / "fixtures" / "check").rglob("*.py"))
    found = 0
    for file in files:
        text = file.read_text()
        outcome = as_they_are.check(text, "train.py")
        assert outcome.diagnostics == all_of_them.check(text, "train.py").diagnostics, file.name
        found += len(outcome.diagnostics)
    assert found > 100


def test_what_would_not_be_shown_does_not_change_what_is() -> None:
    text = HEAD + "for a in ds:\n    model.predict(a)\n    sess.run(y, feed_dict={images: a})\n"
    shown = [
        Checker(select(), asked=(), seldom=True, least=least).check(text, path).diagnostics
        for path in ("train.py", "train_test.py", "docs/train.py")
        for least in ("medium", "low")
    ]
    assert [[item.cause for item in found] for found in shown[:2]] == [
        ["predict-in-loop"],
        ["predict-in-loop", "feed-dict"],
    ]
    assert [len(found) for found in shown[2:]] == [0, 0, 0, 2]


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("ds.cache()", True),
        ("    ds.map(f).cache()", True),
        ("(ds\n .cache())", True),
        ("f(\n  a=1).cache()", True),
        ("if a: ds.cache()", True),
        ("x = 1; ds.cache()", True),
        ("ds = ds.cache()", False),
        ("return ds.cache()", False),
        ("f(ds.cache())", False),
        ("x = [ds.cache()]", False),
        ("# ds.cache()", False),
        ("ds.other()", False),
    ],
)
def test_a_call_that_is_a_statement(text: str, may: bool) -> None:
    assert may_apply(_of(nodes=[ast.Expr], words=["cache", "other"], alone=["cache"]), text) is may


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("ds = tf.data.Dataset.range(3)\nds.map(f)", True),
        ("from tensorflow import (\n    nn,\n    data,\n)\nx.map(f)", True),
        ("x.map(f).prefetch(2)", True),
        ("x.map(f, num_parallel_calls=2)", True),
        ("train_ds.map(f)", True),
        ("DATASETS.map(f)", True),
        ("x.map(f).batch(2).repeat()", True),
        ("pool.map(f)", False),
        ("odds.map(f)", False),
        ("data = pool.map(f)", False),
    ],
)
def test_a_text_that_may_have_a_dataset(text: str, may: bool) -> None:
    assert may_apply(_of(calls=["map"], on_dataset=True), text) is may


def test_what_plain_text_tells_about_a_name() -> None:
    call = re.compile(r"\(")
    for text in ("a = f()", "x, a = f()", "a: int = f()", "a = \\\n  f()", "a = (\n  f())", "with f() as a:"):
        assert may_be_given("a", text, call), text
    for text in ("a = 1", "b = f()", "f(a)", "# a = f()", "ab = f()"):
        assert not may_be_given("a", text, call), text
    for text in ("def f(a):", "def f(\n    a,\n):", "def f(\n    b, a=3,\n):", "def f(b,\n      a: int):"):
        assert may_be_argument("a", text), text
    for text in ("a = f(3)", "for i in range(a):", "x = b * a", "def f(ab):"):
        assert not may_be_argument("a", text), text


@pytest.mark.parametrize(
    "line",
    [
        "# " + "ds.map(f).cache() tf.log tf.contrib " * 10_000,
        "x = '" + "expand_dims( device( in in constant(a) " * 10_000 + "'",
    ],
    ids=["comment", "text"],
)
def test_a_line_of_many_thousand_words_is_looked_at_in_parts(line: str) -> None:
    words = "# newaxis range function train call data numpy random shuffle repeat\n"
    assert not Checker(select(["all"])).check(HEAD + "import numpy as np\n" + words + line + "\n", "a.py").diagnostics
