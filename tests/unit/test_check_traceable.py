"""`@tf.function` is offered only where it keeps what the function does; the advice says what is in the way else."""

from __future__ import annotations

import pytest

from flatout.check.checker import Checker
from flatout.check.selection import select
from flatout.check.text_repair import fix

HEAD = """
import numpy as np
import scipy.special
import tensorflow as tf
from helpers import scale

class Agent:
    def __init__(self):
        self.model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
        self.optimizer = tf.keras.optimizers.Adam()
        self.memory = []
        self.loss = tf.keras.losses.MeanSquaredError()
        self.weight = 1.0
"""
UPDATE = """
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
"""
CALLS = """
agent = Agent()
for turn in range(1000):
    agent.learn({})
"""
REFUSED = {
    "no data and an early return": (
        "",
        """
    def learn(self):
        if len(self.memory) < 32:
            return
        states = np.stack(self.memory[-32:])
        with tf.GradientTape() as tape:
            loss = self.loss(states, self.model(states))""",
    ),
    "no data": (
        "",
        """
    def learn(self):
        with tf.GradientTape() as tape:
            loss = self.loss(self.batch, self.model(self.batch))""",
    ),
    "numpy inside": (
        "x",
        """
    def learn(self, x):
        y = np.clip(x, 0, 1)
        with tf.GradientTape() as tape:
            loss = self.loss(y, self.model(x))""",
    ),
    "a method of arrays": (
        "x",
        """
    def learn(self, batch):
        x, y = batch
        x = x.reshape(-1, 784)
        with tf.GradientTape() as tape:
            loss = self.loss(y, self.model(x))""",
    ),
    "an attribute of arrays": (
        "x",
        """
    def learn(self, x):
        with tf.GradientTape() as tape:
            loss = self.loss(x, self.model(x)) / x.size""",
    ),
    "scipy inside": (
        "x",
        """
    def learn(self, x):
        with tf.GradientTape() as tape:
            loss = self.loss(scipy.special.softmax(x), self.model(x))""",
    ),
    "a helper of another file": (
        "x",
        """
    def learn(self, x):
        with tf.GradientTape() as tape:
            loss = self.loss(scale(x), self.model(x))""",
    ),
    "makes a layer": (
        "x",
        """
    def learn(self, x):
        with tf.GradientTape() as tape:
            loss = self.loss(x, tf.keras.layers.Dense(2)(self.model(x)))""",
    ),
    "state that changes": (
        "x",
        """
    def decay(self):
        self.weight *= 0.9

    def learn(self, x):
        with tf.GradientTape() as tape:
            loss = self.weight * self.loss(x, self.model(x))
        self.decay()""",
    ),
    "a counter": (
        "x, turn",
        """
    def learn(self, x, step):
        with tf.GradientTape() as tape:
            loss = self.loss(x, self.model(x)) / step""",
    ),
    "another model": (
        "x, model",
        """
    def learn(self, x, model):
        with tf.GradientTape() as tape:
            loss = self.loss(x, model(x))""",
    ),
    "decides by a value": (
        "x",
        """
    def learn(self, x):
        with tf.GradientTape() as tape:
            loss = self.loss(x, self.model(x))
        if loss > 1:
            loss = loss / 2""",
    ),
}
TAKEN = """
    def learn(self, x):
        with tf.GradientTape() as tape:
            loss = self.loss(x, self.model(x))"""


def repaired(given: str, method: str) -> tuple[str, str]:
    source = HEAD + method + UPDATE + CALLS.format(given)
    result = fix(source.encode(), "agent.py", Checker(select(["eager-step"])), lambda item: True)
    found = Checker(select(["eager-step"])).check(source, "agent.py").diagnostics
    return result.content.decode(), found[0].advice if found else ""


@pytest.mark.parametrize("name", REFUSED)
def test_a_function_that_a_trace_would_change_is_not_decorated(name: str) -> None:
    text, advice = repaired(*REFUSED[name])
    assert "@tf.function\n    def learn(" not in text
    assert advice.startswith("Make a @tf.function of it. First: ")


def test_a_step_that_needs_arrays_is_not_taken_out_of_its_loop() -> None:
    source = (
        HEAD
        + """
    def learn(self, batches):
        for x, y in batches:
            with tf.GradientTape() as tape:
                loss = self.loss(y.astype("float32"), self.model(x))
            gradients = tape.gradient(loss, self.model.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
"""
    )
    checker = Checker(select(["eager-step"]))
    assert [item.repair for item in checker.check(source, "agent.py").diagnostics] == [None]
    (plain,) = checker.check(source.replace('.astype("float32")', ""), "agent.py").diagnostics
    assert plain.repair is not None


FOLDS = """
import tensorflow as tf

def train(model, optimizer, data):
    for x, y in data:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

{0}model, optimizer = make(), tf.keras.optimizers.Adam()
{0}train(model, optimizer, data)
"""


def test_a_step_is_not_taken_out_of_a_function_that_gets_several_models() -> None:
    checker = Checker(select(["eager-step"]))
    several = FOLDS.format("    ").replace("    model, opt", "for fold in range(5):\n    model, opt")
    repaired = fix(several.encode(), "folds.py", checker, lambda item: True).content.decode()
    # It stays inside, where each call of `train` makes a graph of its own for its model.
    assert "    @tf.function(reduce_retracing=True)\n    def train_step(x, y):\n" in repaired
    (one,) = checker.check(FOLDS.format(""), "folds.py").diagnostics
    assert one.repair is not None
    assert "the same model" in one.repair.assumes


def test_a_step_of_its_arguments_alone_is_decorated() -> None:
    text, advice = repaired("x", TAKEN)
    assert "    @tf.function\n    def learn(self, x):" in text
    assert advice == "Decorate it with @tf.function."
