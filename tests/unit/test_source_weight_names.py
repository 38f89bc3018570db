"""Which shares change while a program runs, and which lists hold variables of models."""

from __future__ import annotations

import ast
import textwrap

import pytest

from flatout.source.editing.weight_names import Names

PROGRAM = textwrap.dedent(
    """
    TAU = 0.01
    rate = 0.5

    class Agent:
        def __init__(self, settings):
            self.tau, self.cooled = settings.tau, 1.0
            self.named = self.net.trainable_variables

        def follow(self, tau=None, fixed=0.1, warm=0.0, step=0):
            tau = tau or self.tau
            self.cooled = self.cooled * 0.99
            ramped = min(0.999, (1 + step) / (10 + step))
            picked = float(self.settings["tau"])
            other = self.schedule(step)
            mine, pairs = self.net.variables, load()
            ROW

        def train(self):
            for turn in range(9):
                self.follow(tau=TAU, warm=0.1 * turn)
    """
)
ROW = next(number for number, row in enumerate(PROGRAM.splitlines(), 1) if "ROW" in row)


@pytest.mark.parametrize("share", ["0.1", "TAU", "1 - TAU", "tau", "fixed", "self.tau", "picked", "args.tau"])
def test_what_stays_the_same_is_a_number(share):
    assert not Names(ast.parse(PROGRAM)).change(share, ROW)


@pytest.mark.parametrize("share", ["ramped", "1 - ramped", "self.cooled", "warm", "other", "self.shares[step]"])
def test_what_changes_is_a_tensor(share):
    assert Names(ast.parse(PROGRAM)).change(share, ROW)


def test_lists_of_variables_are_told_from_others():
    text = "def copy(to, of):\n    pass\n\ncopy(net.weights, other.weights)\ncopy(net.weights, load())\n"
    names = Names(ast.parse(text))
    assert names.are_variables("to", 2)
    assert not names.are_variables("of", 2)
    assert not names.are_variables("elsewhere", 2)
    assert names.are_variables("net.trainable_weights", 2)


MODELS = textwrap.dedent(
    """
    class Agent:
        def __init__(self):
            self.net, self.late = build(), None
            self.begin()

        def begin(self):
            self.target = build()

        def restart(self):
            self.fresh = build()

        def follow(self, to, of, third):
            ROW

    def main():
        agent, first, second = Agent(), build(), build()
        agent.follow(first, second, build())
        for turn in range(9):
            another = build()
            agent.restart()
            agent.follow(first, another, second)
    """
)
AT = next(number for number, row in enumerate(MODELS.splitlines(), 1) if "ROW" in row)


@pytest.mark.parametrize(
    ("owner", "anew"),
    [("self.net", False), ("self.target", False), ("self.fresh", True), ("to", False), ("of", True), ("third", False)],
)
def test_a_model_that_another_function_makes_again_and_again_is_made_anew(owner, anew):
    assert Names(ast.parse(MODELS)).is_made_anew(owner, AT) == anew
