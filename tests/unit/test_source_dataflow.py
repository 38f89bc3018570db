"""What a piece of a program reads from before, and what it writes."""

from __future__ import annotations

import ast

import pytest

from flatout.source.editing.dataflow import Flow, bound_in, free_names


@pytest.mark.parametrize(
    ("text", "read", "written", "certain"),
    [
        ("b = a + 1\nc = b", "a", "b c", "b c"),
        ("if a:\n    b = 1\nelse:\n    b = c\n    d = 2\n", "a c", "b d", "b"),
        ("for i in a:\n    b = b + i\n", "a b", "i b", ""),
        ("while a:\n    a = b\n", "a b", "a", ""),
        ("with f(a) as (x, y):\n    z = x\n", "f a", "x y z", "x y z"),
        ("a += b", "a b", "a", "a"),
        ("a[i] = b\nc.d = e\n", "b a i e c", "", ""),
        ("x = [y for y in a if y > b]\ny", "a b y", "x", "x"),
        ("x = lambda u: u + v", "v", "x", "x"),
        ("y = map_fn(lambda x, n=n: x * n, x)", "map_fn n x", "y", "y"),
        ("y = [x for x in x for z in x + z]", "x z", "y", "y"),
        ("a = (b := f(c)) + b", "f c", "b a", "b a"),
        ("a = b + (b := f(c))", "b f c", "b a", "b a"),
        ("if (n := f()) > 1:\n    n", "f", "n", "n"),
        ("def g(p):\n    q = p + r\n    return q\n", "r", "g", "g"),
        ("import a.b as c, d.e", "", "c d", "c d"),
        ("a = 1\ndel a\na", "a", "a", ""),
        ("try:\n    a = b\nexcept E as e:\n    c = 1\n", "b E", "a c e", ""),
        ("*a, b = c", "c", "a b", "a b"),
    ],
)
def test_flow(text: str, read: str, written: str, certain: str) -> None:
    flow = Flow(ast.parse(text).body)
    assert list(flow.read) == read.split()
    assert set(flow.written) == set(written.split())
    assert flow.certain == set(certain.split())


def test_names_of_a_function() -> None:
    (function,) = ast.parse("@d\ndef f(a, *b, c=1, **e):\n    g = [h for h in a]\n    def i(): return g, j\n").body
    assert isinstance(function, ast.FunctionDef)
    assert free_names(function) == ["d", "j"]
    assert bound_in(function.body) == {"g", "i"}
    (function,) = ast.parse("def f(a=a):\n    b = [c for c in c]\n    return map(lambda d: d, d)\n").body
    assert isinstance(function, ast.FunctionDef)
    assert set(free_names(function)) == {"a", "c", "d", "map"}


def test_what_the_body_of_a_try_assigns_is_certain_in_it_and_behind_it_only_where_no_handler_goes_on() -> None:
    text = "try:\n    a = read()\n    b = a\nexcept ValueError as error:\n    print(b, error)\n    {end}\nprint(a)\n"
    leaves = Flow(ast.parse(text.format(end="raise")).body)
    assert "a" not in leaves.read
    assert "b" in leaves.read, "the handler may run before it is assigned"
    assert "error" not in leaves.read
    assert "a" in Flow(ast.parse(text.format(end="pass")).body).read
