"""Python state that a trace would freeze, as the source shows it."""

from __future__ import annotations

import textwrap

import pytest

from flatout.cures import _frozen
from flatout.source.editing import frozen_state
from flatout.source.editing.project import Project


def found(text: str, name: str = "step", calls: tuple[str, ...] = (), kept: bool = False, **files: str) -> str:
    texts = {"train.py": textwrap.dedent(text)} | {f"{n}.py": textwrap.dedent(t) for n, t in files.items()}
    project = Project(texts)
    state = frozen_state.frozen(project, project.codes[name], calls, kept=kept)
    return state.text if state is not None else ""


CHANGING = {
    "attribute set by the loop": """
        def step(x): return model.beta * x
        for epoch in range(3):
            model.beta = epoch / 10
            step(epoch)
        """,
    "global set by the loop": """
        beta = 0.0
        def step(x): return beta * x
        for epoch in range(3):
            beta = epoch / 10
            step(epoch)
        """,
    "global set by a function": """
        beta = 0.0
        def step(x): return beta * x
        def anneal(epoch):
            global beta
            beta = epoch / 10
        def train():
            for epoch in range(3):
                anneal(epoch)
                step(epoch)
        """,
    "loop variable": """
        def step(x): return x * epoch
        for epoch in range(3):
            step(1)
        """,
    "variable of the function around it": """
        def main():
            beta = 0.0
            def step(x): return x * beta
            for epoch in range(3):
                beta = epoch / 10
                step(epoch)
        """,
    "nonlocal": """
        def main():
            beta = 0.0
            def step(x): return x * beta
            def anneal():
                nonlocal beta
                beta += 1
            while True:
                step(1)
                anneal()
        """,
    "read in a method of another object": """
        class Schedule:
            def value(self): return self.n
        class Trainer:
            def __init__(self): self.schedule = Schedule()
            def step(self, x): return self.schedule.value() * x
            def tick(self): self.schedule.n += 1
        trainer = Trainer()
        for x in data:
            trainer.step(x)
            trainer.tick()
        """,
    "class attribute": """
        class Settings: beta = 0.0
        def step(x): return Settings.beta * x
        for epoch in range(3):
            Settings.beta = epoch
            step(epoch)
        """,
    "property": """
        class Trainer:
            @property
            def beta(self): return self.epoch / 10
            def step(self, x): return self.beta * x
            def run(self):
                for self.epoch in range(3):
                    self.step(1)
        """,
    "dictionary": """
        settings = {"beta": 0.0}
        def step(x): return x * settings["beta"]
        for epoch in range(3):
            settings["beta"] = epoch
            step(epoch)
        """,
    "list that grows": """
        class Trainer:
            def step(self, x): return x * len(self.seen)
            def run(self):
                for x in data:
                    self.seen.append(x)
                    self.step(x)
        """,
    "array changed in place": """
        import numpy as np
        weights = np.ones(3)
        def step(x): return x * weights
        for x in data:
            step(x)
            weights[1] *= 0.9
        """,
    "array shuffled": """
        import numpy as np
        order = np.arange(3)
        def step(x): return x[order]
        for x in data:
            np.random.shuffle(order)
            step(x)
        """,
    "setattr": """
        def step(x): return model.beta * x
        for epoch in range(3):
            setattr(model, "beta", epoch)
            step(epoch)
        """,
    "getattr": """
        def step(x): return getattr(model, "beta") * x
        for epoch in range(3):
            model.beta = epoch
            step(epoch)
        """,
    "lambda": """
        weight = lambda x: x * settings.beta
        def step(x): return weight(x)
        for epoch in range(3):
            settings.beta = epoch
            step(epoch)
        """,
    "between two calls": """
        def step(x): return model.beta * x
        def train():
            for x in data: step(x)
        train()
        model.beta = 1.0
        train()
        """,
    "callback": """
        class Anneal(Callback):
            def on_epoch_begin(self, epoch, logs=None): self.model.beta = epoch / 10
        def step(x): return model.beta * x
        """,
    "callback that is given a function": """
        def anneal(epoch, logs): model.beta = epoch / 10
        def step(x): return model.beta * x
        model.fit(x, callbacks=[LambdaCallback(on_epoch_begin=anneal)])
        """,
    "frozen layers": """
        def step(x): return tape.gradient(loss, critic.trainable_variables)
        for x in data:
            critic.trainable = not critic.trainable
            step(x)
        """,
    "new object": """
        def step(x): return model(x)
        for fold in range(3):
            model = build()
            for x in data: step(x)
        """,
    "method that is called in the loop": """
        class Trainer:
            def step(self, x): return self.beta * x
            def run(self):
                for x in data:
                    self.one(x)
            def one(self, x):
                self.step(x)
                self.beta = 0.9 * self.beta
        """,
}


@pytest.mark.parametrize("text", CHANGING.values(), ids=CHANGING)
def test_what_changes_between_calls_is_named(text: str) -> None:
    told = found(text)
    assert "is read in the traced step" in told
    assert "line" in told


HONEST = {
    "set before the loop": """
        beta = 0.0
        def step(x): return beta * model.rate * x
        model.rate = 0.5
        for layer in model.layers: layer.rate = 3
        for x in data: step(x)
        model.rate = 1.0
        """,
    "learning rate of Keras": """
        def step(x): return optimizer.learning_rate * x
        for x in data:
            optimizer.learning_rate = 0.1
            step(x)
        """,
    "variable": """
        def step(x): return model.beta * x
        for epoch in range(3):
            model.beta.assign(epoch)
            step(epoch)
        """,
    "another class": """
        class Trainer:
            def step(self, x): return self.weight * x
        class Log:
            def note(self): self.weight = 3
        trainer, log = Trainer(), Log()
        for x in data:
            trainer.step(x)
            log.note()
        """,
    "argument": """
        def step(x, beta): return beta * x
        for epoch in range(3):
            beta = epoch / 10
            step(epoch, beta)
        """,
    "made by each call of the function around it": """
        def train(fold):
            model = build(fold)
            def step(x): return model(x)
            for x in data: step(x)
        for fold in range(3):
            train(fold)
        """,
    "made when it is first needed": """
        class Trainer:
            def step(self, x): return self.optimizer.apply(x)
            def run(self):
                for x in data:
                    if self.optimizer is None:
                        self.optimizer = Adam()
                    self.step(x)
        """,
    "counters that the step does not read": """
        class Agent:
            def step(self, x): return self.model(x)
            def learn(self):
                for x in self.memory:
                    self.step(x)
                    self.count += 1
                    self.losses.append(x)
        """,
}


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_what_stays_as_it_is_speaks_against_nothing(text: str) -> None:
    assert found(text) == ""


def test_other_files_are_looked_through() -> None:
    told = found(
        """
        import settings
        def step(x): return x * settings.beta
        """,
        loop="""
        import settings
        from train import step
        for epoch in range(3):
            settings.beta = epoch
            step(epoch)
        """,
    )
    assert "loop.py:5: `settings.beta`" in told


def test_a_function_that_a_loop_makes_anew_reads_anew() -> None:
    text = """
        for epoch in range(3):
            model.beta = epoch
            @tf.function
            def step(x): return model.beta * x
            for x in data: step(x)
        """
    assert found(text) == ""
    assert "model.beta" in found(text, kept=True), "made once, it would not"


def test_a_model_that_is_compiled_again_is_traced_again() -> None:
    text = """
        class Net(Model):
            def train_step(self, x): return self.beta * x
        net.fit(x)
        net.beta = 1
        {}
        net.fit(x)
        """
    assert "beta" in found(text.format(""), "train_step", ("fit",))
    assert found(text.format("net.compile()"), "train_step", ("fit",)) == ""


EFFECTS = """
import keras
class Net(keras.Model):
    def train_step(self, data):
        self.n += 1
        if self.n % 1000 == 0:
            self.sync_target()
        return super().train_step(data)
    def sync_target(self):
        self.target.set_weights(self.get_weights())
"""


def test_effects_of_a_step_of_keras_are_named() -> None:
    told = _frozen.keras_in(Project({"net.py": EFFECTS})) or ""
    assert "train_step" in told
    assert "self.n" in told
    assert "line 5" in told
    helper = "def loss(a, b):\n    seen.append(a)\n    return a - b\nmodel.compile(loss=loss)\n"
    assert "seen.append" in (_frozen.keras_in(Project({"net.py": helper})) or "")
    honest = EFFECTS.replace("self.n += 1", "self.n.assign_add(1)").replace("if self.n % 1000 == 0:", "if True:")
    assert _frozen.keras_in(Project({"net.py": honest})) is None


def test_effects_of_what_the_program_traces_itself() -> None:
    text = "import tensorflow as tf\n@tf.function\ndef step(x):\n    counts['n'] += 1\n    return x\n"
    assert "counts['n']" in (_frozen.traced_in(Project({"a.py": text})) or "")
    wrapped = "import tensorflow as tf\ndef one(x):\n    print(x)\nstep = tf.function(one)\n"
    assert "print" in (_frozen.traced_in(Project({"a.py": wrapped})) or "")
    assert _frozen.traced_in(Project({"a.py": wrapped.replace("print", "tf.print")})) is None
    anew = """
import tensorflow as tf
def one(x): return x * settings.beta
for epoch in range(3):
    settings.beta = epoch
    tf.function(one)(epoch)
"""
    assert _frozen.traced_in(Project({"a.py": anew})) is None, "made anew, it reads anew"
