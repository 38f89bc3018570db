"""A file of twice the size takes about twice the work. Work is counted in calls of Python functions, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from flatout.check.checker import Checker
from flatout.check.selection import select

_HEAD = "import tensorflow as tf\nmodel = tf.keras.Sequential()\n"


def _compiles(size: int) -> str:
    return _HEAD + "model.compile(run_eagerly=True)\n" * size


def _predictions(size: int) -> str:
    return _HEAD + "for i in range(100000):\n" + "    p = model.predict(x)\n" * size


def _maps(size: int) -> str:
    return _HEAD + "def f(x):\n    return x\nds = tf.data.Dataset.range(9)\n" + "ds = ds.map(f)\n" * size


def _arms(size: int) -> str:
    first = "for i in range(100000):\n    if kind == 0:\n        model.predict(x)\n"
    rest = "".join(f"    elif kind == {n}:\n        y = model.predict(x)\n" for n in range(1, size))
    return _HEAD + first + rest


def _step_functions(size: int) -> str:
    step = """
def step{n}(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) - y)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss
for x, y in rows:
    step{n}(x, y)
"""
    return _HEAD + "".join(step.format(n=n) for n in range(size))


def _tapes(size: int) -> str:
    step = """\
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) - y)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""
    return _HEAD + "for x, y in rows:\n" + step * size


def _calls_made(checker: Checker, text: str) -> int:
    made = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal made
        made += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        outcome = checker.check(text, "program.py")
    finally:
        sys.setprofile(before)
    assert outcome.diagnostics
    assert not outcome.problem
    return made


@pytest.mark.parametrize("text_of", [_compiles, _predictions, _maps, _arms])
def test_twice_the_findings_take_about_twice_the_work(text_of: Callable[[int], str]) -> None:
    checker = Checker(select(["all"]))
    checker.check(text_of(3), "program.py")  # what is read once, such as the catalogue
    assert _calls_made(checker, text_of(80)) < 2.5 * _calls_made(checker, text_of(40))


def test_step_functions_do_not_ask_all_others_about_all_of_their_code() -> None:
    checker = Checker(select(["eager-step"]))
    checker.check(_step_functions(3), "program.py")
    assert _calls_made(checker, _step_functions(20)) < 2.8 * _calls_made(checker, _step_functions(10))


def test_tapes_of_one_loop_are_not_searched_from_each_to_each_other() -> None:
    checker = Checker(select(["eager-step"]))
    checker.check(_tapes(3), "program.py")
    assert _calls_made(checker, _tapes(60)) < 4.5 * _calls_made(checker, _tapes(30))
