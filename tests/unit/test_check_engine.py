"""What the detectors lean on: names, scopes, what is traced, how datasets are followed, which loop makes the steps."""

from __future__ import annotations

import ast
import textwrap

import pytest

from flatout.check.checker import Checker, drop_traced_elsewhere, is_test
from flatout.check.selection import select
from flatout.source.analysis import datasets, loops
from flatout.source.analysis.scopes import Module
from flatout.source.analysis.traced_functions import traced


def module_of(source: str) -> Module:
    return Module(textwrap.dedent(source))


def found(source: str, *causes: str, path: str = "program.py") -> list[tuple[int, str]]:
    outcome = Checker(select(causes)).check(textwrap.dedent(source), path)
    assert not outcome.problem
    return [(item.line, item.full_name) for item in outcome.diagnostics]


@pytest.mark.parametrize(
    ("imported", "written", "meant"),
    [
        ("import tensorflow as tf", "tf.data.Dataset", "tensorflow.data.Dataset"),
        ("import tensorflow.compat.v1 as tf", "tf.nn.moments", "tensorflow.nn.moments"),
        ("from tensorflow import keras", "keras.layers.LSTM", "keras.layers.LSTM"),
        ("from tensorflow.keras import layers as kl", "kl.LSTM", "keras.layers.LSTM"),
        ("import tf_keras", "tf_keras.Model", "keras.Model"),
        ("from tensorflow.python.eager import def_function", "def_function.function", "tensorflow.function"),
        ("import tensorflow as tf\nAUTO = tf.data.AUTOTUNE", "AUTO", "tensorflow.data.AUTOTUNE"),
        ("import tensorflow as tf\nlayers = tf.keras.layers", "layers.GRU", "keras.layers.GRU"),
        ("from tensorflow.keras.layers import *", "LSTM", "keras.layers.LSTM"),
        ("import tensorflow as tf\ntf = tf.compat.v1", "tf.Session", "tensorflow.Session"),
        ("import numpy as np", "tf.data", ""),
    ],
)
def test_names_mean_what_was_imported(imported: str, written: str, meant: str) -> None:
    module = module_of(imported)
    assert module.names.dotted(ast.parse(written, mode="eval").body) == meant


def test_what_is_traced() -> None:
    module = module_of(
        """
        import functools
        import tensorflow as tf

        @tf.function
        def decorated(x):
            return helper(x)

        def helper(x):
            return x

        def later(x):
            return x

        def untouched(x):
            return tf.numpy_function(outside, [x], tf.float32)

        def outside(x):
            return x

        class Net(tf.keras.Model):
            def call(self, x):
                return self.inner(x)

            def inner(self, x):
                return x

            def summary(self):
                return later

        step = tf.function(later, jit_compile=True)
        dataset = tf.data.Dataset.range(3).map(lambda x: mapped(x))

        def mapped(x):
            return x
        """
    )
    names = {scope.name for scope in traced(module).scopes}
    assert {"decorated", "helper", "later", "call", "inner", "mapped"} <= names
    assert not names & {"untouched", "outside", "summary"}


def test_a_dataset_is_followed_through_variables_functions_and_arms() -> None:
    module = module_of(
        """
        import tensorflow as tf

        def base(files):
            dataset = tf.data.TFRecordDataset(files)
            return dataset.map(str)

        def full(files, training):
            dataset = base(files)
            if training:
                dataset = dataset.shuffle(10)
            else:
                dataset = dataset.cache()
            if not training:
                return dataset.take(1)
            dataset, other = dataset.batch(3), None
            return dataset

        result = full([], True).prefetch(1)
        """
    )
    call = next(call for call, _ in module.top.facts.calls if isinstance(call.func, ast.Attribute))
    chain = datasets.upstream(call, datasets.Site(module, module.top))
    assert chain.source == "tensorflow.data.TFRecordDataset"
    assert chain.names()[0] == "map"
    assert chain.names()[-2:] == ["batch", "prefetch"]
    assert not {"shuffle", "cache"} <= set(chain.names())  # never both arms of one `if`


def test_the_loop_of_the_steps_is_told_from_that_of_the_epochs() -> None:
    module = module_of(
        """
        import tensorflow as tf

        def train(dataset, epochs, model, optimizer):
            for epoch in range(epochs):
                for batch in dataset:
                    with tf.GradientTape() as tape:
                        loss = model(batch)
                    optimizer.apply_gradients(tape.gradient(loss, []))
                print(epoch)
        """
    )
    scope = module.functions["train"][0]
    outer, inner = (loop for loop, _ in scope.facts.loops)
    assert not loops.is_step_loop(outer, scope)
    assert loops.is_step_loop(inner, scope)


def test_what_another_file_traces_is_no_eager_step() -> None:
    checker = Checker(select(["eager-step"]))
    step = """
        import tensorflow as tf
        class Agent:
            def update(self, batch):
                with tf.GradientTape() as tape:
                    loss = self.loss(batch)
                self.optimizer.apply_gradients(zip(tape.gradient(loss, self.weights), self.weights))
        """
    other = """
        import tensorflow as tf
        @tf.function
        def train(agent, batch):
            agent.update(batch)
        """
    alone, with_other = (checker.check(textwrap.dedent(step), "agent.py") for _ in range(2))
    assert len(alone.diagnostics) == 1
    drop_traced_elsewhere([alone])
    assert len(alone.diagnostics) == 1
    drop_traced_elsewhere([with_other, checker.check(textwrap.dedent(other), "train.py")])
    assert not with_other.diagnostics


def test_another_file_that_traces_its_own_step_says_nothing_about_this_one() -> None:
    checker = Checker(select(["eager-step"]))
    step = """
        import tensorflow as tf
        def train_step(batch):
            with tf.GradientTape() as tape:
                loss = model(batch)
            optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
        for batch in batches:
            train_step(batch)
        """
    its_own = step.replace("for batch", "traced = tf.function(train_step)\n        for batch")
    called = step.replace(
        "for batch", "@tf.function\n        def twice(batch):\n            train_step(batch)\n        for batch"
    )
    for other in (its_own, called):
        eager, traced = (checker.check(textwrap.dedent(text), "train.py") for text in (step, other))
        drop_traced_elsewhere([eager, traced])
        assert len(eager.diagnostics) == 1
        assert not traced.diagnostics


def test_a_broken_file_is_told_whatever_it_is_about() -> None:
    assert Checker(select(["all"])).check("this is ( not Python", "a.py").problem.startswith("line 1: not valid Python")
    assert Checker(select(["all"])).check("x = 1\n\n", "a.py").problem == ""


def test_code_that_is_not_of_tensorflow_is_left_in_peace() -> None:
    source = """
        # not the keras that you know
        import torch
        for x in loader:
            model.predict(x)
            loss.numpy()
        """
    assert found(source, "all") == []


def test_tests_are_left_alone_but_for_what_is_gone() -> None:
    source = """
        import tensorflow as tf
        model.compile(run_eagerly=True)
        strategy.experimental_run_v2(step)
        """
    assert [name for _, name in found(source)] == ["run-eagerly/compile", "gone-api/method"]
    assert [name for _, name in found(source, path="src/model_test.py")] == ["gone-api/method"]


@pytest.mark.parametrize("path", ["tests/a.py", "a/test_b.py", "b_test.py", "conftest.py", "x/testing/a.py"])
def test_paths_of_tests(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize("path", ["train.py", "latest/a.py", "contest.py", "src/protest_b.py"])
def test_paths_of_programs(path: str) -> None:
    assert not is_test(path)


def test_the_version_decides_what_is_gone() -> None:
    source = "import tensorflow as tf\n@tf.function(experimental_relax_shapes=True)\ndef f(x): return x\n"
    assert Checker(select(["gone-api"]), (2, 16)).check(source).diagnostics
    assert not Checker(select(["gone-api"]), (2, 8)).check(source).diagnostics


def test_run_v2_was_there_until_2_3() -> None:
    source = "import tensorflow as tf\nstrategy.experimental_run_v2(step)\n"
    assert not Checker(select(["gone-api"]), (2, 3)).check(source).diagnostics
    seen = Checker(select(["gone-api"]), (2, 4)).check(source).diagnostics
    assert [one.message for one in seen] == ["experimental_run_v2 is not there in TensorFlow 2.4 and later."]


def test_python_in_a_parallel_map_is_not_called_serial() -> None:
    """Two calls of py_function run at once where the map asks for it and Python waits."""
    source = """
import tensorflow as tf
files = files.map(lambda x: tf.numpy_function(load, [x], tf.float32), num_parallel_calls=tf.data.AUTOTUNE)
"""
    (seen,) = Checker(select(["python-in-pipeline"])).check(source).diagnostics
    assert "GIL" in seen.message
    assert "never parallel" not in seen.message


def test_places_are_told_in_characters_at_the_name_of_the_method() -> None:
    source = 'import tensorflow as tf\nd = (tf.data.Dataset.range(3)\n  .batch(2)  # é\n  .shuffle("äöü", 3)\n)\n'
    item = Checker(select()).check(source).diagnostics[0]
    assert (item.line, item.column, item.end_line, item.end_column) == (4, 4, 4, 11)
    assert item.code == '.shuffle("äöü", 3)'


def test_a_program_that_turns_to_version_one_has_it() -> None:
    seen = found("import tensorflow as tf\ntf.Session()\n", "gone-api")
    assert [name for _, name in seen] == ["gone-api/version-one"]
    assert found("import tensorflow as tf\ntf = tf.compat.v1\ntf.Session()\n") == []
    assert found("import tensorflow.compat.v1 as tf\ntf.Session()\n") == []
