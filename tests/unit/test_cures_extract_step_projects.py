"""`extract-step` in programs of several files: shapes are relaxed unless a model of another file computes with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatout.causes import find
from flatout.cures.extract_step import skip
from flatout.cures.extract_step.edit import edit
from flatout.model.case import Case, Distribution, Program, Steps, Where
from flatout.model.evidence.steps import LineTime, StepStack
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


PLAY = """\
import tensorflow as tf
{imports}

{made}
optimizer = tf.keras.optimizers.Adam()

for batch in batches:
    env.step(0)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(critic(batch) ** 2)
    grads = tape.gradient(loss, critic.trainable_variables)
    optimizer.apply_gradients(zip(grads, critic.trainable_variables))
    games.log(loss)
"""
OWN = "critic = tf.keras.Sequential([tf.keras.layers.Dense(env.action_space.n)])"


@pytest.mark.parametrize(
    ("imports", "made", "relaxed"),
    [
        ("import games", f"env = games.make()\n{OWN}", True),
        ("from games import make", f"env = make()\n{OWN}", True),
        ("import games", "critic = games.Critic()", False),
        ("from games import Critic as C", "critic = C()", False),
        ("from games import *", OWN, False),
        ("import games", "critic = tf.keras.Sequential([tf.keras.layers.Dense(2), games.Flat()])", False),
        ("import games", "critic = tf.keras.Sequential()\ncritic.add(games.Flat())", False),
        ("import games", "flat = games.Flat()\ncritic = tf.keras.Sequential([flat])", False),
        ("import games", "class Critic(games.Model):\n    pass\ncritic = Critic()", False),
        ("import games", "def build():\n    return games.Critic()\ncritic = build()", False),
        (
            "import games",
            "class Net(tf.keras.Model):\n    def __init__(self, body):\n        super().__init__()\n"
            "        self.body = body\n    def call(self, x):\n        return self.body(x)\ncritic = Net(games.Flat())",
            False,
        ),
    ],
)
def test_only_models_of_unseen_packages_keep_shapes(tmp_path: Path, imports: str, made: str, relaxed: bool) -> None:
    """A package that the program plays and logs with has no part in its step."""
    assert ("reduce_retracing=True" in edited(tmp_path, PLAY.format(imports=imports, made=made))) is relaxed


def edited(directory: Path, text: str = MAIN) -> str:
    main = directory / "main.py"
    main.write_text(text)
    line = 1 + text[: text.index("optimizer.apply_gradients")].count("\n")
    where = Where(str(main), line)
    case = Case(
        kind="run",
        program=Program(("python", str(main)), str(directory)),
        steps=Steps(10, "", Distribution(1, 1, 1), where=where),
        evidence=(StepStack(where=where, step="apply", stack=(Frame(str(main), line, "<module>", 1),)),),
    )
    return edit(text, str(main), case, "") or ""


# ── a step that is a function of its own ─────────────────────────────────────────────────────────────────────────────

OWN_FUNCTION = """\
import tensorflow as tf

mean = tf.keras.metrics.Mean()
history = []


def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(batch) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


for batch in batches:
    loss = train_step(batch)
    {behind}
"""


def own_function(directory: Path, behind: str, traced: bool = False) -> Case:
    text = OWN_FUNCTION.format(behind=behind)
    text = text.replace("def train_step", "@tf.function\ndef train_step") if traced else text
    main = directory / "main.py"
    main.write_text(text)
    lines = text.splitlines()
    update = next(n for n, line in enumerate(lines, 1) if "apply_gradients" in line)
    call = next(n for n, line in enumerate(lines, 1) if line.startswith("    loss = train_step("))
    first = next(n for n, line in enumerate(lines, 1) if line.startswith("def train_step"))
    stack = (Frame(str(main), update, "train_step", first), Frame(str(main), call, "<module>", 1))[traced:]
    where = Where(str(main), stack[0].line)
    return Case(
        kind="run",
        program=Program(("python", str(main)), str(directory)),
        steps=Steps(10, "", Distribution(1, 1, 1), where=where),
        evidence=(
            StepStack(where=where, step="train-function" if traced else "apply", stack=stack),
            *(LineTime(0.2, 20, 100, where=Where(str(main), line)) for line in (call, call + 1)),
        ),
    )


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("behind", ["mean(loss)", "mean.update_state(loss)"])
def test_metrics_behind_a_step_function_are_traced_with_it(tmp_path: Path, behind: str, traced: bool) -> None:
    case = own_function(tmp_path, behind, traced)
    assert skip(case) is None
    made = edit((tmp_path / "main.py").read_text(), str(tmp_path / "main.py"), case, "") or ""
    assert f"    loss = train_step(batch)\n    {behind}\n\n\nfor batch in batches:\n    train_step_2(batch)\n" in made
    assert made.count("@tf.function") == 1 + traced


@pytest.mark.parametrize(("behind", "traced", "named"), [("mean(loss)", True, 1), ("mean(loss)", False, 0)])
def test_eager_metrics_of_traced_steps_are_named(tmp_path: Path, behind: str, traced: bool, named: int) -> None:
    """Where the step is eager itself, that is the finding."""
    found = list(find("eager-calls").spec.in_run(own_function(tmp_path, behind, traced)))
    assert [one.fixes[0].lever for one in found] == ["extract-step"] * named
    assert [one.cost_share for one in found] == [pytest.approx(0.16)] * named


def test_a_line_that_only_looks_like_a_metric_is_not_named(tmp_path: Path) -> None:
    assert not list(find("eager-calls").spec.in_run(own_function(tmp_path, "history(loss)", traced=True)))


@pytest.mark.parametrize("behind", ["history.append(float(loss))", "print(loss)", "mean(loss.numpy())"])
def test_other_work_behind_a_step_function_is_no_reason_to_take_it_out(tmp_path: Path, behind: str) -> None:
    assert "function is the lever" in (skip(own_function(tmp_path, behind)) or "")
    assert "already run in a graph" in (skip(own_function(tmp_path, behind, traced=True)) or "")
