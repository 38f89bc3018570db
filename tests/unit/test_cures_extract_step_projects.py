"""`extract-step` in programs of several files: shapes are relaxed unless a model of another file computes with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatout.cures.extract_step.edit import edit
from flatout.model.case import Case, Distribution, Program, Steps, Where
from flatout.model.evidence.steps import StepStack
from flatout.model.location import Frame

MAIN = """\
import tensorflow as tf
from networks import Critic

critic = Critic()
optimizer = tf.keras.optimizers.Adam()

for batch in batches:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(critic(batch) ** 2)
    grads = tape.gradient(loss, critic.trainable_variables)
    optimizer.apply_gradients(zip(grads, critic.trainable_variables))
    print(loss)
"""
NETWORK = """\
import tensorflow as tf

class Critic(tf.keras.Model):
    def call(self, states):
        return {}
"""


@pytest.mark.parametrize(
    ("returned", "relaxed"),
    [
        ("self.out(states)", True),
        ("self.out(tf.reshape(states, (tf.shape(states)[0], -1)))", True),
        ("self.out(tf.reshape(states, (states.shape[0], -1)))", False),
        ("flatten(states)", False),
    ],
)
def test_shapes_of_models_of_other_files(tmp_path: Path, returned: str, relaxed: bool) -> None:
    helper = "\n\ndef flatten(states):\n    return tf.reshape(states, (states.shape[0], -1))\n"
    (tmp_path / "networks.py").write_text(NETWORK.format(returned) + helper)
    assert ("reduce_retracing=True" in edited(tmp_path)) is relaxed


def test_a_module_that_is_not_there_may_hold_anything(tmp_path: Path) -> None:
    assert "@tf.function\n" in edited(tmp_path)


def edited(directory: Path) -> str:
    main = directory / "main.py"
    main.write_text(MAIN)
    line = 1 + MAIN[: MAIN.index("optimizer.apply_gradients")].count("\n")
    where = Where(str(main), line)
    case = Case(
        kind="run",
        program=Program(("python", str(main)), str(directory)),
        steps=Steps(10, "", Distribution(1, 1, 1), where=where),
        evidence=(StepStack(where=where, step="apply", stack=(Frame(str(main), line, "<module>", 1),)),),
    )
    return edit(MAIN, str(main), case, "") or ""
