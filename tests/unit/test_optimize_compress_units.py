"""Units, plans and patterns: the parts of compression that need no Keras."""

import functools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from flatout.cli import make_app
from flatout.model.errors import CompressionRefused, FlatoutError
from flatout.optimize.compress import magnitude
from flatout.optimize.compress.cluster import find_centres
from flatout.optimize.compress.stages import parse
from flatout.optimize.compress.structure.channels import Channels, Group
from flatout.optimize.compress.structure.graph import refuse_keras_2
from flatout.optimize.compress.structure.plan import Limits, Planner
from flatout.optimize.compress.structure.rules.shape import reshaped
from flatout.optimize.compress.structure.units import Labels, Ledger
from flatout.optimize.compress.training import Journal, identity_of


def test_what_is_tied_to_something_pinned_is_pinned():
    ledger = Ledger()
    one, other, third = ledger.fresh(4), ledger.fresh(4), ledger.fresh(4)
    ledger.tie(one, other)
    ledger.pin(third[:1], "an output")
    ledger.tie(other, third)
    assert ledger.root(int(one[0])) in ledger.pinned
    assert ledger.root(int(one[1])) not in ledger.pinned
    ledger.freeze()
    assert (ledger.roots(one) == ledger.roots(third)).all()
    assert ledger.kept(other, frozenset({ledger.root(int(third[2]))})).tolist() == [0, 1, 3]


def test_a_cut_of_another_size_is_no_cut():
    ledger = Ledger()
    variable = SimpleNamespace(shape=(3, 5), path="kernel")
    with pytest.raises(AssertionError, match="kernel"):
        ledger.cut(None, variable, 1, ledger.fresh(3))
    ledger.cut(None, None, 1, ledger.fresh(3))
    assert not ledger.cuts


def test_flatten_repeats_units_and_reshape_undoes_it():
    ledger = Ledger()
    units = ledger.fresh(3)
    flat = reshaped(Labels((None, 2, 2, 3), 3, units), (None, 12), ledger, "flatten")
    assert flat.units.tolist() == [0, 1, 2] * 4
    back = reshaped(flat, (None, 2, 2, 3), ledger, "reshape")
    assert (back.axis, back.units.tolist()) == (3, [0, 1, 2])


def test_reshape_into_channels_ties_what_belongs_to_one():
    ledger = Ledger()
    labels = reshaped(Labels((None, 12), 1, ledger.fresh(12)), (None, 2, 2, 3), ledger, "reshape")
    assert labels.axis == 3
    assert len({ledger.root(unit) for unit in range(12)}) == 3


def test_sizes_that_are_not_known_pin():
    ledger = Ledger()
    units = ledger.fresh(3)
    reshaped(Labels((None, None, 3), 2, units), (None, None), ledger, "flatten")
    assert {ledger.root(int(unit)) for unit in units} <= set(ledger.pinned)


def planner(multiple=1, least=0.1):
    groups = (Group("a", tuple(range(10)), ("a",)), Group("b", tuple(range(10, 30)), ("b",)))
    scores = {unit: float(unit % 10) for unit in range(30)}
    return Planner(Channels(None, Ledger(), groups, {}), scores, Limits(least, multiple))


def test_the_least_important_go_first_and_none_is_emptied():
    plan = planner()
    assert plan.removing(3) == {0, 10, 20}
    everything = plan.removing(plan.removable)
    assert len(everything) == 27
    assert 9 not in everything


def test_widths_stay_multiples():
    kept = 20 - len([unit for unit in planner(multiple=8).removing(12) if unit >= 10])
    assert kept in (8, 16)


def test_a_target_is_met_with_as_few_as_possible():
    plan = planner()
    removed = plan.meeting(lambda gone: 30 - len(gone), 20, "units")
    assert len(removed) == 10
    with pytest.raises(CompressionRefused, match="cannot be reached"):
        plan.meeting(lambda gone: 30 - len(gone), 1, "units")


def test_patterns_keep_n_of_m():
    size = np.random.default_rng(0).random((3, 3, 10, 4))
    keep = magnitude._pattern(size, (2, 4))
    lines = np.moveaxis(keep, -2, -1)
    assert (lines[..., :4].sum(-1) == 2).all()
    assert (lines[..., 8:].sum(-1) == 2).all(), "a rest shorter than m keeps its n largest"
    assert keep[size == size.max()].all()


def test_schedules_rise_to_one():
    assert magnitude.SCHEDULES
    for schedule in magnitude.SCHEDULES.values():
        values = [schedule(done / 10) for done in range(11)]
        assert values == sorted(values)
        assert values[-1] == 1


def test_centres_are_few_and_near_and_zeros_stay():
    value = np.random.default_rng(0).normal(size=(40, 40)).astype("float32")
    centres, places = find_centres(value, 16, True)
    assert len(centres) <= 16
    assert np.abs(centres[places].reshape(value.shape) - value).mean() < 0.12
    value[np.abs(value) < 0.7] = 0
    centres, places = find_centres(value, 4, True)
    assert (centres[places].reshape(value.shape)[value == 0] == 0).all()
    assert len(centres) <= 4


def test_stages_are_read_before_anything_is_trained():
    assert parse("prune=0.5, distill,int8") == [("prune", 0.5), ("distill", None), ("int8", None)]
    for text, why in (("shrink", "no stage named 'shrink'"), ("prune=half", "takes a number"), ("int8,prune", "last")):
        with pytest.raises(CompressionRefused, match=why):
            parse(text)


def test_training_for_nothing_is_refused():
    done = CliRunner().invoke(make_app(), ["optimize", "model.keras", "--train", "job:train"])
    assert isinstance(done.exception, FlatoutError)
    assert "--compress" in str(done.exception)


@pytest.mark.parametrize("version", ["2.12.0", "2.15.0"])
def test_a_model_of_keras_2_is_refused(version, monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(__version__=version))
    with pytest.raises(CompressionRefused, match="Keras 2"):
        refuse_keras_2(SimpleNamespace(name="model"))
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(__version__="3.15.1"))
    refuse_keras_2(SimpleNamespace(name="model"))


def test_checkpoints_belong_to_their_training(tmp_path):
    def train(model):
        model.fit(x, epochs=1)

    def longer(model):
        model.fit(x, epochs=9)

    model, x = SimpleNamespace(weights=[]), np.zeros(3)
    for _ in range(2):
        Journal(tmp_path, model, ["prune"], train)
    with pytest.raises(CompressionRefused, match="the training among them"):
        Journal(tmp_path, model, ["prune"], longer)
    found = [
        identity_of(given)
        for given in (
            {"x": x, "epochs": 2, "callbacks": [object()]},
            {"callbacks": [object()], "epochs": 2, "x": np.zeros(3)},
            {"x": x, "epochs": 3, "callbacks": [object()]},
            {"x": x + 1, "epochs": 2, "callbacks": [object()]},
            functools.partial(train, epochs=2),
            functools.partial(train, epochs=3),
        )
    ]
    assert found[0] == found[1]
    assert len(set(found)) == 5
