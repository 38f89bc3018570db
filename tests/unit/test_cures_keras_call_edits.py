"""Which calls of Keras' own loops an edit replaces."""

from __future__ import annotations

from types import FunctionType, SimpleNamespace

import pytest

from flatout.cures import direct_batch
from flatout.cures._keras_call_edits import lines_of
from flatout.cures._one_batch import logs_of_epoch
from flatout.cures.direct_batch.inject import sets_metrics_back
from flatout.cures.direct_fit import edit as direct_fit
from flatout.cures.direct_predict import inject as direct_predict
from flatout.cures.steps_per_execution.inject import batch_callback
from flatout.model.case import Case, Steps, Where
from flatout.model.evidence.program import KerasCall
from flatout.model.observed import Distribution


@pytest.mark.parametrize(("steps", "calls", "taken"), [(50, 3, True), (50, 2, False), (2, 2, True), (1, 1, False)])
def test_a_line_of_each_step_counts_although_few_steps_were_seen(steps, calls, taken):
    ms = Distribution(median=900.0, p10=900.0, p90=900.0, mean=900.0, low=900.0, high=900.0)
    called = KerasCall("predict", calls=calls, ms=1.0, batches=calls, single=calls, where=Where("/agent.py", 59))
    case = Case("tune", steps=Steps(steps, "calls of a tf.function that trains", ms), evidence=(called,))
    assert lines_of(case, "/agent.py", "predict") == ({59} if taken else set())


@pytest.mark.parametrize(("function", "taken"), [("act", {59, 70}), (None, {70})])
def test_a_policy_that_was_hardly_called_is_replaced_beside_a_line_that_was(function, taken):
    """Not a line of the module itself: that is called once."""
    policy = KerasCall("predict", calls=1, ms=1.0, batches=1, single=1, where=Where("/agent.py", 59, function))
    other = KerasCall("predict", calls=1, ms=1.0, batches=99, single=0, where=Where("/agent.py", 90, "evaluate"))
    targets = KerasCall("predict", calls=40, ms=1.0, batches=40, single=40, where=Where("/agent.py", 70, "learn"))
    assert lines_of(Case("tune", evidence=(policy, other, targets)), "/agent.py", "predict") == taken
    assert lines_of(Case("tune", evidence=(policy, other)), "/agent.py", "predict") == set()


@pytest.mark.parametrize(("version", "why"), [("3.15.1", None), ("", None), ("3.10.0", "they add up"), ("3.9", "3.9")])
def test_metrics_that_keras_does_not_set_back_are_not_set_back(version, why):
    called = KerasCall("train_on_batch", calls=40, ms=1.0, batches=40, single=40, values=1, where=Where("/gan.py", 9))
    reason = direct_batch.skip(Case("run", environment={"keras_version": version}, evidence=(called,)))
    assert reason is None if why is None else why in (reason or "")


class Newer:
    def train_on_batch(self):
        self.reset_metrics()


class Older:
    def train_on_batch(self):
        return self.train_function()


def test_the_lever_asks_keras_itself():
    assert sets_metrics_back(Newer.train_on_batch)
    assert not sets_metrics_back(Older.train_on_batch)


LOOP = """
for x, y in data:
    model.fit(x, y, verbose=0)
    losses.append(model.fit(x, y, verbose=0).history["loss"][0])
    found = model.evaluate(x, y, verbose=0)
"""


def test_values_are_asked_for_only_of_a_keras_that_returns_those_of_the_batch():
    places = ((3, "fit"), (4, "fit"), (5, "evaluate"))
    evidence = tuple(
        KerasCall(method, calls=40, ms=1.0, batches=40, single=40, where=Where("/gan.py", line))
        for line, method in places
    )
    written = {
        version: direct_fit.edit(
            LOOP, "/gan.py", Case("tune", environment={"keras_version": version}, evidence=evidence), ""
        )
        for version in ("3.15.1", "3.10.0")
    }
    assert (
        written["3.15.1"]
        == """
for x, y in data:
    model.train_on_batch(x, y)
    losses.append(model.train_on_batch(x, y, return_dict=True)["loss"])
    found = model.test_on_batch(x, y)
"""
    )
    assert written["3.10.0"] == LOOP.replace("model.fit(x, y, verbose=0)\n", "model.train_on_batch(x, y)\n")


class KerasModel:
    built, run_eagerly = True, False


@pytest.mark.parametrize("own", [None, "predict_on_batch", "predict_step"])
def test_a_model_that_predicts_in_its_own_way_is_left_alone(own):
    """`predict` gives arrays to its step, `predict_on_batch` a tuple."""
    methods = {name: (lambda self, data: data) if name == own else len for name in ("predict_on_batch", "predict_step")}
    model = type("Model", (KerasModel,), methods)()
    assert direct_predict._is_ready(model) == (own is None)


class Stepped:
    def train_step(self, data):
        return data

    def _get_metrics_result_or_logs(self, logs):
        return {"loss": 0.0}


def test_metrics_count_where_a_step_of_the_programs_own_returns_their_names():
    """As in `fit`; a step of Keras returns what its metrics hold."""
    assert logs_of_epoch(Stepped(), "train_step", {"loss": 3.0}) == {"loss": 0.0}
    of_keras = type(
        "Model", (Stepped,), {"train_step": FunctionType(Stepped.train_step.__code__, {"__name__": "keras.model"})}
    )
    assert logs_of_epoch(of_keras(), "train_step", {"loss": 3.0}) == {"loss": 3.0}
    assert logs_of_epoch(KerasModel(), "train_step", {"loss": 3.0}) == {"loss": 3.0}


class Counts:
    def on_train_batch_end(self, batch, logs=None):
        pass


@pytest.mark.parametrize("given", [Counts(), [object(), [Counts()]], SimpleNamespace(callbacks=[Counts()])])
def test_a_callback_for_each_batch_is_found_wherever_fit_takes_it(given):
    """In a list, in a list of lists, in a `CallbackList`."""
    assert batch_callback(given).startswith("Counts.on_train_batch_end")
    assert batch_callback([object(), None]) == ""
